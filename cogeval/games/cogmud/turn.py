"""One turn: six sentences become intents, the intents take effect class by class (R2.3 to R2.9).

Invariant: `played` gives a new state and leaves its argument as it was; every seat acts exactly once.
Must not know how a turn opens or how an episode ends.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from cogeval.games.cogmud import cogs, ground, shops
from cogeval.games.cogmud.grammar import parse
from cogeval.games.cogmud.state import Act, Action, Intent, Line, Parameters, State
from cogeval.games.cogmud.town import Town
from cogeval.games.cogmud.world import COMMISSION_UNITS, NOTES_CAP, ONE_LINE, SAY_CAP, SEATS, SENTENCE_CAP
from cogeval.games.league import trimmed

OUTCOMES: Final = (
    "ok", "waited", "unparsed", "no_verb", "no_target", "ambiguous_target", "no_such_exit",
    "no_such_item", "not_carrying", "carry_limit", "no_npc_here", "not_wanted", "out_of_stock",
    "cannot_afford", "npc_broke", "no_matching_commission", "no_such_cog", "not_in_room",
    "self_target", "no_such_offer", "offer_expired", "bound_by_contract", "robbery_failed",
    "nothing_to_take", "thievery_forbidden", "rejected",
)  # fmt: skip
"""Every word that an act can end with; "rejected" is the league's own and never comes up here."""

_Effect = Callable[[Town, int, Intent], str]


def _give(town: Town, seat: int, intent: Intent) -> str:  # R5.3: a named keeper has it
    return shops.hand_over(town, seat, intent) if intent.npc >= 0 else cogs.give(town, seat, intent)


def _say(town: Town, seat: int, intent: Intent) -> str:  # noqa: ARG001 - R2.6: it has been heard already
    return "ok"


def _none(town: Town, seat: int, intent: Intent) -> str:  # noqa: ARG001 - R3: nothing happens
    return intent.reason


_EFFECTS: Final[Mapping[str, tuple[int, _Effect, int]]] = {
    "say": (0, _say, 20),
    "buy": (1, shops.buy, 25),
    "sell": (1, shops.sell, 25),
    "quest": (1, shops.ask, 15),
    "take": (2, ground.take, 15),
    "drop": (2, ground.drop, 15),
    "give": (3, _give, 35),
    "trade": (3, cogs.trade, 40),
    "hire": (3, cogs.hire, 40),
    "accept": (3, cogs.accept, 70),
    "rob": (4, cogs.rob, 100),
    "move": (5, ground.move, 10),
    "wait": (6, ground.wait, 5),
    "none": (6, _none, 5),
}
"""Intent -> its class of resolution (R2.5), what it does, and its salience when it is done (R11.3)."""

_HAND_OVER_CLASS: Final = 1
_KEPT: Final = 8_192  # stored texts that are remembered, if short: most are said again and again
_KEPT_CHARS: Final = 400


def stored(text: str, cap: int) -> str:
    """A text as it is stored: trimmed, on one line, then cut (R2.9)."""
    return _kept_stored(text, cap) if len(text) <= _KEPT_CHARS else _stored(text, cap)


def _stored(text: str, cap: int) -> str:
    return trimmed(text).translate(ONE_LINE)[:cap]


_kept_stored: Final = lru_cache(_KEPT)(_stored)


def open_offers(state: State, seat: int) -> tuple[int, ...]:
    """Who has an offer open to the seat this turn, oldest offer first (R5.6)."""
    before = state.turn - 1
    return tuple([offer.sender for offer in state.offers if offer.to == seat and offer.posted == before])


def understood(state: State, seat: int, sentence: str) -> Intent:
    """What a stored sentence of the seat means in an open state (R3)."""
    senders = open_offers(state, seat) if state.offers else ()
    return parse(sentence, state.names, seat, state.room[seat], senders)


