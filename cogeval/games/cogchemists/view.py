"""What one seat sees, as a value of its own.

Invariant: an `Observation` holds no reference to the state, only columns that the seat may see (R9);
what follows from them (grid, legal moves, scores) is worked out when it is asked for.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec.structs import replace

from cogeval.core.game import Json
from cogeval.games.cogchemists.deduction import NO_FACTS, Fact, Knowledge, MixFull, knowledge_of
from cogeval.games.cogchemists.legal import Moves
from cogeval.games.cogchemists.state import Act, Action, Parameters, Seal, State, score


class Observation(msgspec.Struct, frozen=True, gc=False):
    """Everything that one seat may know when a phase opens. Columns hold one entry a seat."""

    seat: int  # the seat that sees this, 0..3
    rounds: int  # of the whole game
    talk: bool
    artifacts: bool
    round: int  # from 0
    phase: str  # "lab" or "market"
    demand: str  # potion in demand this round
    initiative: tuple[int, ...]  # seats in resolution order
    names: tuple[str, ...]
    coin: tuple[int, ...]
    reputation: tuple[int, ...]
    mortar: tuple[bool, ...]
    press: tuple[bool, ...]
    num_cards: tuple[int, ...]  # in each hand
    seals: tuple[Seal, ...]  # the board, burned seals included
    public_facts: tuple[Fact, ...]
    record: tuple[Act, ...]  # public part of everything done so far
    heard: tuple[str, ...]  # last phase's remarks
    hand: tuple[int, ...]  # own cards
    notes: str  # own notes
    private_facts: tuple[MixFull, ...]  # results of own tests
    known: Knowledge = NO_FACTS  # what the facts leave

    @property
    def moves(self) -> Moves:
        """The seat's legal actions."""
        return Moves(
            self.seat,
            self.phase,
            self.coin[self.seat],
            self.hand,
            self.seals,
            self.mortar[self.seat],
            self.press[self.seat],
            self.artifacts,
        )

    @property
    def grid(self) -> tuple[tuple[int, ...], ...]:
        """For each ingredient: the signatures that it still takes."""
        return self.known.grid

    @property
    def chemistries(self) -> int:
        """How many chemistries are left."""
        return self.known.count

    @property
    def scores(self) -> tuple[float, ...]:
        """Each seat's score so far."""
        return tuple(score(r, c) for r, c in zip(self.reputation, self.coin, strict=True))

    @property
    def published(self) -> tuple[tuple[int, ...], ...]:
        """For each seat: the ingredients that it has published, repeats included."""
        return tuple(
            tuple(seal.ingredient for seal in self.seals if seal.author == seat)
            for seat in range(len(self.names))
        )


def observe(parameters: Parameters, state: State, seat: int) -> Observation:
    """What the seat sees of an open state (R9.1)."""
    known = state.known[seat]
    return Observation(
        seat,
        parameters.rounds,
        parameters.talk,
        parameters.artifacts,
        state.round,
        state.phase,
        state.demand,
        state.initiative,
        state.names,
        state.coin,
        state.reputation,
        state.mortar,
        state.press,
        tuple([len(hand) for hand in state.hands]),
        state.seals,
        state.public_facts,
        state.record,
        state.say,
        state.hands[seat],
        state.notes[seat],
        state.private_facts[seat],
        Knowledge(known.key, known.survivors),  # a copy: the state's is shared between seats and episodes
    )


def observation_to_wire(observation: Observation) -> dict[str, Json]:
    """The observation as JSON, with what follows from it spelled out for agents in any language."""
    wire: dict[str, Any] = msgspec.to_builtins(observation, enc_hook=_knowledge_to_wire)
    wire["grid"] = [list(candidates) for candidates in observation.grid]
    wire["chemistries"] = observation.chemistries
    wire["scores"] = list(observation.scores)
    wire["published"] = [list(ingredients) for ingredients in observation.published]
    wire["legal"] = [action_to_wire(action) for action in observation.moves]
    del wire["known"]  # the grid and the facts say it
    return wire


def _knowledge_to_wire(value: object) -> object:
    if isinstance(value, Knowledge):
        return value.key
    raise NotImplementedError(f"expected knowledge, got {value!r}")


def observation_from_wire(value: Json) -> Observation:
    """The inverse of `observation_to_wire`; what follows from the rest is worked out again."""
    observation = msgspec.convert(value, Observation)
    known = knowledge_of(observation.public_facts, observation.private_facts)
    return replace(observation, known=known)


def action_to_wire(action: Action) -> dict[str, Json]:
    """The action as JSON, every field present."""
    wire: dict[str, Json] = msgspec.to_builtins(action)
    return wire


def action_from_wire(value: Json) -> Action:
    """The inverse of `action_to_wire`."""
    return msgspec.convert(value, Action)
