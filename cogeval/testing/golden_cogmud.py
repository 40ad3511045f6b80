"""Small Cogmud episodes of our own making in the recorded trace format.

Invariant: an episode is a function of its cast and seed. The casts are made to reach what honest play
seldom does: sentences that mean odd things, drained shops, full packs, bound retainers, watched robberies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from cogeval.core.game import Json, Seat
from cogeval.core.rng import Stream, stream
from cogeval.games.cogmud import Cogmud
from cogeval.games.cogmud.state import Action, Goods, Parameters, State
from cogeval.games.cogmud.world import GOODS, KEEPER_IN, KEEPERS, ROOMS, SEATS, STOCK_CAP
from cogeval.testing.cogmud_patch import CogPatch, FloorPatch, Patch, ShopPatch
from cogeval.testing.cogmud_record import Script, build_episode
from cogeval.testing.compare import plain

_REMARKS: Final = ("", "", "", "well met", "  two\r\nlines\u2003", "\u2212\u00e9\U0001f9ea", "long " * 40)

# {here} and {held} are a cog in the room and a good carried where there are any; {keeper} likewise.
_CHATTER: Final = (
    "I buy {n} {good} from {keeper}.",
    "buy all the {good}",
    "I sell every {held} to {keeper}!",
    "Selling? I sell {n} {held}.",
    "I hand {n} {held} over to {keeper}.",
    "I give {here} {n} {held} and {n} coins.",
    "I pay {here} a dozen silver pieces.",
    "I give myself a {held}.",
    "I offer {here} {n} {held} for {n} coin.",
    "I would trade {held} with {cog} for 0 coin.",
    "I hire {here} for {n} crowns.",
    "I hire a bodyguard.",
    "I accept {here}'s terms.",
    "Agreed, I shake on the deal.",
    "I take the deal, {here}.",
    "I rob {here} of a {good}.",
    "I pick {here}'s pocket.",
    "I steal from {cog}.",
    "I jump {me}.",
    "I take {n} {good}.",
    "I lift the {ground}.",
    "I set {n} {held} down.",
    "I wander off to the {room}, 'quietly'.",
    "I leave.",
    "I make for the well or the forge.",
    "I buy {good} from Oda or from Bram.",
    "{keeper}, {good}, please.",
    "I ask {keeper} which {good} is cheapest.",
    "I enquire.",
    'I tell {here} \u201cthe {good} is cheap\u201d and wait.',
    '"Nothing said, nothing done"',
    "I SHOUT: it is \u0130dle talk",
    'I say "' + "no end of it " * 14 + '"',
    "I linger.",
    "I do nothing.",
    "the weather in the {room}",
    "\u2026 ??? \u2003",
    "  I \r\nstay\tput  \u00a0",
    "I buy a {good} " + "and then some more " * 15,
)  # fmt: skip


class Cast(msgspec.Struct, frozen=True):
    """One episode to write."""

    seed: int
    parameters: Parameters
    policies: tuple[str, ...]  # per seat, keys of _DECIDERS or baselines
    deadline_after_turns: int = -1
    patches: bool = False  # whether a driver changes the town before some turns


def _random(game: Cogmud, state: State, seat: Seat, rng: Stream) -> Action:
    return next(d for d in game.decisions(state) if d.seat == seat).legal.sample(rng)


def _chatterer(game: Cogmud, state: State, seat: Seat, rng: Stream) -> Action:  # noqa: ARG001 - as the others
    """Odd sentences about what is at hand, with remarks and notes."""

    def one(*choices: str) -> str:
        return choices[rng.below(len(choices))]

    def good(goods: Goods) -> str:
        return one(*(each.name for each, units in zip(GOODS, goods, strict=True) if units or not any(goods)))

    room, me = state.room[seat], state.names[seat]
    others = [name for name in state.names if name != me]
    here = [name for name, at in zip(state.names, state.room, strict=True) if at == room and name != me]
    keeper = KEEPERS[KEEPER_IN[room]] if KEEPER_IN[room] >= 0 else KEEPERS[rng.below(len(KEEPERS))]
    sentence = one(*_CHATTER).format(
        n=one("0", "1", "two", "3", "all"),
        good=GOODS[keeper.deals[rng.below(len(keeper.deals))]].name,
        held=good(state.pack[seat]),
        ground=good(state.floor[room]),
        keeper=one(keeper.name, keeper.name, "Guildmaster Vell"),
        here=one(*(here or others)),
        cog=one(*others),
        room=ROOMS[rng.below(len(ROOMS))].name,
        me=me,
    )
    return Action(sentence, one(*_REMARKS), one(*_REMARKS))


def _shouter(game: Cogmud, state: State, seat: Seat, rng: Stream) -> Action:  # noqa: ARG001 - as the others
    """Fills the room with lines: a remark, a quotation, and a wait that shows."""
    notes = "" if seat else "much to remember, " * 40
    return Action(f'I wait, and shout "{state.turn}!"', f"hear {state.names[rng.below(SEATS)]}", notes)


def _dealer(game: Cogmud, state: State, seat: Seat, rng: Stream) -> Action:  # noqa: ARG001 - as the others
    """Offers goods or a fee to a partner one turn, accepts the partner's offer the next."""
    partner = state.names[seat ^ 1]
    if state.turn % 2:
        return Action(f"I accept {partner}'s offer.")
    good = next((each.name for each, units in zip(GOODS, state.pack[seat], strict=True) if units), "rope")
    if rng.below(3) == 0:
        return Action(f"I hire {partner} for {5 + rng.below(30)} coins.")
    return Action(f"I offer {partner} {rng.below(5)} {good} for {rng.below(20)} coins.")


