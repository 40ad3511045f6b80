"""What a summary is made from: who played, and the flat rows of their seats and decisions.

Invariant: the columns of a `SeatRows` that exists have one length. It must not know where they came from.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from cogeval.errors import InputError
from cogeval.ratings.table import BoolArray, FloatArray, IntArray

__all__ = ["AgentIdentity", "DecisionTimes", "FaultReason", "SeatRows"]


@dataclass(frozen=True, slots=True)
class AgentIdentity:
    """Who an agent is: its name in the pool, its version and what pins both to code and parameters."""

    name: str
    version: str = ""
    fingerprint: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class SeatRows:
    """The seats of all recorded episodes, flat: one entry per seat that an agent held.

    Args:
        agent: int [num_seats], index into the agents of the run.
        episode: int [num_seats], any number that is equal exactly for seats of one episode.
        score: float [num_seats], in the game's score.
        share: float [num_seats], (seats beaten + half the ties) / (seats - 1); NaN without opponents.
        scored: bool [num_seats], False for forfeits: left out of score statistics.
        num_decisions: int [num_seats].
        num_fallbacks: int [num_seats], decisions that a fallback made.
        num_faults: int [num_seats], attempts with a fault.
        think_s: float [num_seats], seconds of thinking over all decisions of the seat.
        cost_usd: float [num_seats].
        tokens_in: int [num_seats].
        tokens_out: int [num_seats].

    Raises:
        InputError: the arrays differ in length.
    """

    agent: IntArray
    episode: IntArray
    score: FloatArray
    share: FloatArray
    scored: BoolArray
    num_decisions: IntArray
    num_fallbacks: IntArray
    num_faults: IntArray
    think_s: FloatArray
    cost_usd: FloatArray
    tokens_in: IntArray
    tokens_out: IntArray

    def __post_init__(self) -> None:
        num = len(self.agent)
        for column in fields(self):
            got = len(getattr(self, column.name))
            if got != num:
                raise InputError(f"expected {num} entries of {column.name}, one per seat, got {got}")


@dataclass(frozen=True, slots=True, eq=False)
class DecisionTimes:
    """Think times of single attempts by the agents themselves, all of them or a fair sample.

    Args:
        agent: int [num_attempts], index into the agents of the run.
        think_s: float [num_attempts], seconds; NaN where it was not told.
    """

    agent: IntArray
    think_s: FloatArray


@dataclass(frozen=True, slots=True)
class FaultReason:
    """What an agent's faults of one kind were, in the words of their `detail`.

    Args:
        agent: index into the agents of the run.
        kind: of the fault.
        detail: what was wrong, as the store keeps it; may hold anything that an agent can say.
        num_attempts: attempts with exactly this detail.
    """

    agent: int
    kind: str
    detail: str
    num_attempts: int
