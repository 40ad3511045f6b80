"""What is done to a run, and when: a pure function of a seed.

Invariant: the same seed gives the same schedule on every machine. Knows names of actions only; what they
do is `chaos_run`'s.
"""

from __future__ import annotations

from dataclasses import dataclass

from cogeval.core.rng import Stream, stream

PROCESSES = (
    "kill worker",
    "kill all workers",
    "freeze worker",
    "kill worker at a touch",
    "kill worker at a seal",
)
"""Actions on the processes that play."""

SEATS = ("kill seat actor",)
"""Actions on seat actors; drawn only for runs that have some."""

NODES = ("kill node", "add node")
"""Actions on whole machines."""

ENDINGS = (
    "kill driver",
    "kill driver at a seal",
    "kill driver at a touch",
    "kill driver early",
    "stop driver",
)
"""Ways in which a stretch of playing ends before the run does."""

_LAST = 0.85  # share of the run after which nothing is done any more: it might be over


@dataclass(frozen=True, slots=True)
class Step:
    """One action."""

    at: float  # share of the episodes that are finished when it happens, 0..1
    action: str
    pick: int  # 32 bits: which process, which touch, how long

    def __str__(self) -> str:
        return f"{self.action} ({self.at:.0%})"


@dataclass(frozen=True, slots=True)
class Stretch:
    """What happens to one driver, from `cogeval run` or `cogeval resume` to its end."""

    steps: tuple[Step, ...]  # ascending in `at`
    ending: Step | None  # None: it plays to the end of the run

    @property
    def actions(self) -> tuple[Step, ...]:
        """Everything that is done, in order."""
        return self.steps if self.ending is None else (*self.steps, self.ending)


def draw_schedule(
    seed: int, *, nodes: bool = True, seats: bool = False, most_stretches: int = 3
) -> tuple[Stretch, ...]:
    """Draws what is done to one run.

    Args:
        seed: any integer.
        nodes: kill and add nodes too.
        seats: kill seat actors too.
        most_stretches: drivers at most that do not play to the end.

    Returns:
        One stretch a driver; the last one's has no ending. At least one process is killed.
    """
    draw = stream(seed, "chaos")
    actions = PROCESSES + (NODES if nodes else ()) + (SEATS if seats else ())
    num_ended = draw.below(most_stretches + 1)
    counts = [draw.below(3) for _ in range(num_ended)] + [draw.below(3) if num_ended else 1 + draw.below(3)]
    moments = sorted(0.05 + draw.unit() * (_LAST - 0.05) for _ in range(sum(counts) + num_ended))
    stretches, used = [], 0
    for number, count in enumerate(counts):
        steps = tuple(_step(draw, moments[used + i], actions) for i in range(count))
        used += count
        ending = None
        if number < num_ended:
            ending = _step(draw, moments[used], ENDINGS)
            used += 1
        stretches.append(Stretch(steps, ending))
    return tuple(stretches)


def _step(draw: Stream, at: float, actions: tuple[str, ...]) -> Step:
    return Step(at, actions[draw.below(len(actions))], draw.below(1 << 32))
