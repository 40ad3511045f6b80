"""Cogchemists as the episode loop knows it: the `Game` protocol over the functions of this package.

Invariant: holds parameters only, never an episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from cogeval.core.game import AnyGame, Decision, GameSpec, Json, Prompt, Results, SeatResult, Step
from cogeval.errors import InputError, unknown_name
from cogeval.games.cogchemists import baselines, reply, resample, rules, text, view
from cogeval.games.cogchemists.constants import ROUNDS_MAX, ROUNDS_MIN, SEATS
from cogeval.games.cogchemists.state import PASS, Action, Event, Parameters, State
from cogeval.games.cogchemists.view import Observation

SPEC: Final = GameSpec(
    name="cogchemists",
    version="1",
    seats_min=SEATS,
    seats_max=SEATS,
    baselines=baselines.BASELINES,
)


def _rank_key(state: State, seat: int) -> tuple[float, ...]:
    """R8.3 in fifths of a point: equal scores must tie, and sums with 0.2 differ in their last bit."""
    return (5 * state.reputation[seat] + state.coin[seat],)


class Cogchemists:
    """Four seats race to publish a hidden chemistry (RULES.md).

    Args:
        rounds: of one episode, 3..10.
        talk: False silences every remark.
        artifacts: False closes the shop.

    Raises:
        InputError: when a parameter is out of its range or of the wrong type.
    """

    spec = SPEC
    seats = SEATS

    def __init__(self, rounds: int = 6, talk: bool = True, artifacts: bool = True) -> None:
        if type(rounds) is not int or not ROUNDS_MIN <= rounds <= ROUNDS_MAX:
            raise InputError(
                f"expected rounds of cogchemists as a whole number {ROUNDS_MIN}..{ROUNDS_MAX}, got {rounds!r}"
            )
        for name, value in (("talk", talk), ("artifacts", artifacts)):
            if type(value) is not bool:
                raise InputError(f"expected {name} of cogchemists as true or false, got {value!r}")
        self._parameters = Parameters(rounds, talk, artifacts)
        self.parameters: Mapping[str, Json] = {"rounds": rounds, "talk": talk, "artifacts": artifacts}

    def initial_state(self, seed: int) -> State:
        """The state in which the first lab opens."""
        return rules.opening_state(self._parameters, seed)

    def opening_events(self, state: State) -> tuple[Event, ...]:
        """The events of an initial state, which no step carries: start, round, phase."""
        return rules.opening_events(state)

    def decisions(self, state: State) -> tuple[Decision[Action], ...]:
        """All four seats at once, or nobody when the episode is over."""
        if state.reason:
            return ()
        parameters, phase = self._parameters, state.phase
        return tuple(
            [Decision(seat, phase, rules.moves_of(parameters, state, seat), PASS) for seat in range(SEATS)]
        )

    def why_illegal(self, state: State, seat: int, action: Action) -> str | None:
        """The reason word when the action is illegal for the seat now, else None."""
        return rules.moves_of(self._parameters, state, seat).why_illegal(action)

    def explain_illegal(self, state: State, seat: int, action: Action, reason: str) -> str:  # noqa: ARG002 - the words are the action's own
        """Says why an action is illegal, and where the legal ones stand."""
        return f"{text.named_action(action)} is not legal now: {reason}; choose one of your legal actions"

    def step(self, state: State, actions: Mapping[int, Action]) -> Step[State]:
        """Resolves the open phase; an action that is illegal by its turn is rejected with its reason."""
        return rules.resolve_phase(self._parameters, state, actions)

    def stop(self, state: State) -> Step[State]:
        """Ends the episode between phases: the exhibition is held on the board as it stands."""
        return rules.end(state, "deadline")

    def observe(self, state: State, seat: int) -> Observation:
        """What the seat sees of an open state."""
        return view.observe(self._parameters, state, seat)

    def prompt(self, observation: Observation) -> Prompt:
        """System and user text for a model seat."""
        return text.prompt(observation)

    def reply_schema(self, decision: Decision[Action]) -> Mapping[str, Json]:
        """JSON schema of a reply to this decision."""
        return reply.reply_schema(decision.kind, decision.legal)

    def parse_reply(self, state: State, seat: int, reply_: Mapping[str, object]) -> Action:  # noqa: ARG002 - any seat's reply reads the same
        """Reads a reply object as an action.

        Raises:
            ActionError: when it cannot be read.
        """
        return reply.parse_reply(state.phase, reply_)

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

    def baseline(self, name: str, state: State, seat: int, seed: int) -> Action:
        """What the scripted baseline decides for the seat; `seed` is the episode's.

        Raises:
            InputError: when there is no such baseline.
        """
        moves, known = rules.moves_of(self._parameters, state, seat), state.known[seat]
        if name == "assayer":
            return baselines.assayer(moves, known, state.demand)
        if name == "quack":
            return baselines.quack(moves, known, seed, state.round)
        raise unknown_name("baseline of cogchemists", name, SPEC.baselines)

    def results(self, state: State) -> Results:
        """The outcome of a finished episode (R8.3)."""
        scores = state.scores
        return Results(
            state.reason,
            state.phases,
            tuple(
                [
                    SeatResult(scores[seat], _rank_key(state, seat), rules.statistics(state, seat))
                    for seat in range(SEATS)
                ]
            ),
        )

    def resample_hidden(self, state: State, seat: int, rng: np.random.Generator) -> State:
        """Another open state that the seat cannot tell apart."""
        return resample.resample_hidden(state, seat, rng)


_: AnyGame = Cogchemists()  # the type checker holds this class to the protocol
