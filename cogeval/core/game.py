"""What a game is: rules and parameters as pure functions over immutable states.

Invariant: a game object holds no episode. `step` leaves its argument unchanged, the seed is the only
source of chance, and `decisions` alone says who decides now (nobody: the episode is over; one seat: a
turn; several: a simultaneous phase). Must not know agents, clocks or stores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

import msgspec
import numpy as np

from cogeval.core.rng import Stream

Seat: TypeAlias = int
"""Index of a place at the table, 0 .. seats - 1."""

Json: TypeAlias = Any
"""A JSON value: None, bool, int, float, str, list of Json, or dict of str to Json."""

S = TypeVar("S")
A = TypeVar("A")
O = TypeVar("O")  # noqa: E741 - the letter that DESIGN and the protocol use for an observation
A_co = TypeVar("A_co", covariant=True)


class GameSpec(msgspec.Struct, frozen=True):
    """A game's identity and shape, the same for all its parameters."""

    name: str
    version: str  # changes whenever any episode could come out differently
    seats_min: int
    seats_max: int
    baselines: tuple[str, ...]  # names that `Game.baseline` accepts; the first is the usual fallback
    score_min: float | None = None  # None: unbounded
    score_max: float | None = None


@runtime_checkable
class Legal(Protocol[A_co]):
    """The legal actions of one decision: a container that need not be countable."""

    def __contains__(self, action: object) -> bool:
        """True when the action is legal; speech and notes are ignored."""

    def sample(self, rng: Stream) -> A_co:
        """Draws one legal action: uniformly where countable, else as the game finds sensible."""

    def __iter__(self) -> Iterator[A_co]:
        """Iterates in the game's own order, where countable; else raises TypeError."""

    def __len__(self) -> int:
        """Number of legal actions, where countable; else raises TypeError."""


class Decision(msgspec.Struct, Generic[A], frozen=True, gc=False):
    """One seat's turn to decide."""

    seat: Seat
    kind: str  # the game's word for this sort of decision, for example "lab"
    legal: Legal[A]
    default: A  # the do-nothing action of this moment; always legal


class Step(msgspec.Struct, Generic[S], frozen=True, gc=False):
    """What a phase led to."""

    next: S  # the state in which the next phase opens, or the final state
    resolved: S  # the state after this phase resolved and before the next one opened
    events: tuple[Any, ...]  # the game's own frozen event values, in order


class Prompt(msgspec.Struct, frozen=True):
    """The text that a model seat reads."""

    system: str
    user: str


class SeatResult(msgspec.Struct, frozen=True, gc=False):
    """One seat's outcome."""

    score: float
    rank_key: tuple[float, ...]  # higher is better, compared as a tuple; need not be the score
    statistics: Mapping[str, float]  # the game's own per-seat figures, a stable set of names


class Results(msgspec.Struct, frozen=True):
    """An episode's outcome."""

    reason: str  # "complete", "deadline", or the game's own word
    phases: int  # phases that were resolved
    seats: tuple[SeatResult, ...]


class Game(Protocol[S, A, O]):
    """Rules and parameters of one game; see the module docstring for the invariant."""

    spec: GameSpec
    parameters: Mapping[str, Json]  # every parameter, defaults included, JSON values only
    seats: int  # number of seats under these parameters

    def initial_state(self, seed: int) -> S:
        """The state in which the first phase opens. The seed is a signed 64-bit integer."""

    def decisions(self, state: S) -> tuple[Decision[A], ...]:
        """Who decides now, in seat order; empty when the episode is over."""

    def why_illegal(self, state: S, seat: Seat, action: A) -> str | None:
        """The game's reason word when the action is illegal for the seat now, else None."""

    def explain_illegal(self, state: S, seat: Seat, action: A, reason: str) -> str:
        """Says in the words of a reply why an action is illegal: the hint before the retry."""

    def step(self, state: S, actions: Mapping[Seat, A]) -> Step[S]:
        """Resolves a phase. `actions` holds exactly the deciding seats; never raises on those."""

    def stop(self, state: S) -> Step[S]:
        """Ends the episode early, as the clock does; only between phases, on an open state."""

    def observe(self, state: S, seat: Seat) -> O:
        """Everything that the seat may know and nothing else; cheap, rendered lazily."""

    def prompt(self, observation: O) -> Prompt:
        """System and user text for a model seat."""

    def reply_schema(self, decision: Decision[A]) -> Mapping[str, Json]:
        """JSON schema of a reply to this decision."""

    def parse_reply(self, state: S, seat: Seat, reply: Mapping[str, object]) -> A:
        """Reads a reply object as an action.

        Raises:
            ActionError: when it cannot be read; the hint says what to write instead.
        """

    def action_to_wire(self, action: A) -> Json:
        """The action as JSON."""

    def action_from_wire(self, value: Json) -> A:
        """The inverse of `action_to_wire`."""

    def observation_to_wire(self, observation: O) -> Json:
        """The observation as JSON, for agents in other processes."""

    def observation_from_wire(self, value: Json) -> O:
        """The inverse of `observation_to_wire`."""

    def baseline(self, name: str, state: S, seat: Seat, seed: int) -> A:
        """What the game's scripted baseline decides: a pure function, privileged to read the state.

        Raises:
            InputError: when the game has no such baseline; the message names those it has.
        """

    def results(self, state: S) -> Results:
        """The outcome of a finished episode."""

    def resample_hidden(self, state: S, seat: Seat, rng: np.random.Generator) -> S:
        """Another state that this seat cannot tell apart: everything hidden from it redrawn."""


AnyGame: TypeAlias = Game[Any, Any, Any]
"""A game whose state, action and observation types do not matter to the caller."""
