"""Golden playthroughs: whole episodes of every game, written down so that no rule changes unnoticed.

``python -m cogeval.testing.golden`` compares, ``--write`` writes them anew. A file holds JSON lines: a
header, one line a phase (a hash of what every seat sees, decisions, events), the outcome. Invariant:
every game of the table has its files; there is no list of exceptions.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from cogeval.agents.random import RandomAgent
from cogeval.core.agent import Scripted, Seated
from cogeval.core.episode import play, replay
from cogeval.core.game import AnyGame, Json, Seat
from cogeval.core.record import canonical_json
from cogeval.games import GAMES
from cogeval.testing.golden_traces import TRACES

FOLDER: Final = Path("tests/golden")
"""Where the files are, from the root of the repository."""

PARAMETER_SETS: Final[Mapping[str, Mapping[str, Mapping[str, Json]]]] = {
    "cogchemists": {
        "default": {},
        "short_silent": {"rounds": 3, "talk": False},
        "no_artifacts": {"rounds": 4, "artifacts": False},
    },
    "cogmud": {
        "default": {"turns": 8},
        "silent": {"turns": 6, "speech": False},
        "honest": {"turns": 6, "thievery": False},
    },
    "cogz": {
        "default": {},
        "three": {"seats": 3},
        "loose": {"seats": 4, "lever": 9, "pair_copies": 9, "nuts_per_colour": 1, "setup_locks": False},
        "six_open": {"seats": 6, "open_hands": True},
    },
}
"""Game -> name of a parameter set -> parameters; a game that is not here is played with its defaults."""

RANDOM: Final = "random"


class Playthrough(msgspec.Struct, frozen=True):
    """One golden file."""

    game: str
    name: str  # of the file, without its ending
    parameters: Mapping[str, Json]
    seed: int
    seats: tuple[str, ...]  # per seat: a baseline, or RANDOM
    stop_after: int | None = None  # phases after which the clock runs out; None: played to the end

    @property
    def file(self) -> Path:
        """Its place under the golden folder."""
        return Path(self.game) / f"{self.name}.jsonl"


def playthroughs() -> Iterator[Playthrough]:
    """Every golden file that there must be."""
    for name in GAMES:
        for label, parameters in PARAMETER_SETS.get(name, {"default": {}}).items():
            game = GAMES[name](**parameters)
            casts = {
                "baselines": _cycled(game.spec.baselines, game.seats),
                "random": (RANDOM,) * game.seats,
                "stopped": _cycled((*game.spec.baselines, RANDOM), game.seats),
            }
            for seed, (cast, seats) in enumerate(casts.items(), start=1):
                stop_after = 3 if cast == "stopped" else None
                yield Playthrough(name, f"{label}_{cast}", parameters, seed, seats, stop_after)


def _cycled(names: Sequence[str], num: int) -> tuple[str, ...]:
    return tuple(itertools.islice(itertools.cycle(names), num))


def play_golden(each: Playthrough) -> Iterator[str]:
    """Plays one golden episode; gives the lines of its file."""
    game = GAMES[each.game](**each.parameters)
    seated = [_seated(game, name) for name in each.seats]
    episode = asyncio.run(play(game, each.seed, seated))
    journal = episode.journal()[: each.stop_after]
    yield _line(
        game=game.spec.name,
        version=game.spec.version,
        parameters=dict(game.parameters),
        seed=each.seed,
        seats=list(each.seats),
    )
    state = game.initial_state(each.seed)
    for phase, actions in enumerate(journal):
        yield _line(**_phase(game, state, phase, actions))
        state = game.step(state, actions).next
    stopped = bool(game.decisions(state))
    final, digest = replay(game, each.seed, journal, stopped=stopped)
    yield _line(
        events=[msgspec.to_builtins(event) for event in (game.stop(state).events if stopped else ())],
        results=msgspec.to_builtins(game.results(final)),
        digest=digest,
    )


def _seated(game: AnyGame, name: str) -> Seated:
    agent = RandomAgent if name == RANDOM else Scripted(name)
    assert name == RANDOM or name in game.spec.baselines
    return Seated(name, agent, deterministic=True)


def _phase(game: AnyGame, state: Any, phase: int, actions: Mapping[Seat, Any]) -> dict[str, Json]:
    # Hashed is what seats see and not the state's own fields: those may be kept in another way without
    # any episode coming out differently, and hidden ones show in events and in later phases.
    seen = [game.observation_to_wire(game.observe(state, seat)) for seat in range(game.seats)]
    return {
        "phase": phase,
        "seen": hashlib.sha256(canonical_json(seen).encode()).hexdigest()[:16],
        "decisions": [
            {"seat": d.seat, "kind": d.kind, "action": game.action_to_wire(actions[d.seat])}
            for d in game.decisions(state)
        ],
        "events": [msgspec.to_builtins(event) for event in game.step(state, actions).events],
    }


def _line(**fields: Json) -> str:
    return json.dumps(json.loads(canonical_json(fields)), ensure_ascii=True)


def golden_files() -> Iterator[tuple[Path, Iterator[str]]]:
    """Every golden file and its lines: playthroughs, and traces of the games that have a trace format."""
    for each in playthroughs():
        yield each.file, play_golden(each)
    for file, write in TRACES.items():
        yield Path(file), write()


def differences(folder: Path) -> Iterator[str]:
    """Gives the first difference of every golden file, and every file that nobody plays."""
    known: set[Path] = set()
    for file, lines in golden_files():
        path = folder / file
        known.add(path)
        if not path.exists():
            yield f"{path}: expected a golden file, got none; write it with `make golden`"
            continue
        stored = path.read_text(encoding="utf-8").splitlines()
        for number, (old, new) in enumerate(itertools.zip_longest(stored, lines), start=1):
            if old != new:
                yield f"{path}, line {number}: {_first_difference(old, new)}"
                break
    for path in sorted(set(folder.rglob("*.jsonl")) - known):
        yield f"{path}: expected golden files of known games only, got one that nobody plays; remove it"


def _first_difference(old: str | None, new: str | None) -> str:
    if old is None:
        return "expected an end, got a line more"
    if new is None:
        return "expected this line, got an end"
    at = next((i for i, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), len(old))
    start = max(0, at - 60)
    return f"expected ...{old[start : at + 40]}..., got ...{new[start : at + 40]}..."


def write(folder: Path) -> int:
    """Writes every golden file; gives their number."""
    num = 0
    for file, lines in golden_files():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        num += 1
    return num


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m cogeval.testing.golden", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the files instead of comparing")
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"where they are (default {FOLDER})")
    options = parser.parse_args(arguments)
    if options.write:
        print(f"wrote {write(options.folder)} golden files to {options.folder}")  # noqa: T201 - a command line
        return 0
    found = list(differences(options.folder))
    for line in found:
        print(line)  # noqa: T201 - a command line
    print(f"{len(found) or 'no'} golden files differ")  # noqa: T201 - a command line
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