def played(parameters: Parameters, state: State, actions: Mapping[int, Action]) -> tuple[State, list[Act]]:
    """Resolves the open turn.

    Args:
        parameters: of the game.
        state: open.
        actions: of all six seats.

    Returns:
        The state before the next turn opens, and one act a seat in order of resolution.
    """
    town = Town(parameters, state)
    sentences, says = list(state.sentence), [""] * SEATS
    notes, reasons = list(state.notes), list(state.outcome)
    waiting: list[tuple[int, int, int, Intent]] = []
    for order, seat in enumerate(state.initiative):
        action = actions[seat]
        sentence = sentences[seat] = stored(action.sentence, SENTENCE_CAP)
        if action.notes:
            notes[seat] = stored(action.notes, NOTES_CAP) or notes[seat]
        intent = understood(state, seat, sentence)
        if parameters.speech and (action.say or intent.spoken):
            says[seat] = stored(action.say, SAY_CAP)
            _speak(town, seat, says[seat], intent.spoken)
        kind = intent.kind
        group = _HAND_OVER_CLASS if kind == "give" and intent.npc >= 0 else _EFFECTS[kind][0]
        waiting.append((group, order, seat, intent))
    waiting.sort()
    acts: list[Act] = []
    for _, order, seat, intent in waiting:
        kind, room = intent.kind, state.room[seat]
        _, effect, salience = _EFFECTS[kind]
        town.item, town.qty, town.paid = intent.item, 0, 0
        reason = reasons[seat] = effect(town, seat, intent)
        if reason != "ok":
            salience = _NEAR_MISS if reason in _NEAR_MISSES else _DULL
        elif kind in _GRADED:
            salience = _graded(town, seat, intent, says[seat], salience)
        acts.append(
            Act(
                seat, order, kind, room, intent.to_room, town.item, town.qty, intent.npc, intent.other,
                town.paid, reason, salience, sentences[seat], says[seat], notes[seat],
            )
        )  # fmt: skip
    return _resolved(town, sentences, reasons, notes), acts


def _speak(town: Town, seat: int, say: str, spoken: str) -> None:
    """Posts what a seat says, remark first, to the room it stands in (R2.6)."""
    name = town.state.names[seat]
    for text in (say, stored(spoken, SAY_CAP)):
        if text:
            town.write(seat, Line("said", name, text=text))


_DULL: Final = 5  # refusals and waiting
_NEAR_MISS: Final = 80
_NEAR_MISSES: Final = frozenset(("robbery_failed", "nothing_to_take"))
_GRADED: Final = frozenset(("say", "buy", "sell", "give", "accept"))
_LONG_SAY: Final = 40  # characters
_BIG_DEAL: Final = 20  # coin


def _graded(town: Town, seat: int, intent: Intent, say: str, salience: int) -> int:
    """How much a highlight reel would want an act, where that hangs on more than its intent (R11.3)."""
    kind = intent.kind
    if kind == "say":
        return 30 if len(say) > _LONG_SAY else salience
    if kind == "accept":
        return 65 if town.qty else salience  # a trade moves units, a hire none
    if kind != "give":
        return 45 if town.paid >= _BIG_DEAL else salience
    if intent.npc < 0:
        return salience
    commission = town.state.commissions[seat].index(intent.item)
    return 90 if town.delivered[seat][commission] == COMMISSION_UNITS else 60


def _resolved(town: Town, sentences: list[str], reasons: list[str], notes: list[str]) -> State:
    """The state after all acts of the turn, before the next one opens."""
    before = town.state
    return State(
        before.names,
        before.commissions,
        before.turn,
        before.turns_played + 1,
        "",
        tuple(town.room),
        tuple(town.prev_room),
        tuple(town.coin),
        tuple(town.pack),
        town.delivered,
        town.employer,
        town.bond,
        town.robberies,
        town.robbed,
        tuple(town.stock),
        tuple(town.till),
        tuple(town.floor),
        town.offers,
        before.heard,
        town.frozen_log(),
        tuple(reasons),
        tuple(sentences),
        tuple(town.hint),
        tuple(notes),
    )
