"""What can be done alone: take, drop, move, wait (R5).

Invariant: an effect changes the town it is given and answers with an outcome; a refusal changes nothing.
"""

from __future__ import annotations

from cogeval.games.cogmud.state import Intent, Line
from cogeval.games.cogmud.town import Town, with_units
from cogeval.games.cogmud.world import ROOMS


def take(town: Town, seat: int, intent: Intent) -> str:  # R5.1
    """Picks goods up."""
    good, room = intent.item, town.room[seat]
    lying = town.floor[room][good]
    if lying == 0:
        return "no_such_item"
    free = town.free(seat)
    if free <= 0:
        return "carry_limit"
    town.qty = units = min(intent.qty, lying, free)
    town.floor[room] = with_units(town.floor[room], good, -units)
    town.move_units(seat, good, units)
    town.write(seat, Line("took", town.state.names[seat], "", -1, -1, good, units))
    return "ok"


def drop(town: Town, seat: int, intent: Intent) -> str:  # R5.2
    """Puts goods down."""
    good, room = intent.item, town.room[seat]
    held = town.pack[seat][good]
    if held == 0:
        return "not_carrying"
    town.qty = units = min(intent.qty, held)
    town.floor[room] = with_units(town.floor[room], good, units)
    town.move_units(seat, good, -units)
    town.write(seat, Line("dropped", town.state.names[seat], "", -1, -1, good, units))
    return "ok"


def move(town: Town, seat: int, intent: Intent) -> str:  # R5.8
    """Walks through an exit."""
    room, to_room = town.room[seat], intent.to_room
    if to_room not in ROOMS[room].exits:
        return "no_such_exit"
    town.write(seat, Line("left", town.state.names[seat], "", -1, to_room))
    town.room[seat] = to_room
    town.prev_room[seat] = room
    return "ok"


def wait(town: Town, seat: int, intent: Intent) -> str:  # noqa: ARG001 - R5.9, the signature of an effect
    """Lets the turn pass."""
    town.write(seat, Line("waited", town.state.names[seat]))
    return "waited"
