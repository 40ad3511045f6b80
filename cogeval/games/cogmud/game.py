"""Cogmud as the episode loop knows it: the `Game` protocol over the functions of this package.

Invariant: holds parameters only, never an episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from cogeval.core.game import AnyGame, Decision, GameSpec, Json, Prompt, Results, Step
from cogeval.errors import InputError, unknown_name
from cogeval.games.cogmud import baselines, phrases, reply, resample, rules, text, view
from cogeval.games.cogmud.state import WAIT, Action, Event, Parameters, State
from cogeval.games.cogmud.view import Observation
from cogeval.games.cogmud.world import SEATS, TURNS_MAX, TURNS_MIN

SPEC: Final = GameSpec(
    name="cogmud",
    version="1",
    seats_min=SEATS,
    seats_max=SEATS,
    baselines=baselines.BASELINES,
)

KIND: Final = "turn"
"""The kind of every decision."""


class Cogmud:
    """Six cogs in one town, each saying in one sentence a turn what it does (RULES.md).

    Args:
        turns: of one episode, 6..40.
        speech: False: nothing that is said is heard.
        thievery: False: nobody can be robbed.

    Raises:
        InputError: when a parameter is out of its range or of the wrong type.
    """

    spec = SPEC
    seats = SEATS

    def __init__(self, turns: int = 14, speech: bool = True, thievery: bool = True) -> None:
        if type(turns) is not int or not TURNS_MIN <= turns <= TURNS_MAX:
            raise InputError(
                f"expected turns of cogmud as a whole number {TURNS_MIN}..{TURNS_MAX}, got {turns!r}"
            )
        for name, value in (("speech", speech), ("thievery", thievery)):
            if type(value) is not bool:
                raise InputError(f"expected {name} of cogmud as true or false, got {value!r}")
        self._parameters = Parameters(turns, speech, thievery)
        self.parameters: Mapping[str, Json] = {"turns": turns, "speech": speech, "thievery": thievery}

    def initial_state(self, seed: int) -> State:
        """The state in which the first turn opens."""
        return rules.opening_state(seed)

    def opening_events(self, state: State) -> tuple[Event, ...]:
        """The events of an initial state, which no step carries: start, turn."""
        return rules.opening_events(state)

    def decisions(self, state: State) -> tuple[Decision[Action], ...]:
        """All six seats at once, or nobody when the episode is over."""
        if state.reason:
            return ()
        legal = phrases.phrases_of(state)  # of all seats
        return tuple([Decision(seat, KIND, legal[seat], WAIT) for seat in range(SEATS)])

    def why_illegal(self, state: State, seat: int, action: Action) -> str | None:  # noqa: ARG002 - any sentence may be said by anybody
        """None for every action made of texts: what the town cannot read is a turn lost, not a fault."""
        return phrases.why_illegal(action)

    def explain_illegal(self, state: State, seat: int, action: Action, reason: str) -> str:  # noqa: ARG002 - there is one reason
        """Says what an action consists of."""
        return f"{reason}: expected a sentence, a remark and notes, all of them texts"

    def step(self, state: State, actions: Mapping[int, Action]) -> Step[State]:
        """Resolves the open turn; what the town refuses has no effect but its outcome."""
        return rules.resolve_turn(self._parameters, state, actions)

    def stop(self, state: State) -> Step[State]:
        """Ends the episode between turns, as it stands."""
        return rules.end(state, "deadline")

    def observe(self, state: State, seat: int) -> Observation:
        """What the seat sees of an open state."""
        return view.observe(self._parameters, state, seat)

    def prompt(self, observation: Observation) -> Prompt:
        """System and user text for a model seat."""
        return text.prompt(observation)

    def reply_schema(self, decision: Decision[Action]) -> Mapping[str, Json]:  # noqa: ARG002 - the same for all
        """JSON schema of a reply."""
        return reply.reply_schema()

    def parse_reply(self, state: State, seat: int, reply_: Mapping[str, object]) -> Action:  # noqa: ARG002 - any seat's reply reads the same
        """Reads a reply object as an action.

        Raises:
            ActionError: when it holds no sentence.
        """
        return reply.parse_reply(reply_)

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

    def baseline(self, name: str, state: State, seat: int, seed: int) -> Action:  # noqa: ARG002 - neither draws anything
        """What the scripted baseline decides for the seat.

        Raises:
            InputError: when there is no such baseline.
        """
        if name == "factor":
            return baselines.factor(state, seat)
        if name == "magpie":
            return baselines.magpie(self._parameters, state, seat)
        raise unknown_name("baseline of cogmud", name, SPEC.baselines)

    def results(self, state: State) -> Results:
        """The outcome of a finished episode."""
        return rules.results(state)

    def resample_hidden(self, state: State, seat: int, rng: np.random.Generator) -> State:
        """Another open state that the seat cannot tell apart."""
        return resample.resample_hidden(state, seat, rng)


_: AnyGame = Cogmud()  # the type checker holds this class to the protocol
