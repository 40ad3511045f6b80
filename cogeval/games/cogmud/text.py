"""What a model seat reads: the rules and the reply form once, then the town as it stands.

Invariant: everything comes from the observation. What another cog said stands in quotation marks on a
line of its own, so that it can not pass for the game's words. A change of wording changes what model
seats decide, never what the rules do.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Final

from cogeval.core.game import Prompt
from cogeval.games.cogmud.lines import quotable, render, units
from cogeval.games.cogmud.market import Tip
from cogeval.games.cogmud.prose import PHRASEBOOK, ROOM_TEXTS, outcome_text
from cogeval.games.cogmud.state import Goods, Line
from cogeval.games.cogmud.view import Observation, OpenOffer
from cogeval.games.cogmud.world import (
    CARRY_CAP,
    COMMISSION_UNITS,
    DISTANCE,
    GOODS,
    GUILDHALL,
    KEEPER_IN,
    KEEPERS,
    NOTES_CAP,
    ROOMS,
    SAY_CAP,
    SENTENCE_CAP,
    STEP_TO,
    VALUES,
)


def prompt(observation: Observation) -> Prompt:
    """System and user text for the seat."""
    system = _system(observation.turns, observation.speech, observation.thievery)
    return Prompt(system=system, user=_user(observation))


@functools.cache
def _system(turns: int, speech: bool, thievery: bool) -> str:
    return _RULES.format(
        turns=turns,
        carry=CARRY_CAP,
        goods=", ".join(f"{good.name} {good.value}" for good in GOODS),
        town="\n".join(_room_line(room) for room in range(len(ROOMS))),
        robbery=_ROBBERY if thievery else _NO_ROBBERY,
        phrases="\n".join(f"- {what}: {sentence}" for what, sentence in PHRASEBOOK),
        sentence_cap=SENTENCE_CAP,
        remarks=_REMARKS.format(say_cap=SAY_CAP) if speech else _NO_REMARKS,
        notes_cap=NOTES_CAP,
    )


def _room_line(room: int) -> str:
    exits = ", ".join(ROOMS[near].name for near in ROOMS[room].exits)
    keeper = KEEPER_IN[room]
    trades = ""
    if keeper >= 0:
        deals = ", ".join(GOODS[good].name for good in KEEPERS[keeper].deals)
        trades = f"; {KEEPERS[keeper].name} deals in {deals}"
    return f"- {ROOMS[room].name}{' (dark)' if ROOMS[room].dark else ''}{trades} - to {exits}"


_ROBBERY: Final = """\
ROBBERY. You rob a cog in your own room. Your strength is 1, and 1 more for each of your hirelings there, and
1 more if the room is dark. Its strength is 1, and 1 more for each of its hirelings there, and 2 more if the
room is lit. You succeed only if yours is greater: alone you rob an unguarded cog in the dark and fail in the
light. You get one unit of its good of highest base value; or, if it has no goods or your pack is full, up to
10 of its coin. If you fail you pay it up to 8 of your coin. Nobody can rob the cog that it serves. The Docks
and Cutpurse Alley are dark; one hireling at your side there makes a lone robber fail."""

_NO_ROBBERY: Final = "ROBBERY is impossible in this town: every attempt is refused and costs the turn."

_REMARKS: Final = """\
"say" is a remark of at most {say_cap} characters beside your action. It costs nothing, and is spoken in the
room where you start the turn: whoever stands there next turn reads it. "" says nothing."""

_NO_REMARKS: Final = 'Nothing that is said is heard in this town: leave "say" empty, spend no turn on speech.'

_RULES: Final = """\
You are one of six cogs in a small trading town. Each turn you write one plain English sentence that says
what you do, and the town carries it out. The game lasts {turns} turns; the highest score wins.

SCORE = (coin + base values of the goods you carry + 3 x commission points - 40) / 40. You start with 40 coin.
Base values: {goods}. You carry at most {carry} goods.

COMMISSIONS. You hold two, of 2 units of one good each. Carry the goods to Guildmaster Vell in the Guildhall
and hand them over: 4 points a unit, and 8 more when both units of a commission are in. A complete commission
is 16 points, as good as 48 coin, so it pays to fill both; selling goods on is small change beside it.
Never hand over more than is outstanding: goods that no open commission of yours asks for are lost, and other
keepers give nothing for what they are handed (sell to them instead). Ask any keeper about your commission and
next turn you are told the lowest ask in town for each good that you still have to deliver.

SHOPS. You buy at the ask and sell at the bid, unit by unit. With s units in stock before a unit changes
hands: ask = base value + 6 - s, at least 2 and at least half the base, at most three times the base;
bid = two thirds of the ask, rounded down, at least 1. So each unit that you buy makes the next one dearer,
by 1 as a rule. Keepers trade only the goods on their lists. Where coin, stock, free slots or the keeper's
coin run short you get as many units as they allow. Every turn each keeper restocks one unit, of the goods on
its list in rotation.

THE TOWN (one step through an exit takes one turn; shops are where their keepers stand)
{town}
When the game begins one good, any of the six, lies on the ground in each of Market Square, Warehouse Yard,
The Docks, Cutpurse Alley and The Chapel, and one relic more in Warehouse Yard: free for whoever comes by.

A TURN. All six write at the same time. Then the sentences take effect, kind by kind: speech; buying, selling,
handing to a keeper, asking; taking and dropping; giving to a cog, offering, hiring, accepting; robbing;
moving. Within a kind, the cog that goes first changes each turn. So what you buy this turn can be stolen this
turn, and moving away does not save you from a robber who is in your room now. What a room heard is read next
turn by whoever stands in it then.
One sentence does one thing: the first verb that the town knows decides, and "and then ..." is not done though
the answer is ok. What cannot be read, or is refused, costs the turn; you are told why.

