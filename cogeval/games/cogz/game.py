"""COGZ as the episode loop knows it: the `Game` protocol over the functions of this package.

Invariant: holds parameters only, never an episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from cogeval.core.game import AnyGame, Decision, GameSpec, Json, Prompt, Results, Step
from cogeval.errors import InputError, unknown_name
from cogeval.games.cogz import baselines, lines, reply, resample, rules, text, view
from cogeval.games.cogz.legal import Swaps
from cogeval.games.cogz.state import Action, Event, Parameters, State
from cogeval.games.cogz.tiles import SHAPES
from cogeval.games.cogz.view import Observation

SPEC: Final = GameSpec(
    name="cogz",
    version="1",
    seats_min=min(SHAPES),
    seats_max=max(SHAPES),
    baselines=baselines.BASELINES,
    score_min=0.0,
)

SWAP: Final = "swap"
BONUS: Final = "bonus"
"""The kinds of decisions: the swap of a turn, and one that a token past the lever has won."""

_PAIR_COPIES: Final = (1, 3, 5, 7, 9, 11)  # those that leave a whole number of copies of the others
_MOST_LEVER: Final = 99
_MOST_NUTS: Final = 12


class Cogz:
    """Two to six seats swap tiles to lengthen and close chains of one colour (RULES.md).

    Args:
        seats: 2..6; they decide the board and the rounds.
        lever: space of the bonus lever, 1..99; None: 20 - seats.
        pair_copies: of each tile of two colours: 1, 3, 5, 7, 9 or 11.
        nuts_per_colour: 0..12.
        setup_locks: False: mechanisms that lie there at the start are not locked.
        open_hands: True: all seats see all hands.

    Raises:
        InputError: when a parameter is out of its range or of the wrong type.
    """

    spec = SPEC

    def __init__(
        self,
        seats: int = 2,
        lever: int | None = None,
        pair_copies: int = 7,
        nuts_per_colour: int = 3,
        setup_locks: bool = True,
        open_hands: bool = False,
    ) -> None:
        _check_number("seats", seats, SPEC.seats_min, SPEC.seats_max)
        if lever is not None:
            _check_number("lever", lever, 1, _MOST_LEVER, or_else=" or null")
        if type(pair_copies) is not int or pair_copies not in _PAIR_COPIES:
            listed = ", ".join(map(str, _PAIR_COPIES))
            raise InputError(f"expected pair_copies of cogz as one of {listed}, got {pair_copies!r}")
        _check_number("nuts_per_colour", nuts_per_colour, 0, _MOST_NUTS)
        for name, value in (("setup_locks", setup_locks), ("open_hands", open_hands)):
            if type(value) is not bool:
                raise InputError(f"expected {name} of cogz as true or false, got {value!r}")
        self.seats = seats
        self._parameters = Parameters(
            seats, lever or 0, pair_copies, nuts_per_colour, setup_locks, open_hands
        )
        self.parameters: Mapping[str, Json] = {
            "seats": seats,
            "lever": lever,
            "pair_copies": pair_copies,
            "nuts_per_colour": nuts_per_colour,
            "setup_locks": setup_locks,
            "open_hands": open_hands,
        }

    def initial_state(self, seed: int) -> State:
        """The state in which the first seat decides."""
        return rules.opening_state(self._parameters, seed)

    def opening_events(self, state: State) -> tuple[Event, ...]:
        """The events of an initial state, which no step carries."""
        return rules.opening_events(state)

    def decisions(self, state: State) -> tuple[Decision[Action], ...]:
        """The seat whose turn it is, or nobody when the episode is over."""
        if state.reason:
            return ()
        legal = Swaps(state.layout, state.hands[state.seat])
        kind = BONUS if state.bonus else SWAP
        return (Decision(state.seat, kind, legal, legal.first_idle()),)

    def why_illegal(self, state: State, seat: int, action: Action) -> str | None:
        """The reason word when the swap is illegal for the seat now, else None."""
        if seat != state.seat:
            return "not_your_turn"
        return Swaps(state.layout, state.hands[seat]).why_illegal(action)

    def explain_illegal(self, state: State, seat: int, action: Action, reason: str) -> str:
        """Says why a swap is illegal, and what its cell would take."""
        return lines.explain_illegal(state.layout, state.hands[seat], action, reason)

    def step(self, state: State, actions: Mapping[int, Action]) -> Step[State]:
        """Carries out the swap of the seat whose turn it is."""
        return rules.swap(self._parameters, state, actions[state.seat])

    def stop(self, state: State) -> Step[State]:
        """Ends the episode between swaps: the board counts as it stands."""
        return rules.end(state, "deadline")

    def observe(self, state: State, seat: int) -> Observation:
        """What the seat sees of an open state."""
        return view.observe(self._parameters, state, seat)

    def prompt(self, observation: Observation) -> Prompt:
        """System and user text for a model seat."""
        return text.prompt(observation)

    def reply_schema(self, decision: Decision[Action]) -> Mapping[str, Json]:
        """JSON schema of a reply to this decision."""
        legal = decision.legal
        assert isinstance(legal, Swaps)
        return reply.reply_schema(self._parameters, legal)

    def parse_reply(self, state: State, seat: int, reply_: Mapping[str, object]) -> Action:
        """Reads a reply object as an action.

        Raises:
            ActionError: when it cannot be read.
        """
        return reply.parse_reply(state, seat, reply_)

    def action_to_wire(self, action: Action) -> Json:
        """The action as JSON."""
        return view.action_to_wire(action)

    def action_from_wire(self, value: Json) -> Action:
        """The inverse of `action_to_wire`."""
        return view.action_from_wire(value)

    def observation_to_wire(self, observation: Observation) -> Json:
        """The observation as JSON."""
        return view.observation_to_wire(observation)

    def observation_from_wire(self, value: Json) -> Observation:
        """The inverse of `observation_to_wire`."""
        return view.observation_from_wire(value)

    def baseline(self, name: str, state: State, seat: int, seed: int) -> Action:  # noqa: ARG002 - none draws anything
        """What the scripted baseline decides for the seat.

        Raises:
            InputError: when there is no such baseline.
        """
        if name not in SPEC.baselines:
            raise unknown_name("baseline of cogz", name, SPEC.baselines)
        return baselines.decide(name, self._parameters, state, seat)

    def results(self, state: State) -> Results:
        """The outcome of a finished episode."""
        return rules.results(state)

    def resample_hidden(self, state: State, seat: int, rng: np.random.Generator) -> State:
        """Another open state that the seat cannot tell apart."""
        return resample.resample_hidden(self._parameters, state, seat, rng)


def _check_number(name: str, value: object, least: int, most: int, *, or_else: str = "") -> None:
    if type(value) is not int or not least <= value <= most:
        raise InputError(f"expected {name} of cogz as a whole number {least}..{most}{or_else}, got {value!r}")


_: AnyGame = Cogz()  # the type checker holds this class to the protocol
