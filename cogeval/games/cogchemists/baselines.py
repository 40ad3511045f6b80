"""The scripted baselines: pure functions of what a seat sees, and of the seed for the quack.

Invariant: decision for decision those of the hosted game (R11). RULES.md lists what each reads beyond
its observation: the assayer nothing, the quack the episode seed. Both are silent.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cogeval.core.rng import NimStream
from cogeval.games.cogchemists.constants import LAB, NUM_INGREDIENTS
from cogeval.games.cogchemists.deduction import Knowledge
from cogeval.games.cogchemists.legal import Moves, move
from cogeval.games.cogchemists.state import PASS, Action, Seal

BASELINES: Final = ("assayer", "quack")

_FORAGE: Final = Action("forage")
_BUY_MORTAR: Final = Action("buy", artifact="mortar")


def assayer(moves: Moves, known: Knowledge, demand: str) -> Action:
    """The careful seat: tests where it learns most, claims only what it has proved (R11.1)."""
    if moves.phase == LAB:
        return _assayer_lab(moves, known)
    return _assayer_market(moves, known, demand)


def _assayer_lab(moves: Moves, known: Knowledge) -> Action:
    if len(moves.hand) < 2:
        return _FORAGE
    kinds = sorted(set(moves.hand))
    pairs = [(a, b) for i, a in enumerate(kinds) for b in kinds[i + 1 :]]
    if pairs:
        a, b = min(pairs, key=lambda pair: known.worst_case(*pair))  # the first of equals
        if moves.coin >= 2:
            return move("test_student", a, b)
        if not known.is_truncated and known.never_negative(a, b):
            return move("test_self", a, b)
    for kind in kinds:
        if all(known.worst_case(*pair) == known.sample_size for pair in pairs if kind in pair):
            return move("transmute", kind)
    return PASS


def _assayer_market(moves: Moves, known: Knowledge, demand: str) -> Action:
    standing = [seal for seal in moves.seals if seal.status == "standing"]
    action = _proved_theory(moves, known, standing)
    if action is None and not known.is_truncated:  # a truncated sample proves nothing (R11.2)
        kinds = sorted(set(moves.hand))
        action = _proved_debunk(moves, known, standing, kinds) or _proved_sale(known, kinds, demand)
    if action is None:
        action = _BUY_MORTAR if _BUY_MORTAR in moves else PASS
    return action


def _proved_theory(moves: Moves, known: Knowledge, standing: Sequence[Seal]) -> Action | None:
    """Publishes the lowest solved ingredient without a standing seal."""
    if moves.coin < 1:
        return None
    claimed = [seal.ingredient for seal in standing]
    for ingredient, signature in enumerate(known.solved):
        if signature >= 0 and ingredient not in claimed:
            return move("publish", ingredient, signature=signature)
    return None


def _proved_debunk(
    moves: Moves, known: Knowledge, standing: Sequence[Seal], kinds: Sequence[int]
) -> Action | None:
    """Attacks the first rival claim outside the grid that a held reagent is sure to refute."""
    if moves.coin < 1:
        return None
    for seal in standing:
        if seal.author == moves.seat or known.candidates(seal.ingredient) >> seal.claim & 1:
            continue
        for reagent in kinds:
            if known.always_refutes(seal.ingredient, seal.claim, reagent):
                return move("debunk", seal.ingredient, reagent)
    return None


def _proved_sale(known: Knowledge, kinds: Sequence[int], demand: str) -> Action | None:
    """Sells the first pair that is sure to make the demand."""
    for i, a in enumerate(kinds):
        for b in kinds[i + 1 :]:
            if known.always_makes(a, b, demand):
                return move("sell", a, b)
    return None


def quack(moves: Moves, known: Knowledge, seed: int, round_: int) -> Action:
    """The reckless seat: drinks anything, publishes anything (R11.4)."""
    hand = moves.hand
    if moves.phase == LAB:
        if len(hand) < 2:
            return _FORAGE
        own = NimStream(seed * 1000003 + round_ * 977 + moves.seat * 17 + 5)
        first = own.rand(len(hand) - 1)
        second = own.rand(len(hand) - 1)
        if second == first:
            second = (first + 1) % len(hand)
        a, b = sorted((hand[first], hand[second]))
        return move("test_self", a, b)
    if moves.coin >= 1:
        claimed = {seal.ingredient for seal in moves.seals if seal.status == "standing"}
        for ingredient in range(NUM_INGREDIENTS):
            if ingredient not in claimed:
                return move("publish", ingredient, signature=known.lowest_candidate(ingredient))
    if len(hand) >= 2:
        a, b = sorted(hand[:2])
        return move("sell", a, b)
    return PASS