OTHER COGS have names that you learn by meeting or hearing of them. Gifts need no consent. An offer (goods
for coin, or coin for service) is open to the other cog in the next turn only. It accepts by a sentence; the
bargain is struck if you are then in one room and both can still pay and deliver, since nothing is set aside.
Who accepts a hire serves for 3 turns, the present one included, and counts on its employer's side in
robberies wherever the two share a room.

{robbery}

PHRASEBOOK (write another cog's name for NAME; keep to these verbs, one good, and one keeper or cog in a
sentence, the number before the good)
{phrases}
Numbers are digits or words; "all" is as many goods as possible, but no amount of coin; no number means 1.
Write coin as "20 coins". What stands in the first pair of double quotes is spoken and not acted on; a second
pair is.

REPLY with one JSON object and nothing else:
{{"action": "", "say": "", "notes": ""}}
"action" is your sentence, at most {sentence_cap} characters.
{remarks}
"notes" is your private memory of at most {notes_cap} characters: it replaces the old notes, "" keeps them."""


def _user(observation: Observation) -> str:
    room = ROOMS[observation.room]
    left = observation.turns - observation.turn
    sections = (
        f"Turn {observation.turn + 1} of {observation.turns} ({left} left, this one included). You are "
        f"{observation.name}. Within each kind of act, yours is number {observation.place_in_turn + 1} of 6.",
        "YOUR LAST SENTENCE\n" + _last(observation),
        "YOU\n" + "\n".join(_purse(observation)),
        "YOUR COMMISSIONS (settled with Guildmaster Vell in The Guildhall)\n"
        + "\n".join(_orders(observation)),
        f"YOU STAND IN {room.name.upper()} ({'dark' if room.dark else 'lit'})\n"
        + "\n".join(_place(observation)),
        "HEARD HERE LAST TURN\n" + _listed(_heard(line) for line in observation.heard),
        "OFFERS TO YOU (accept this turn or they lapse)\n" + _listed(map(_offer, observation.offers)),
        "YOUR NOTES\n" + (" ".join(observation.notes.splitlines()) or "none"),
        "What do you do?",
    )
    return "\n\n".join(sections)


def _listed(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines) or "none"


def _last(observation: Observation) -> str:
    if not observation.outcome:
        return "none yet"
    told = outcome_text(observation.outcome, ROOMS[observation.room].name)
    return f'"{quotable(observation.sentence)}"\n-> {observation.outcome}: {told}'


def _goods(goods: Goods) -> str:
    there = [units(good, num) for good, num in enumerate(goods) if num]
    return ", ".join(there) or "nothing"


def _purse(observation: Observation) -> Iterable[str]:
    worth = sum(num * value for num, value in zip(observation.pack, VALUES, strict=True))
    yield f"Coin: {observation.coin}"
    yield (
        f"Carrying: {_goods(observation.pack)} (base value {worth}; {observation.free_slots} of {CARRY_CAP} "
        "slots free)"
    )
    yield f"Score so far: {observation.score:.3f}"
    if observation.employer:
        yield f"You serve {observation.employer}: {_turns(observation.bond)} more."
    for name, bond in observation.retainers:
        yield f"{name} serves you: {_turns(bond)} more."


def _turns(number: int) -> str:
    return "1 turn" if number == 1 else f"{number} turns"


def _orders(observation: Observation) -> Iterable[str]:
    for good, delivered, outstanding in zip(
        observation.commissions, observation.delivered, observation.outstanding, strict=True
    ):
        held = observation.pack[good]
        state = f"{outstanding} outstanding, you carry {held}" if outstanding else "complete"
        yield f"- {units(good, COMMISSION_UNITS)}: {delivered} delivered, {state}"
    for tip in observation.tips:
        yield f"- You were told: {_tip(observation, tip)}"


def _tip(observation: Observation, tip: Tip) -> str:
    index, keeper, ask = tip
    goods = GOODS[observation.commissions[index]].plural
    if keeper < 0:
        return f"no shop in town has any {goods}."
    where = ROOMS[KEEPERS[keeper].room].name
    return f"{KEEPERS[keeper].name} in {where} has the cheapest {goods}, at {ask} coin for the first unit."


def _place(observation: Observation) -> Iterable[str]:
    yield ROOM_TEXTS[observation.room]
    yield "Exits: " + ", ".join(ROOMS[room].name for room in observation.exits)
    if steps := DISTANCE[observation.room][GUILDHALL]:
        onward = ROOMS[STEP_TO[observation.room][GUILDHALL]].name
        yield f"To The Guildhall: {_turns(steps)}, first to {onward}"
    yield f"On the ground: {_goods(observation.floor)}"
    yield f"Other cogs here: {', '.join(observation.here) or 'none'}"
    if observation.keeper < 0:
        yield "Shopkeeper: none"
        return
    yield f"Shopkeeper: {KEEPERS[observation.keeper].name}, with {observation.till} coin"
    for ware in observation.wares:
        good = GOODS[ware.good]
        yield (
            f"- {good.name}: stock {ware.stock}, you buy at {ware.ask}, you sell at {ware.bid} "
            f"(base {good.value})"
            if ware.stock
            else f"- {good.name}: sold out, you sell at {ware.bid} (base {good.value})"
        )


def _heard(line: Line) -> str:
    if line.kind == "said":
        return f'{line.who} said:\n  "{quotable(line.text)}"'
    return render(line)


def _offer(offer: OpenOffer) -> str:
    if offer.kind == "hire":
        return f"{offer.sender} would pay you {offer.coin} coin to serve it for 3 turns."
    return f"{offer.sender} would give you {units(offer.item, offer.qty)} for {offer.coin} of your coin."
