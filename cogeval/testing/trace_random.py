"""The kind of trace record that holds vectors of the hosted games' generator.

Invariant: a vector is rebuilt from its seed only.
"""

from __future__ import annotations

from typing import Final

from cogeval.core.game import Json
from cogeval.core.rng import NimStream
from cogeval.games.league import ALIASES
from cogeval.testing.compare import Given, Path
from cogeval.testing.trace_inputs import BadInput, take

_TOPS: Final = (*range(10), 11, 99, 100, 255, 999, 10**6, 2**31 - 1, 2**62, 2**63 - 1)
_SEEDS: Final = range(-(2**63), 2**63)


def is_vector(record: Json) -> bool:
    """True for the vectors of one seed."""
    return isinstance(record, dict) and ("shuffle8" in record or "shuffle9" in record)


def rebuild_vector(record: Json) -> Json:
    """The vectors as our generator gives them; 64-bit values are decimal strings.

    Raises:
        BadInput: when the seed is no signed 64-bit integer in a string.
    """
    text = take(record, ("seed",), str)
    if not text.removeprefix("-").isdecimal() or int(text) not in _SEEDS:
        raise BadInput(("seed",), "a signed 64-bit integer in a string", repr(text))
    seed = int(text)
    plain = NimStream(seed)
    eight = NimStream(seed)
    four = NimStream(seed)
    return {
        "seed": Given(text),
        "next": [str(plain.next()) for _ in range(8)],
        "rand": {str(top): _draws(seed, top) for top in _TOPS},
        "shuffle8": _shuffled(eight, list(range(8))),
        "afterShuffle8Rand5": [eight.rand(top) for top in (5, 5, 7, 7)],
        "shuffle9": _shuffled(NimStream(seed), list(range(9))),
        "shuffleNames": _shuffled(NimStream(seed), list(ALIASES)),
        "shuffle4": _shuffled(four, list(range(4))),
        "afterShuffle4Next": _next_after_short_lists(four),
    }


def _draws(seed: int, top: int) -> list[str]:
    stream = NimStream(seed)
    return [str(stream.rand(top)) for _ in range(10)]


def _shuffled(stream: NimStream, items: list[Json]) -> list[Json]:
    stream.shuffle(items)
    return items


def _next_after_short_lists(stream: NimStream) -> str:
    """Lists of one item and of none draw nothing."""
    stream.shuffle(["only"])
    stream.shuffle([])
    return str(stream.next())


def no_seat(path: Path, record: Json) -> int | None:  # noqa: ARG001 - the signature that every kind has
    """Concerns no seat."""
    return None
