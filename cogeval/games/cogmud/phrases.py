"""What a seat may do: any sentence at all, and the sentences that a seat at random would try.

Invariant: `Phrases` holds only what its seat can see, so that it may be handed to an agent. Whatever is
text is legal: a sentence that the town cannot read, or will not carry out, costs a turn and no more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, NoReturn

import msgspec

from cogeval.core.rng import Stream
from cogeval.games.cogmud.lines import units
from cogeval.games.cogmud.state import WAIT, Action, Goods, State
from cogeval.games.cogmud.world import GOODS, KEEPER_IN, KEEPERS, ROOMS, SEATS
from cogeval.games.league import ALIASES

_GOODS: Final = range(len(GOODS))
_NO_SENDERS: Final = ((),) * SEATS
_COUNTLESS: Final = "expected `in` or `sample`: any sentence is legal in Cogmud, so there is no list of them"


class Phrases(msgspec.Struct, frozen=True, gc=False):
    """The legal actions of one seat at one moment: every sentence, say and notes that are text."""

    room: int  # where the seat stands
    here: tuple[str, ...]  # aliases of the cogs in that room, the seat's own included, in seat order
    name: str  # its own alias
    pack: Goods  # what it carries
    floor: Goods  # what lies in the room
    senders: tuple[str, ...]  # aliases of those whose offers are open to the seat

    def __contains__(self, action: object) -> bool:
        return why_illegal(action) is None

    def sample(self, rng: Stream) -> Action:
        """Draws a sentence that somebody who sees this room might try; some are bound to be refused."""
        if self.senders and rng.below(3) == 0:
            return Action(_accept(self, rng))  # an offer is open for one turn only
        fits, draw = _DRAWS[rng.below(len(_DRAWS))]
        if not fits(self) and rng.below(4):
            draw = _move  # nothing to be done here: look elsewhere
        sentence = draw(self, rng)
        return WAIT if sentence is None else Action(sentence)

    def __iter__(self) -> Iterator[Action]:
        return self._refuse()

    def __len__(self) -> int:
        return self._refuse()

    def _refuse(self) -> NoReturn:
        raise TypeError(_COUNTLESS)


def phrases_of(state: State) -> tuple[Phrases, ...]:
    """The legal actions of every seat of an open state."""
    names, packs, floors = state.names, state.pack, state.floor
    together: dict[int, tuple[str, ...]] = {}
    for room, name in zip(state.room, names, strict=True):
        together[room] = (*together[room], name) if room in together else (name,)
    senders = [_senders(state, seat) for seat in range(SEATS)] if state.offers else _NO_SENDERS
    return tuple(
        [
            Phrases(room, together[room], names[seat], packs[seat], floors[room], senders[seat])
            for seat, room in enumerate(state.room)
        ]
    )


def _senders(state: State, seat: int) -> tuple[str, ...]:
    return tuple(
        [
            state.names[offer.sender]
            for offer in state.offers
            if offer.to == seat and offer.posted == state.turn - 1
        ]
    )


def why_illegal(action: object) -> str | None:
    """The word "rejected" for what is no action made of texts, else None (R9.2)."""
    if not isinstance(action, Action):
        return "rejected"
    texts: tuple[object, ...] = (action.sentence, action.say, action.notes)
    return None if all(type(part) is str for part in texts) else "rejected"


def _one(rng: Stream, choices: Sequence[str]) -> str:
    return choices[rng.below(len(choices))]


def _good(goods: Goods, rng: Stream) -> str:
    """Some units of a good that is there; now and then, or when none is, of any good."""
    there = [good for good in _GOODS if goods[good]]
    if not there or rng.below(8) == 0:
        return units(rng.below(len(GOODS)), 1 + rng.below(3))
    good = there[rng.below(len(there))]
    return units(good, 1 + rng.below(goods[good]))


def _cog(phrases: Phrases, rng: Stream) -> str:
    """A cog in the room; now and then, or when nobody is, any alias."""
    others = [name for name in phrases.here if name != phrases.name]
    return _one(rng, others) if others and rng.below(8) else _one(rng, ALIASES)


def _keeper(phrases: Phrases, rng: Stream) -> str:
    """The keeper of the room; now and then, or when there is none, any keeper."""
    here = KEEPER_IN[phrases.room]
    return KEEPERS[here if here >= 0 and rng.below(8) else rng.below(len(KEEPERS))].name


def _move(phrases: Phrases, rng: Stream) -> str:
    exits = ROOMS[phrases.room].exits
    room = exits[rng.below(len(exits))] if rng.below(8) else rng.below(len(ROOMS))
    return f"I walk to {ROOMS[room].name}."


def _take(phrases: Phrases, rng: Stream) -> str:
    return f"I pick up {_good(phrases.floor, rng)}."


def _drop(phrases: Phrases, rng: Stream) -> str:
    return f"I drop {_good(phrases.pack, rng)}."


def _buy(phrases: Phrases, rng: Stream) -> str:
    here = KEEPER_IN[phrases.room]
    deals = KEEPERS[here].deals if here >= 0 and rng.below(8) else _GOODS
    what = units(deals[rng.below(len(deals))], 1 + rng.below(4))
    return f"I buy {what} from {_keeper(phrases, rng)}."


def _sell(phrases: Phrases, rng: Stream) -> str:
    return f"I sell {_good(phrases.pack, rng)} to {_keeper(phrases, rng)}."


def _deliver(phrases: Phrases, rng: Stream) -> str:
    return f"I deliver {_good(phrases.pack, rng)} to {_keeper(phrases, rng)}."


def _give(phrases: Phrases, rng: Stream) -> str:
    what = f"{1 + rng.below(5)} coins" if rng.below(2) else _good(phrases.pack, rng)
    return f"I give {_cog(phrases, rng)} {what}."


def _offer(phrases: Phrases, rng: Stream) -> str:
    return f"I offer {_cog(phrases, rng)} {_good(phrases.pack, rng)} for {1 + rng.below(15)} coins."


def _hire(phrases: Phrases, rng: Stream) -> str:
    return f"I hire {_cog(phrases, rng)} for {1 + rng.below(8)} coins."


def _accept(phrases: Phrases, rng: Stream) -> str:
    if phrases.senders and rng.below(8):
        return f"I accept {_one(rng, phrases.senders)}'s offer."
    return "I accept the offer."


def _rob(phrases: Phrases, rng: Stream) -> str:
    return f"I rob {_cog(phrases, rng)}."


def _ask(phrases: Phrases, rng: Stream) -> str:
    return f"I ask {_keeper(phrases, rng)} about my commission."


def _say(phrases: Phrases, rng: Stream) -> str:
    return f'I say "{_cog(phrases, rng)}, what will you take for {_good(phrases.pack, rng)}?"'


def _wait(phrases: Phrases, rng: Stream) -> str | None:  # noqa: ARG001 - all draws have one form
    return None


def _blunder(phrases: Phrases, rng: Stream) -> str:
    """What the town cannot read, or cannot settle on."""
    return _one(rng, _BLUNDERS).replace("{name}", phrases.name)


_BLUNDERS: Final = (
    "...",
    "Hm, lovely weather.",
    "I buy something.",
    "I drop a rope and a lamp.",
    "I rob {name}.",
)


def _anywhere(phrases: Phrases) -> bool:  # noqa: ARG001 - all tests have one form
    return True


def _lying(phrases: Phrases) -> bool:
    return any(phrases.floor)


def _laden(phrases: Phrases) -> bool:
    return any(phrases.pack)


def _shop(phrases: Phrases) -> bool:
    return KEEPER_IN[phrases.room] >= 0


def _company(phrases: Phrases) -> bool:
    return len(phrases.here) > 1


_DRAWS: Final[tuple[tuple[Callable[[Phrases], bool], Callable[[Phrases, Stream], str | None]], ...]] = (
    (_anywhere, _move),
    (_anywhere, _move),
    (_lying, _take),
    (_lying, _take),
    (_laden, _drop),
    (_shop, _buy),
    (_shop, _buy),
    (_shop, _buy),
    (_shop, _sell),
    (_shop, _deliver),
    (_shop, _ask),
    (_company, _give),
    (_company, _offer),
    (_company, _offer),
    (_company, _hire),
    (_company, _rob),
    (_company, _rob),
    (_anywhere, _accept),
    (_anywhere, _say),
    (_anywhere, _wait),
    (_anywhere, _blunder),
)
"""When a kind of sentence makes sense, and how one is drawn; what leads on to more stands here more often."""
