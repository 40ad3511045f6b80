"""The course of an episode: how it opens, how a phase leads to the next, how it ends.

Invariant: every function takes a state and gives new values; the numbers (R3.1) are those of RULES.md.
Must not know agents, observations or text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from cogeval.core.game import Step
from cogeval.core.rng import NimStream
from cogeval.games.cogchemists.board import Board
from cogeval.games.cogchemists.constants import (
    LAB,
    MARKET,
    NUM_DEMANDS,
    NUM_INGREDIENTS,
    POTIONS,
    SEATS,
    START_CARDS,
    START_COIN,
    START_REPUTATION,
)
from cogeval.games.cogchemists.deduction import NO_FACTS, Knowledge
from cogeval.games.cogchemists.legal import Moves
from cogeval.games.cogchemists.state import (
    Action,
    Ended,
    Event,
    Exhibition,
    Parameters,
    PhaseOpened,
    RoundOpened,
    Started,
    State,
    Verdict,
)
from cogeval.games.league import seated_aliases

_NONE: Final = (0,) * SEATS
_SILENCE: Final = ("",) * SEATS
_UNOWNED: Final = (False,) * SEATS


def opening_state(parameters: Parameters, seed: int) -> State:
    """The state in which the first lab opens (R1.3, R1.4)."""
    world = NimStream(seed * 7919 + 17)
    chemistry = list(range(NUM_INGREDIENTS))
    world.shuffle(chemistry)
    demands = [POTIONS[world.rand(NUM_DEMANDS - 1)] for _ in range(parameters.rounds)]
    cards = [world.rand(NUM_INGREDIENTS - 1) for _ in range(SEATS * START_CARDS)]
    return State(
        names=seated_aliases(seed, SEATS),
        chemistry=tuple(chemistry),
        demands=tuple(demands),
        words=world.words,
        round=0,
        phase=LAB,
        phases=0,
        rounds_played=0,
        reason="",
        coin=(START_COIN,) * SEATS,
        reputation=(START_REPUTATION,) * SEATS,
        hands=tuple([tuple(cards[i : i + START_CARDS]) for i in range(0, len(cards), START_CARDS)]),
        mortar=_UNOWNED,
        press=_UNOWNED,
        seals=(),
        public_facts=(),
        private_facts=((),) * SEATS,
        say=_SILENCE,
        notes=_SILENCE,
        record=(),
        known=(NO_FACTS,) * SEATS,
    )


def opening_events(state: State) -> tuple[Event, ...]:
    """The events that precede the first decision; no step carries them."""
    return (
        Started(state.names),
        RoundOpened(state.round, state.demand, state.initiative, _NONE),
        PhaseOpened(state.round, state.phase),
    )


def moves_of(parameters: Parameters, state: State, seat: int) -> Moves:
    """What the seat may do now."""
    return Moves(
        seat,
        state.phase,
        state.coin[seat],
        state.hands[seat],
        state.seals,
        state.mortar[seat],
        state.press[seat],
        parameters.artifacts,
    )


def resolve_phase(parameters: Parameters, state: State, actions: Mapping[int, Action]) -> Step[State]:
    """Resolves the open phase in initiative order, then opens the next one or ends (R3)."""
    board = Board(parameters, state)
    for seat in state.initiative:
        board.resolve(seat, actions[seat])
    resolved = board.frozen()
    if state.phase == LAB:
        opened = replace(resolved, phase=MARKET, known=_refreshed(state, resolved))
        return Step(opened, resolved, (*board.acts, PhaseOpened(state.round, MARKET)))
    if state.round + 1 == parameters.rounds:
        ending = end(resolved, "complete")
        return Step(ending.next, resolved, (*board.acts, *ending.events))
    royalties = _royalties(resolved)
    opened = replace(
        resolved,
        round=state.round + 1,
        phase=LAB,
        coin=tuple([coin + paid for coin, paid in zip(resolved.coin, royalties, strict=True)]),
        known=_refreshed(state, resolved),
    )
    events = (
        *board.acts,
        RoundOpened(opened.round, opened.demand, opened.initiative, royalties),
        PhaseOpened(opened.round, LAB),
    )
    return Step(opened, resolved, events)


def _refreshed(state: State, resolved: State) -> tuple[Knowledge, ...]:
    """What each seat knows when the next phase opens: the facts of this phase are new (R7.3)."""
    public = resolved.public_facts[len(state.public_facts) :]
    if not public and resolved.private_facts is state.private_facts:
        return state.known
    return tuple(
        [
            knowledge.learn((*public, *after[len(before) :]))
            for knowledge, before, after in zip(
                state.known, state.private_facts, resolved.private_facts, strict=True
            )
        ]
    )


def _royalties(state: State) -> tuple[int, ...]:
    """What the standing seals pay their authors when a round opens (R3.1)."""
    paid = [0] * SEATS
    for seal in state.seals:
        if seal.status == "standing":
            paid[seal.author] += 2 if state.press[seal.author] else 1
    return tuple(paid)


def end(state: State, reason: str) -> Step[State]:
    """Holds the exhibition on the board as it stands and ends the episode (R8.1, R8.2)."""
    deltas = [0] * SEATS
    verdicts = []
    for seal in state.seals:
        if seal.status == "standing":
            true = state.chemistry[seal.ingredient] == seal.claim
            deltas[seal.author] += 5 if true else -6
            for endorser in seal.endorsers:
                deltas[endorser] += 2 if true else -3
            verdicts.append(Verdict(seal.ingredient, seal.claim, seal.author, seal.endorsers, true))
    reputation = tuple([before + delta for before, delta in zip(state.reputation, deltas, strict=True)])
    over = replace(state, reason=reason, reputation=reputation)
    exhibition = Exhibition(state.round, tuple(verdicts), tuple(deltas), state.chemistry)
    return Step(over, state, (exhibition, Ended(state.rounds_played, reason)))


def statistics(state: State, seat: int) -> dict[str, float]:
    """A seat's figures for the results (R8.4)."""
    own = [seal for seal in state.seals if seal.author == seat]
    true = sum(seal.status == "standing" and state.chemistry[seal.ingredient] == seal.claim for seal in own)
    burned = sum(seal.status == "burned" for seal in own)
    return {
        "reputation": state.reputation[seat],
        "coin": state.coin[seat],
        "published": len(own),
        "true_theories": true,
        "false_theories": len(own) - burned - true,
        "burned": burned,
        "debunks": sum(seal.burned_by == seat for seal in state.seals),
    }
