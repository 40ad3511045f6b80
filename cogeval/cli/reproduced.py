"""What came of playing a run again, counted, and printed for people or as JSON.

Invariant: of any number of differences the first ones in the order of the schedule are kept, and all
are counted. Plays nothing and reads no store.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from cogeval.cli.output import counted, print_json, show, warn
from cogeval.core.record import run_digest
from cogeval.report.layout import escaped
from cogeval.report.reproduction import Difference
from cogeval.store.shards import DamagedShard

_KEPT_DIFFERENCES: Final = 100  # of the first ones, in the order of the schedule
_SHOWN_DIFFERENCES: Final = 3


@dataclass(slots=True)
class Reproduction:
    """What came of playing a run again.

    Args:
        run_id: of the run.
        from_journal: agents that answered from the journal.
        changed: how agents differ from those that the run began with, by name.
        num_recorded: episodes that are recorded, damaged ones included.
        num_void: episodes that were given up and have no result.
        num_missing: scheduled episodes that are neither.
    """

    run_id: str
    from_journal: tuple[str, ...]
    changed: dict[str, str]
    num_recorded: int
    num_void: int
    num_missing: int
    played: set[int] = field(default_factory=set)  # places in the schedule, of what was to be read too
    differing: set[int] = field(default_factory=set)  # of these
    differences: list[Difference] = field(default_factory=list)
    damaged: list[DamagedShard] = field(default_factory=list)
    recorded_digests: list[bytes] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)

    @property
    def is_reproduced(self) -> bool:
        """True when everything that was to be read was read and came out as recorded."""
        return bool(self.num_played) and not (self.num_differing or self.damaged)

    @property
    def num_played(self) -> int:
        """Episodes that were read, or should have been."""
        return len(self.played)

    @property
    def num_differing(self) -> int:
        """Of these, how many are not as recorded."""
        return len(self.differing)

    def note(self, difference: Difference) -> None:
        """Keeps the first differences in the order of the schedule, and counts all."""
        self.differing.add(difference.index)
        self.differences.append(difference)
        if len(self.differences) > 2 * _KEPT_DIFFERENCES:
            self.settle()

    def settle(self) -> None:
        """Puts the differences in order."""
        self.differences.sort(key=lambda difference: difference.index)
        del self.differences[_KEPT_DIFFERENCES:]


def report(outcome: Reproduction, called: str, *, is_whole: bool, as_json: bool) -> None:
    """Prints what came of it, on stderr what changed and what is damaged.

    Args:
        outcome: what came of it.
        called: how to name the run on the command line.
        is_whole: no selection was made.
        as_json: one JSON object instead of text.
    """
    warn(shard.message(called) for shard in outcome.damaged)
    warn(_changed_line(name, how, outcome) for name, how in outcome.changed.items())
    if as_json:
        print_json(_facts(outcome, is_whole))
    else:
        show(*map(escaped, _lines(outcome, is_whole)))


def _changed_line(name: str, how: str, outcome: Reproduction) -> str:
    harmless = "; its seats answer from the journal all the same" if name in outcome.from_journal else ""
    return f"agent {name} changed since the run began: {how}{harmless}"


def _facts(outcome: Reproduction, is_whole: bool) -> dict[str, Any]:
    return {
        "run_id": outcome.run_id,
        "reproduced": outcome.is_reproduced,
        "whole": is_whole,
        "episodes": outcome.num_played,
        "equal": outcome.num_played - outcome.num_differing,
        "digest": run_digest(outcome.recorded_digests) if outcome.num_played else None,
        "digest_now": run_digest(outcome.digests) if outcome.digests else None,
        "recorded": outcome.num_recorded,
        "void": outcome.num_void,
        "missing": outcome.num_missing,
        "from_journal": list(outcome.from_journal),
        "changed_agents": outcome.changed,
        "damaged": [
            {"shard": d.shard_id, "file": d.file, "problem": d.problem, "episodes": d.num_episodes}
            for d in outcome.damaged
        ],
        "differences": [msgspec.to_builtins(difference) for difference in outcome.differences],
    }


def _lines(outcome: Reproduction, is_whole: bool) -> list[str]:
    equal = outcome.num_played - outcome.num_differing
    lines = [
        f"reproduced: {equal:,} of {counted(outcome.num_played, 'episode')}, {_digests(outcome, is_whole)}"
    ]
    if outcome.from_journal:
        lines.append(f"answered from the journal, nothing was called: {', '.join(outcome.from_journal)}")
    if outcome.num_void:
        lines.append(f"{counted(outcome.num_void, 'episode')} void: given up, nothing to play again")
    if outcome.num_missing:
        lines.append(f"{counted(outcome.num_missing, 'episode')} of the schedule not recorded")
    for difference in outcome.differences[:_SHOWN_DIFFERENCES]:
        place = f"episode {difference.index}, seed {difference.seed}"
        if difference.phase is not None:
            place += f", phase {difference.phase}"
        if difference.seat is not None:
            place += f", seat {difference.seat} ({difference.agent})"
        lines += [
            "",
            f"{place}, {difference.column}:",
            f"  recorded  {difference.recorded}",
            f"  now       {difference.now}",
        ]
        lines.append(f"  {difference.cause:<9} {difference.why}")
    more = outcome.num_differing - _SHOWN_DIFFERENCES
    if more > 0:
        lines += [
            "",
            f"and {counted(more, 'more episode')} that came out otherwise; --json lists the first 100",
        ]
    return lines


def _digests(outcome: Reproduction, is_whole: bool) -> str:
    if not outcome.num_played:
        return "nothing could be read" if outcome.damaged else "nothing is recorded"
    what = "run digest" if is_whole and not outcome.damaged else "digest of these"
    then = run_digest(outcome.recorded_digests)
    now = run_digest(outcome.digests) if outcome.digests else "none"
    return f"{what} equal {then}" if then == now else f"{what} recorded {then}, now {now}"
