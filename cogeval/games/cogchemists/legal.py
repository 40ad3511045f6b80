"""What a seat may do: the test of one action, and the list of all.

Invariant: `Moves` holds only what its seat can see, so that it may be handed to an agent; its list is
exactly the actions for which `why_illegal` is None, in the order of R6.4. Must not know states.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from cogeval.core.rng import Stream
from cogeval.games.cogchemists.constants import ARTIFACT_PRICES, LAB, NUM_INGREDIENTS, VERBS
from cogeval.games.cogchemists.state import PASS, Action, Seal

_EIGHT: Final = range(NUM_INGREDIENTS)
_FORAGE: Final = Action("forage")
_BUYS: Final = tuple(Action("buy", artifact=artifact) for artifact in ARTIFACT_PRICES)
_JUST_PASS: Final = (PASS,)


@functools.cache  # ingredients, pairs of them and signatures: a few hundred moves
def move(verb: str, a: int = -1, b: int = -1, *, signature: int = -1) -> Action:
    """The one silent action with these fields: shared, so that it can be known by its identity."""
    return Action(verb, a, b, signature)


def standing_seal(seals: Sequence[Seal], ingredient: int) -> int:
    """Index of the standing seal on the ingredient, or -1; there is never more than one (R5.2)."""
    for index, seal in enumerate(seals):
        if seal.ingredient == ingredient and seal.status == "standing":
            return index
    return -1


class Moves(msgspec.Struct, frozen=True, gc=False):
    """The legal actions of one seat at one moment; a container that builds no list until asked."""

    seat: int  # 0..3
    phase: str  # "lab" or "market"
    coin: int  # in the seat's purse
    hand: tuple[int, ...]  # ingredients held, in any order
    seals: tuple[Seal, ...]  # the board
    mortar: bool  # owned by the seat
    press: bool  # owned by the seat
    artifacts: bool  # False: nothing can be bought

    def why_illegal(self, action: Action) -> str | None:
        """The reason word, tested in the order of R6.2, or None; say and notes do not matter."""
        test = _TESTS.get(action.action)
        if test is None:
            return "unknown_action"
        if action.action not in VERBS[self.phase]:
            return "wrong_phase"
        return test(self, action)

    def __contains__(self, action: object) -> bool:
        return isinstance(action, Action) and self.why_illegal(action) is None

    def __len__(self) -> int:
        return sum(map(len, self._groups()))

    def __iter__(self) -> Iterator[Action]:
        for group in self._groups():
            yield from group

    def sample(self, rng: Stream) -> Action:
        """Draws one legal action uniformly."""
        groups = self._groups()
        index = rng.below(sum(map(len, groups)))
        for group in groups:
            if index < len(group):
                return group[index]
            index -= len(group)
        raise AssertionError("the index is below the number of actions")

    def _groups(self) -> Sequence[tuple[Action, ...]]:
        """The list in a few runs that are shared between seats and episodes."""
        held = tuple(sorted(self.hand))
        if self.phase == LAB:
            return (_lab_moves(held, self.coin >= 1),)
        if self.coin < 1:
            return (_pair_moves("sell", held), _JUST_PASS)
        unclaimed, rivals = 255, []
        for seal in self.seals:
            if seal.status == "standing":
                unclaimed -= 1 << seal.ingredient
                if seal.author != self.seat:
                    rivals.append(seal)
        kinds = tuple(sorted(set(self.hand)))
        rivals.sort(key=_by_ingredient)
        return (
            _pair_moves("sell", held),
            _publish_moves(unclaimed),
            *[_theory_moves(seal.ingredient, self.seat not in seal.endorsers, kinds) for seal in rivals],
            tuple([buy for buy in _BUYS if _test_buy(self, buy) is None]) if self.artifacts else (),
            _JUST_PASS,
        )


_by_ingredient: Final = operator.attrgetter("ingredient")


@functools.cache  # hands are multisets of at most six cards: 3,003 of them
def _pair_moves(verb: str, held: tuple[int, ...]) -> tuple[Action, ...]:
    kinds = sorted(set(held))
    return tuple(move(verb, a, b) for a in kinds for b in kinds if a < b or (a == b and held.count(a) > 1))


@functools.cache
def _lab_moves(held: tuple[int, ...], can_pay: bool) -> tuple[Action, ...]:
    return (
        _FORAGE,
        *(_pair_moves("test_student", held) if can_pay else ()),
        *_pair_moves("test_self", held),
        *(move("transmute", a) for a in sorted(set(held))),
        PASS,
    )


@functools.cache
def _publish_moves(unclaimed: int) -> tuple[Action, ...]:
    """Every signature for every ingredient of a bit set of eight."""
    return tuple(
        move("publish", a, signature=signature) for a in _EIGHT if unclaimed >> a & 1 for signature in _EIGHT
    )


@functools.cache  # at most 8 ingredients x 2 x 247 sets of at most six kinds held
def _theory_moves(a: int, can_endorse: bool, kinds: tuple[int, ...]) -> tuple[Action, ...]:
    endorse = (move("endorse", a),) if can_endorse else ()
    return (*endorse, *(move("debunk", a, b) for b in kinds))


def _always(moves: Moves, action: Action) -> str | None:  # noqa: ARG001 - all tests have one form
    return None


def _test_transmute(moves: Moves, action: Action) -> str | None:
    if action.a not in _EIGHT:
        return "unknown_ingredient"
    return None if action.a in moves.hand else "missing_card"


def _test_pair(moves: Moves, action: Action) -> str | None:
    a, b = action.a, action.b
    if a not in _EIGHT or b not in _EIGHT:
        return "unknown_ingredient"
    held = a in moves.hand and b in moves.hand if a != b else moves.hand.count(a) > 1  # R4.2
    return None if held else "missing_card"


def _test_student(moves: Moves, action: Action) -> str | None:
    return _test_pair(moves, action) or (None if moves.coin >= 1 else "no_coin")


def _test_publish(moves: Moves, action: Action) -> str | None:
    if action.a not in _EIGHT:
        return "unknown_ingredient"
    if action.signature not in _EIGHT:
        return "bad_signature"
    if moves.coin < 1:
        return "no_coin"
    return "already_claimed" if standing_seal(moves.seals, action.a) >= 0 else None


def _test_endorse(moves: Moves, action: Action) -> str | None:
    if action.a not in _EIGHT:
        return "unknown_ingredient"
    index = standing_seal(moves.seals, action.a)
    if index < 0:
        return "no_such_theory"
    if moves.seals[index].author == moves.seat:
        return "own_theory"
    if moves.seat in moves.seals[index].endorsers:
        return "already_endorsed"
    return None if moves.coin >= 1 else "no_coin"


def _test_debunk(moves: Moves, action: Action) -> str | None:
    if action.a not in _EIGHT or action.b not in _EIGHT:
        return "unknown_ingredient"
    index = standing_seal(moves.seals, action.a)
    if index < 0:
        return "no_such_theory"
    if moves.seals[index].author == moves.seat:
        return "own_theory"
    if action.b not in moves.hand:
        return "missing_card"
    return None if moves.coin >= 1 else "no_coin"


def _test_buy(moves: Moves, action: Action) -> str | None:
    if not moves.artifacts:
        return "artifacts_disabled"
    price = ARTIFACT_PRICES.get(action.artifact)
    if price is None:
        return "unknown_artifact"
    if moves.mortar if action.artifact == "mortar" else moves.press:
        return "already_owned"
    return None if moves.coin >= price else "no_coin"


_TESTS: Final[Mapping[str, Callable[[Moves, Action], str | None]]] = {
    "forage": _always,
    "test_student": _test_student,
    "test_self": _test_pair,
    "transmute": _test_transmute,
    "sell": _test_pair,
    "publish": _test_publish,
    "endorse": _test_endorse,
    "debunk": _test_debunk,
    "buy": _test_buy,
    "pass": _always,
}