def _robber(game: Cogmud, state: State, seat: Seat, rng: Stream) -> Action:  # noqa: ARG001 - as the others
    """Robs a cog in the room, be it the employer."""
    here = [name for k, name in enumerate(state.names) if state.room[k] == state.room[seat] and k != seat]
    return Action(f"I rob {here[rng.below(len(here))] if here else 'somebody'}.")


_DECIDERS: Final[Mapping[str, Callable[[Cogmud, State, Seat, Stream], Action]]] = {
    "random": _random,
    "chatterer": _chatterer,
    "shouter": _shouter,
    "dealer": _dealer,
    "robber": _robber,
}


def _patch(rng: Stream) -> Patch | None:
    """Every other turn: cogs are gathered in one place with other goods, bonds and purses; shops run dry."""
    if rng.below(2):
        return None
    room, boss = rng.below(len(ROOMS)), rng.below(SEATS)

    def goods(most: int) -> Goods:
        return tuple([rng.below(most) * rng.below(2) for _ in GOODS])

    def stock() -> Goods:
        return tuple([(0, 1, 6, STOCK_CAP)[rng.below(4)] for _ in GOODS])

    def cog(seat: Seat) -> CogPatch:
        pack = goods(4)
        bound = seat != boss and rng.below(2) == 0
        return CogPatch(
            seat=seat,
            room=room,
            coin=(0, 3, 40, 90)[rng.below(4)],
            items=(2, 2, 1, 1, 1, 1) if sum(pack) > 8 or rng.below(4) == 0 else pack,
            retainer_of=boss if bound else -1,
            retainer_turns=1 + rng.below(3) if bound else 0,
        )

    return Patch(
        tuple([cog(seat) for seat in range(SEATS) if rng.below(4)]),
        tuple(
            [
                ShopPatch(k, (0, 5, 40, 200)[rng.below(4)], stock())
                for k in range(len(KEEPERS))
                if rng.below(2)
            ]
        ),
        (FloorPatch(room, goods(3)),),
    )


def record_episode(cast: Cast) -> dict[str, Json]:
    """Plays a cast; gives the episode in the trace format."""
    game = Cogmud(**msgspec.structs.asdict(cast.parameters))

    def decide(turn: int, seat: Seat, state: State) -> Action:
        name = cast.policies[seat]
        if name in game.spec.baselines:
            return game.baseline(name, state, seat, cast.seed)
        return _DECIDERS[name](game, state, seat, stream(cast.seed, "golden", turn, seat))

    def patch(turn: int, _: State) -> Patch | None:
        return _patch(stream(cast.seed, "golden patch", turn))

    script = Script(
        seed=cast.seed,
        parameters=cast.parameters,
        policies=cast.policies,
        deadline_after_turns=cast.deadline_after_turns,
        decide=decide,
        patch=patch if cast.patches else None,
    )
    record: dict[str, Json] = plain(build_episode(script))
    return record


_SHOUTERS: Final = ("shouter",) * SEATS
_DEALERS: Final = ("dealer",) * SEATS
_ROBBERS: Final = ("robber",) * SEATS
_CHATTERERS: Final = ("chatterer",) * SEATS
_MIXED: Final = ("chatterer", "factor", "magpie", "chatterer", "chatterer", "factor")
_HONEST: Final = ("chatterer", "factor", "magpie", "chatterer", "chatterer", "magpie")
_SHORT: Final = Parameters(turns=6)

# Seeds chosen so that every intent, outcome and kind of line comes up, as do hirelings who beat the watch
# and bargains that fall through for each reason; a test holds them to it.
CASTS: Final = (
    Cast(27, Parameters(turns=7), ("factor", "magpie", "random", "chatterer", "factor", "random")),
    Cast(6, Parameters(turns=6, speech=False), _HONEST),
    Cast(89, Parameters(turns=6, thievery=False), _HONEST, deadline_after_turns=4, patches=True),
    Cast(4, _SHORT, _SHOUTERS, deadline_after_turns=1, patches=True),
    Cast(129, _SHORT, _ROBBERS, deadline_after_turns=2, patches=True),
    Cast(87, _SHORT, _DEALERS, patches=True),
    *(Cast(seed, _SHORT, _CHATTERERS, patches=True) for seed in (132, 257, 308, 627)),
    Cast(6, _SHORT, _MIXED, patches=True),
)


def records() -> Iterator[dict[str, Json]]:
    """The episodes of Cogmud's golden traces."""
    for cast in CASTS:
        yield record_episode(cast)
