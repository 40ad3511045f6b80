"""One phase in the making: a working copy of a state's columns, and what each action does to it.

Invariant: the state that a `Board` was made from stays as it was; `frozen` gives the next one, which
shares every column that no action touched. Must not know whose decision was scripted or late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from cogeval.core.rng import NimStream
from cogeval.games.cogchemists.constants import (
    ARTIFACT_PRICES,
    FORAGE_CARDS,
    HAND_CAP,
    MARKET,
    MIX,
    NOTES_CAP,
    NUM_INGREDIENTS,
    SAY_CAP,
    SIGN_CLASS,
)
from cogeval.games.cogchemists.deduction import Fact, MixFull, MixSign, NotSig
from cogeval.games.cogchemists.legal import Moves, standing_seal
from cogeval.games.cogchemists.state import Act, Action, Parameters, Seal, State
from cogeval.games.league import encodable, trimmed

ONE_LINE: Final = str.maketrans("\r\n", "  ")


class Board:
    """The columns of a state while its phase resolves.

    Args:
        parameters: of the game.
        state: the open state on which the phase was decided.
    """

    __slots__ = (
        "acts",
        "coin",
        "hands",
        "mortar",
        "notes",
        "parameters",
        "press",
        "private_facts",
        "public_facts",
        "record",
        "reputation",
        "say",
        "seals",
        "state",
        "words",
    )

    def __init__(self, parameters: Parameters, state: State) -> None:
        self.parameters = parameters
        self.state = state
        self.words = state.words
        self.coin = list(state.coin)
        self.reputation = list(state.reputation)
        self.hands = list(state.hands)
        self.mortar = state.mortar
        self.press = state.press
        self.seals = state.seals
        self.public_facts = state.public_facts
        self.private_facts = state.private_facts
        self.say = ["", "", "", ""]
        self.notes = state.notes
        self.acts: list[Act] = []  # complete, for the events
        self.record: list[Act] = []  # public part, for the record

    def resolve(self, seat: int, action: Action) -> None:
        """Carries out one seat's decision, or rejects it when it is not legal any more (R6.1)."""
        if action.say and self.parameters.talk:
            # R3.5: the remark of a rejected action is heard all the same
            self.say[seat] = trimmed(action.say).translate(ONE_LINE)[:SAY_CAP]
        if action.notes:
            stored = trimmed(action.notes)[:NOTES_CAP]
            self.notes = (*self.notes[:seat], stored, *self.notes[seat + 1 :])
        reason = self._moves(seat).why_illegal(action)
        if reason is None:
            _EFFECTS[action.action](self, seat, action)
        else:
            self.settle(seat, action, f"rejected:{reason}", coin=1)

    def _moves(self, seat: int) -> Moves:
        """What the seat may do on the board as it stands now."""
        return Moves(
            seat,
            self.state.phase,
            self.coin[seat],
            self.hands[seat],
            self.seals,
            self.mortar[seat],
            self.press[seat],
            self.parameters.artifacts,
        )

    def settle(
        self,
        seat: int,
        action: Action,
        outcome: str,
        *,
        coin: int = 0,
        reputation: int = 0,
        potion: str = "",
        secret: bool = False,
        draws: tuple[int, ...] = (),
        discarded: tuple[int, ...] = (),
        seal: Seal | None = None,
    ) -> None:
        """Pays the actor and writes the act down, for the events and for the public record."""
        self.coin[seat] += coin
        self.reputation[seat] += reputation
        public = Act(
            self.state.round,
            self.state.phase,
            seat,
            encodable(action.action),
            action.a,
            action.b,
            action.signature,
            encodable(action.artifact),
            outcome,
            "" if secret else potion,
            secret,
            draws,
            discarded,
            coin,
            reputation,
            seal.author if seal else -1,
            seal.claim if seal else -1,
        )
        self.record.append(public)
        say = self.say[seat]
        self.acts.append(replace(public, potion=potion, say=say) if secret or say else public)

    def consume(self, seat: int, *cards: int) -> None:
        """Removes the first copy of each card from the seat's hand."""
        hand = list(self.hands[seat])
        for card in cards:
            hand.remove(card)
        self.hands[seat] = tuple(hand)

    def mix(self, a: int, b: int) -> str:
        """The potion that two ingredients really make."""
        return MIX[self.state.chemistry[a]][self.state.chemistry[b]]

    def publish_facts(self, *facts: Fact) -> None:
        """Tells every seat."""
        self.public_facts = (*self.public_facts, *facts)

    def replace_seal(self, index: int, seal: Seal) -> None:
        """Puts a changed seal in the place of the old one."""
        self.seals = (*self.seals[:index], seal, *self.seals[index + 1 :])

    def frozen(self) -> State:
        """The state after the phase resolved and before the next one opens."""
        old = self.state
        return replace(
            old,
            words=self.words,
            phases=old.phases + 1,
            rounds_played=old.rounds_played + (old.phase == MARKET),
            coin=tuple(self.coin),
            reputation=tuple(self.reputation),
            hands=tuple(self.hands),
            mortar=self.mortar,
            press=self.press,
            seals=self.seals,
            public_facts=self.public_facts,
            private_facts=self.private_facts,
            say=tuple(self.say),
            notes=self.notes,
            record=(*old.record, *self.record),
        )


