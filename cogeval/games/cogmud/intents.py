"""What each intent needs, and in which order its needs are tested.

Invariant: a test fills or drops slots by the rules and never invents one. Must not know the state of the
town: what the speaker's turn opened with is left open in the `Plan`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from cogeval.games.cogmud.state import Intent
from cogeval.games.cogmud.world import KEEPERS, SEATS


class Slot(NamedTuple):
    """What a sentence names of one kind."""

    id: int  # -1 for nothing
    ambiguous: bool = False  # True: it names two different ones equally well
    at: int = -1  # index of the first word


NOTHING: Final = Slot(-1)


class Slots(NamedTuple):
    """All that a sentence names, and who speaks."""

    room: Slot
    good: Slot
    keeper: Slot
    cog: Slot  # a seat
    qty: int
    coin: int
    spoken: str  # what was quoted
    sentence: str
    seat: int  # of the speaker


FIXED: Final = 0
BY_KEEPER: Final = 1
BY_SENDER: Final = 2


class Plan(NamedTuple):
    """An intent, but for what the speaker's turn opened with."""

    left_open: int  # FIXED; or BY_KEEPER of the room or BY_SENDER of the only offer
    intents: tuple[Intent, ...]  # one; or one for each keeper or seat and, at -1, the one for nobody


def fixed(intent: Intent) -> Plan:
    """The plan that leaves nothing open."""
    return Plan(FIXED, (intent,))


def _intent(slots: Slots, kind: str, reason: str = "ok") -> Intent:
    return Intent(
        kind,
        slots.good.id,
        slots.qty,
        slots.keeper.id,
        slots.cog.id,
        slots.coin,
        slots.room.id,
        reason,
        slots.spoken,
    )


def _made(slots: Slots, kind: str, reason: str) -> Plan:
    """The intent of that kind, unless there is a reason why it cannot be read."""
    return fixed(_intent(slots, "none", reason) if reason else _intent(slots, kind))


def _lacks(slot: Slot, reason: str = "no_target") -> str:
    """Why a slot that is needed does not do, "" when it does."""
    if slot.ambiguous:
        return "ambiguous_target"
    return reason if slot.id < 0 else ""


def _lacks_cog(slots: Slots) -> str:
    return _lacks(slots.cog, "no_such_cog") or ("self_target" if slots.cog.id == slots.seat else "")


def _of_keeper(slots: Slots, kind: str, missing: str) -> Plan:
    """R3.7: nobody is named, so it is the keeper of the room."""
    intent = _intent(slots, kind)
    here = [msgspec.structs.replace(intent, npc=keeper) for keeper in range(len(KEEPERS))]
    return Plan(BY_KEEPER, (*here, _intent(slots, "none", missing)))


def _without_self(slots: Slots) -> Slots:
    """R3.6: whoever gives to or accepts from nobody but themselves has named nobody."""
    return slots._replace(cog=NOTHING) if slots.cog.id == slots.seat else slots


def _move(slots: Slots) -> Plan:
    return _made(slots, "move", _lacks(slots.room))


def _take(slots: Slots) -> Plan:
    return _made(slots, "take", _lacks(slots.good))


def _drop(slots: Slots) -> Plan:
    return _made(slots, "drop", _lacks(slots.good))


def _buy(slots: Slots) -> Plan:
    return _shop(slots, "buy")


def _sell(slots: Slots) -> Plan:
    return _shop(slots, "sell")


def _shop(slots: Slots, kind: str) -> Plan:
    reason = _lacks(slots.good)
    if not reason and slots.keeper is NOTHING:
        return _of_keeper(slots, kind, "no_target")
    return _made(slots, kind, reason or _lacks(slots.keeper))


def _give(slots: Slots) -> Plan:
    if slots.good.ambiguous or slots.keeper.ambiguous or slots.cog.ambiguous:
        return _made(slots, "give", "ambiguous_target")
    slots = _without_self(slots)
    nobody = slots.keeper.id < 0 and slots.cog.id < 0
    nothing = slots.good.id < 0 and slots.coin == 0
    return _made(slots, "give", "no_target" if nobody or nothing else "")


def _trade(slots: Slots) -> Plan:
    missing = "no_target" if slots.good.id < 0 else ""  # the first of several goods will do
    return _made(slots, "trade", _lacks_cog(slots) or missing)


def _hire(slots: Slots) -> Plan:
    reason = _lacks_cog(slots)
    return _made(slots if reason else slots._replace(coin=max(1, slots.coin)), "hire", reason)


def _accept(slots: Slots) -> Plan:
    if slots.cog.ambiguous:
        return _made(slots, "accept", "ambiguous_target")
    slots = _without_self(slots)
    intent = _intent(slots, "accept")
    if slots.cog.id >= 0:
        return fixed(intent)
    senders = [msgspec.structs.replace(intent, other=sender) for sender in range(SEATS)]
    return Plan(BY_SENDER, (*senders, _intent(slots, "none", "no_such_offer")))


def _rob(slots: Slots) -> Plan:
    return _made(slots, "rob", _lacks_cog(slots))


def _quest(slots: Slots) -> Plan:
    if slots.keeper is NOTHING:
        return _of_keeper(slots, "quest", "no_npc_here")
    return _made(slots, "quest", _lacks(slots.keeper))


def _say(slots: Slots) -> Plan:
    return _made(slots._replace(spoken=slots.spoken or slots.sentence), "say", "")


def _wait(slots: Slots) -> Plan:
    return _made(slots, "wait", "")


PLANS: Final[dict[str, Callable[[Slots], Plan]]] = {
    "move": _move,
    "take": _take,
    "drop": _drop,
    "buy": _buy,
    "sell": _sell,
    "give": _give,
    "trade": _trade,
    "hire": _hire,
    "accept": _accept,
    "rob": _rob,
    "quest": _quest,
    "say": _say,
    "wait": _wait,
}
"""What a sentence can mean, and how its slots make that."""
