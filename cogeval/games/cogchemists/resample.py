"""Another world that one seat cannot tell apart: everything hidden from it, drawn anew.

Invariant: the seat's observation stays equal, and the new world is one that could have led to it: the
chemistry agrees with every public outcome, hands with every public draw and use of a card.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from msgspec.structs import replace

from cogeval.games.cogchemists.constants import (
    MIX,
    NUM_DEMANDS,
    NUM_INGREDIENTS,
    POTIONS,
    SEATS,
    START_CARDS,
)
from cogeval.games.cogchemists.deduction import MixFull, knowledge_of, permutations
from cogeval.games.cogchemists.state import Act, State


def resample_hidden(state: State, seat: int, rng: np.random.Generator) -> State:
    """Draws anew what an open state hides from the seat (R9.2).

    Args:
        state: a phase just opened.
        seat: whose observation stays equal.
        rng: where the draws come from.

    Returns:
        The state with another chemistry, stream, later demands, and other seats' cards, notes and test
        results, each redrawn within what the seat can deduce.
    """
    chemistry = _chemistry(state, seat, rng)
    others = [other for other in range(SEATS) if other != seat]
    hands, notes = list(state.hands), list(state.notes)
    private, known = list(state.private_facts), list(state.known)
    for other in others:
        hands[other] = _hand(state.record, other, rng)
        notes[other] = f"note {rng.integers(1 << 32)}"
        private[other] = tuple(_results(state.record, other, chemistry))
        known[other] = knowledge_of(state.public_facts, private[other])
    later = [POTIONS[rng.integers(NUM_DEMANDS)] for _ in state.demands[state.round + 1 :]]
    words = rng.integers(1 << 64, size=2, dtype=np.uint64).tolist()
    return replace(
        state,
        chemistry=chemistry,
        demands=(*state.demands[: state.round + 1], *later),
        words=(words[0], words[1]),
        hands=tuple(hands),
        private_facts=tuple(private),
        notes=tuple(notes),
        known=tuple(known),
    )


def _chemistry(state: State, seat: int, rng: np.random.Generator) -> tuple[int, ...]:
    """A chemistry that agrees with the seat's facts and with how every public debunk came out."""
    survivors = state.known[seat].survivors
    bits = np.frombuffer(survivors.to_bytes(len(permutations()) // 64, "little"), dtype=np.uint8)
    for index in rng.permutation(np.flatnonzero(np.unpackbits(bits, bitorder="little"))):
        chemistry = tuple(permutations()[8 * index : 8 * index + 8])
        if all(_agrees(act, chemistry) for act in state.record if act.action == "debunk"):
            return chemistry
    raise AssertionError("the true chemistry agrees with everything")


def _agrees(act: Act, chemistry: tuple[int, ...]) -> bool:
    """True when a debunk would have come out the same (R5.4): more than its facts say."""
    if act.outcome not in ("burned", "survived"):
        return True
    predicted = MIX[act.claim][chemistry[act.b]]
    return (act.potion == predicted) == (act.outcome == "survived")


def _results(record: Iterable[Act], seat: int, chemistry: tuple[int, ...]) -> Iterator[MixFull]:
    """What the seat's own tests would have shown in another chemistry."""
    for act in record:
        if act.seat == seat and act.secret:
            yield MixFull(act.a, act.b, MIX[chemistry[act.a]][chemistry[act.b]])


def _hand(record: Iterable[Act], seat: int, rng: np.random.Generator) -> tuple[int, ...]:
    """A hand that the public record allows: what it does not name was dealt at the start."""
    named: list[int] = []
    num_unnamed = START_CARDS
    owns_mortar = False
    for act in record:
        if act.seat != seat or act.outcome.startswith("rejected"):
            continue
        owns_mortar = owns_mortar or act.artifact == "mortar"
        needed, consumed = _cards(act, owns_mortar)
        for card in set(needed):
            while named.count(card) < needed.count(card):  # shown by being used: it was dealt
                named.append(card)
                num_unnamed -= 1
        for card in consumed:
            named.remove(card)
        named.extend(act.draws[: len(act.draws) - len(act.discarded)])
    unnamed = rng.integers(NUM_INGREDIENTS, size=num_unnamed).tolist()
    return (*unnamed, *named)


def _cards(act: Act, owns_mortar: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The cards that a carried-out act needed, and those that it consumed."""
    pair = (act.a, act.b)
    match act.action:
        case "test_student" | "test_self":
            return pair, pair[:1] if owns_mortar else pair
        case "sell":
            return pair, pair
        case "transmute":
            return pair[:1], pair[:1]
        case "debunk":
            return pair[1:], pair[1:]
        case _:
            return (), ()