def _forage(board: Board, seat: int, action: Action) -> None:  # R4.1
    stream = NimStream.at(board.words)
    draws = tuple([stream.rand(NUM_INGREDIENTS - 1) for _ in range(FORAGE_CARDS)])
    board.words = stream.words
    room = HAND_CAP - len(board.hands[seat])
    board.hands[seat] = (*board.hands[seat], *draws[:room])
    board.settle(seat, action, "ok", draws=draws, discarded=draws[room:])


def _test(board: Board, seat: int, action: Action) -> str:
    """Mixes two cards for one seat alone to know (R4.3)."""
    potion = board.mix(action.a, action.b)
    private = board.private_facts
    own = (*private[seat], MixFull(action.a, action.b, potion))
    board.private_facts = (*private[:seat], own, *private[seat + 1 :])
    if board.mortar[seat]:
        board.consume(seat, action.a)
    else:
        board.consume(seat, action.a, action.b)
    return potion


def _test_student(board: Board, seat: int, action: Action) -> None:  # R4.4
    potion = _test(board, seat, action)
    board.settle(seat, action, "ok", coin=-1, potion=potion, secret=True)


_DRUNK: Final = {"negative": ("poisoned", -2), "positive": ("glowed", 1), "mud": ("ok", 0)}


def _test_self(board: Board, seat: int, action: Action) -> None:  # R4.5
    potion = _test(board, seat, action)
    sign = SIGN_CLASS[potion]
    board.publish_facts(MixSign(action.a, action.b, sign))
    outcome, reputation = _DRUNK[sign]
    board.settle(seat, action, outcome, reputation=reputation, potion=potion, secret=True)


def _transmute(board: Board, seat: int, action: Action) -> None:  # R4.6
    board.consume(seat, action.a)
    board.settle(seat, action, "ok", coin=2)


def _sell(board: Board, seat: int, action: Action) -> None:  # R5.1
    potion = board.mix(action.a, action.b)
    board.consume(seat, action.a, action.b)
    board.publish_facts(MixFull(action.a, action.b, potion))
    if potion == board.state.demand:
        board.settle(seat, action, "hit", coin=6, reputation=1, potion=potion)
    else:
        board.settle(seat, action, "miss", coin=2, reputation=-1, potion=potion)


def _publish(board: Board, seat: int, action: Action) -> None:  # R5.2
    board.seals = (*board.seals, Seal(action.a, action.signature, seat, board.state.round))
    board.settle(seat, action, "ok", coin=-1, reputation=3 if board.press[seat] else 2)


def _endorse(board: Board, seat: int, action: Action) -> None:  # R5.3
    index = standing_seal(board.seals, action.a)
    seal = board.seals[index]
    board.replace_seal(index, replace(seal, endorsers=(*seal.endorsers, seat)))
    board.coin[seal.author] += 1
    board.settle(seat, action, "ok", coin=-1, seal=seal)


def _debunk(board: Board, seat: int, action: Action) -> None:  # R5.4
    index = standing_seal(board.seals, action.a)
    seal = board.seals[index]
    potion = board.mix(action.a, action.b)
    predicted = MIX[seal.claim][board.state.chemistry[action.b]]
    board.consume(seat, action.b)
    board.publish_facts(MixFull(action.a, action.b, potion))
    if potion == predicted:  # the claim may be wrong all the same
        board.reputation[seal.author] += 1
        board.replace_seal(index, replace(seal, vindications=seal.vindications + 1))
        board.settle(seat, action, "survived", coin=-1, reputation=-2, potion=potion, seal=seal)
        return
    board.publish_facts(NotSig(action.a, seal.claim))
    board.reputation[seal.author] -= 4
    for endorser in seal.endorsers:  # the debunker may be one of them
        board.reputation[endorser] -= 1
    burned = replace(seal, status="burned", burned_by=seat, round_burned=board.state.round)
    board.replace_seal(index, burned)
    board.settle(seat, action, "burned", coin=-1, reputation=3, potion=potion, seal=seal)


def _buy(board: Board, seat: int, action: Action) -> None:  # R5.5
    if action.artifact == "mortar":
        board.mortar = (*board.mortar[:seat], True, *board.mortar[seat + 1 :])
    else:
        board.press = (*board.press[:seat], True, *board.press[seat + 1 :])
    board.settle(seat, action, "ok", coin=-ARTIFACT_PRICES[action.artifact])


def _pass(board: Board, seat: int, action: Action) -> None:  # R3.4
    board.settle(seat, action, "ok", coin=1)


_EFFECTS: Final[Mapping[str, Callable[[Board, int, Action], None]]] = {
    "forage": _forage,
    "test_student": _test_student,
    "test_self": _test_self,
    "transmute": _transmute,
    "sell": _sell,
    "publish": _publish,
    "endorse": _endorse,
    "debunk": _debunk,
    "buy": _buy,
    "pass": _pass,
}
