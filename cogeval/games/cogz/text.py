"""What a model seat reads: the rules and the reply form once, then the table as it stands.

Invariant: everything comes from the observation. A change of wording changes what model seats decide,
never what the rules do.
"""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final

from cogeval.core.game import Prompt
from cogeval.games.cogz.lines import Line, cell_text
from cogeval.games.cogz.rules import rank_key, single_copies
from cogeval.games.cogz.state import Colours, Swap
from cogeval.games.cogz.tiles import COLOUR_NAMES, COLOURS, CORNERS, TILE_TEXTS, colour_at, corners_of
from cogeval.games.cogz.view import Observation

_LONGEST: Final = 2  # open chains of each colour that the text tells

_STEPS: Final = ((-1, 0), (0, 1), (1, 0), (0, -1))  # of the ports N E S W: down, right
_FACING: Final = ("south", "west", "north", "east")  # of a port: the neighbour's side that it meets
_WIDTH: Final = 110  # of the lines of the rules


def prompt(observation: Observation) -> Prompt:
    """System and user text for the seat."""
    seen = observation
    system = _system(
        seen.seats, seen.rounds, seen.rows, seen.columns, seen.lever, seen.pair_copies,
        seen.nuts_per_colour, seen.setup_locks, seen.open_hands,
    )  # fmt: skip
    return Prompt(system=system, user=_user(seen))


@functools.lru_cache(64)
def _system(
    seats: int,
    rounds: int,
    rows: int,
    columns: int,
    lever: int,
    pair_copies: int,
    nuts_per_colour: int,
    setup_locks: bool,
    open_hands: bool,
) -> str:
    rules = _RULES.format(
        seats=seats,
        places="0 and 1" if seats == 2 else f"0 to {seats - 1}",
        rounds=rounds,
        rows=rows,
        columns=columns,
        last_column=chr(ord("A") + columns - 1),
        lever=lever,
        copies=_copies(pair_copies, single_copies(pair_copies)),
        setup=_setup(setup_locks, nuts_per_colour),
        nuts=_NUTS.format(nuts=nuts_per_colour) if nuts_per_colour else "",
        no_nuts=" (nuts do not count)" if nuts_per_colour else "",
        at_end="After the last turn the nuts are added. " if nuts_per_colour else "",
        hands=_OPEN_HANDS if open_hands else _HIDDEN_HANDS,
    )
    return "\n\n".join(textwrap.fill(part, _WIDTH, break_on_hyphens=False) for part in rules.split("\n\n"))


def _copies(pairs: int, singles: int) -> str:
    if pairs == singles:
        return f"there are {pairs} of each of the ten tiles"
    return f"of each tile of two colours there are {pairs}, of each tile of one colour {singles}"


def _setup(locks: bool, nuts: int) -> str:
    if locks:
        no_nut = ", and win nobody a nut" if nuts else ""
        return f"Mechanisms that lie there from the start are locked too{no_nut}."
    return "Mechanisms that lie there from the start are not locked, until a swap completes them anew."


_NUTS: Final = """\
 For each mechanism that a new arc is part of you win one NUT of its colour, while there are any ({nuts} of
each colour at the start). When the game ends each nut adds 2 to its colour; until then it counts nothing."""
_OPEN_HANDS: Final = (
    "Everything is open, all hands too, but for the tiles in the box, which nobody ever sees."
)
_HIDDEN_HANDS: Final = """\
A tile that a seat was dealt at the start is hidden from the others until it is laid; a tile that was taken
from the board has been seen by all. Everything else is open, but for the tiles in the box, which nobody
ever sees."""

_RULES: Final = """\
You play COGZ, a game of swapping tiles, at a table of {seats} (seats {places}). Every seat
collects points in four colours, and only its LOWEST colour counts: the seat whose lowest colour is the
highest wins.

TILES AND BOARD. Every tile has two arcs round two opposite corners: NE and SW, or SE and NW. Each arc is
red R, green G, blue B or yellow Y and joins the middles of the two sides that meet in its corner: NE joins
the north and the east side, SE south and east, SW south and west, NW north and west. So each side of a
tile is touched by exactly one arc, and the two arcs of a tile never touch each other. Tile RG has a red
and a green arc, RR two red ones; {copies}. The board has {rows} rows (1 at the top) and {columns} columns
(A to {last_column} from the left) with a tile in every cell. Every seat has a hand of 3 tiles.

HOW IT IS SHOWN. A cell is two by two characters, NW and NE above SW and SE. A letter is an arc round that
corner, a small letter a locked arc, "." no arc. The letter in the right column of a cell is the arc that
touches its east side; left column: west side; upper row: north side; lower row: south side.

CHAINS. Arcs of two neighbouring cells connect if both touch the side between them and have the same
colour. So for two cells side by side compare the letter in the right column of the left cell with the
letter in the left column of the right cell; for two cells one above the other the letter in the lower row
of the upper cell with the letter in the upper row of the lower cell. A chain is all arcs that are
connected so, and its length is the number of its arcs (a tile that it crosses twice counts 2). A chain of
2 or more arcs is a MECHANISM if it is a closed loop or if both its ends touch the edge of the board. The
arcs of a mechanism are locked for good. {setup}

A SWAP. You choose a tile of your hand, how it is turned, and a cell; it replaces the tile there, which you
take into your hand. Locked arcs stay: where one arc is locked, your tile must have the same colour in the
same corner; where both are, only an identical tile, turned the same way, is legal. Whatever is not locked
may be broken up. An arc that you lay is NEW unless the old tile had the same colour in the same corner.
For each new arc you get points in its colour: the length of its chain on the board after the swap, itself
included, so at least 1. Two new arcs in one chain of length L score L each, 2L in all. An arc that is not
new scores nothing itself, but counts in the length of the chain that it is part of.{nuts}

BONUS TURNS. The lever is at {lever}. Each of your colours that a swap takes from below {lever} to {lever}
or more{no_nuts} wins you one bonus turn: you swap again at once, in a full turn that may win
more of them. This happens once for each colour. The tile that you have just taken may be laid again.

THE GAME lasts {rounds} rounds; in each of them seats {places} take one turn in this order. You must swap
if you can; a swap that changes nothing is legal and scores nothing. {at_end}A seat's result is its lowest
colour; seats whose lowest colours are equal compare their next lowest, and so on.

WHO SEES WHAT. {hands}

REPLY with one JSON object and nothing else, for example:

{{"tile": "RG", "corner": "NE", "cell": "C2"}}

"tile" is a tile of your hand by its two letters; "corner" (NE, SE, SW or NW) is where the arc of the FIRST
letter that you write shall lie, the second lies round the opposite corner; "cell" is the column's letter
and the row's number. The example puts red at NE and green at SW of C2; tile "GR" with corner NE would put
green at NE and red at SW."""


def _user(seen: Observation) -> str:
    sections = (
        _clock(seen),
        "BOARD\n" + "\n".join(_board(seen)),
        _scores_title(seen) + "\n" + "\n".join(_scores(seen)),
        "HANDS\n" + "\n".join(_hands(seen)),
        f"LONGEST CHAINS THAT ARE NOT LOCKED (at most {_LONGEST} of each colour; arcs from end to end)\n"
        + "\n".join(_chains(seen)),
        "SINCE YOUR LAST TURN\n" + ("\n".join(_news(seen)) or "Nothing yet."),
        _question(seen),
    )
    return "\n\n".join(sections)


def _clock(seen: Observation) -> str:
    if seen.turn < 0:
        return f"The game is over. You were seat {seen.seat} of {seen.seats}."
    left = seen.rounds - seen.round
    return (
        f"Round {seen.round + 1} of {seen.rounds} ({left} left, this one included). "
        f"You are seat {seen.seat} of {seen.seats}."
    )


def _question(seen: Observation) -> str:
    if seen.turn < 0:
        return "Nobody has a turn any more."
    left = f"; {seen.pending} swaps are left in this turn, this one included" if seen.pending > 1 else ""
    if seen.turn != seen.seat:
        return f"It is the turn of seat {seen.turn}{' (a bonus turn)' if seen.bonus else ''}{left}."
    return f"It is your {'BONUS turn' if seen.bonus else 'turn'}{left}. Which swap do you make?"


def _num(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _board(seen: Observation) -> Iterator[str]:
    columns = seen.columns
    rule = "   +" + "----+" * columns
    yield "    " + " ".join(f" {chr(ord('A') + column)}  " for column in range(columns)).rstrip()
    for row in range(seen.rows):
        yield rule
        cells = [_cell(seen.board[at], seen.locked[at]) for at in range(row * columns, (row + 1) * columns)]
        yield f"{row + 1:2d} | " + " | ".join(upper for upper, _ in cells) + " |"
        yield "   | " + " | ".join(lower for _, lower in cells) + " |"
    yield rule


def _cell(code: int, locked: int) -> tuple[str, str]:
    """A placed tile as two rows of two characters."""
    at = ["."] * 4
    for arc, corner in enumerate(corners_of(code)):
        letter = COLOURS[colour_at(code, corner)]
        at[corner] = letter.lower() if locked >> arc & 1 else letter
    north_east, south_east, south_west, north_west = at
    return north_west + north_east, south_west + south_east


def _scores_title(seen: Observation) -> str:
    if seen.turn < 0:
        nuts = "nuts included, 2 each; " if seen.nuts_per_colour else ""
        return f"FINAL RESULTS ({nuts}result = the lowest colour, then the next lowest)"
    if seen.nuts_per_colour:
        return "COLOURS (points without nuts; result = the lowest colour, nuts counted 2 each)"
    return "COLOURS (points; result = the lowest colour)"


def _scores(seen: Observation) -> Iterator[str]:
    over = seen.turn < 0
    yield "seat      red  green   blue yellow  lowest" + ("  nuts" if seen.nuts_per_colour else "")
    shown = seen.finals if over else seen.points
    for seat, (points, nuts, score) in enumerate(zip(shown, seen.nuts, seen.scores, strict=True)):
        row = "".join(f"{number:7d}" for number in points)
        won = f"  {_nuts(nuts)}" if seen.nuts_per_colour else ""
        yield f"{_who(seat, seen):7}{row[1:]}{score:8d}{won}"
    if over:
        yield f"Ranking: {_ranking(seen)}"
        return
    if seen.nuts_per_colour:
        yield f"Nuts left: {_nuts(seen.supply)}"
    to_go = [
        f"{name} {seen.lever - number if number < seen.lever else 'none (at or past it)'}"
        for name, number in zip(COLOUR_NAMES, seen.points[seen.seat], strict=True)
    ]
    yield f"Points that you miss to the lever at {seen.lever}: {', '.join(to_go)}"


def _who(seat: int, seen: Observation) -> str:
    return f"{seat} (you)" if seat == seen.seat else f"{seat}"


def _ranking(seen: Observation) -> str:
    """The seats from the first place down, with their colours from the lowest up (R6.2)."""
    keys = [rank_key(final) for final in seen.finals]
    places = [1 + sum(other > key for other in keys) for key in keys]
    return "; ".join(
        f"{places[seat]}. seat {_who(seat, seen)} with {', '.join(map(str, sorted(seen.finals[seat])))}"
        for seat in sorted(range(seen.seats), key=places.__getitem__)
    )


def _nuts(nuts: Colours) -> str:
    return ", ".join(f"{num} {name}" for num, name in zip(nuts, COLOUR_NAMES, strict=True) if num) or "none"


def _hands(seen: Observation) -> Iterator[str]:
    shown = ", ".join(TILE_TEXTS[tile] for tile in seen.known[seen.seat])
    own = ", ".join(TILE_TEXTS[tile] for tile in sorted(seen.hand))  # in the order of `known`
    yield f"You hold {own} (the others know: {shown or 'none'})"
    for seat, (tiles, unseen) in enumerate(zip(seen.known, seen.unseen, strict=True)):
        if seat != seen.seat:
            held = [TILE_TEXTS[tile] for tile in tiles] + ([f"{unseen} unseen"] if unseen else [])
            yield f"Seat {seat} holds {', '.join(held)}"


def _chains(seen: Observation) -> Iterator[str]:
    for colour, name in enumerate(COLOUR_NAMES):
        lines = [
            line for line in seen.chains if line.colour == colour and not line.locked and line.length > 1
        ]
        if not lines:
            yield f"{name}: none of 2 or more"
        for line in lines[:_LONGEST]:
            yield f"{name} {line.length}: {_path(line, seen.columns)}; {_ends(line, seen)}"


def _path(line: Line, columns: int) -> str:
    return ", ".join(f"{cell_text(cell, columns)} {CORNERS[corner]}" for cell, corner in line.arcs)


def _ends(line: Line, seen: Observation) -> str:
    """Where the chain could go on: into which cells, over which of their sides."""
    if not line.ends:
        return "a mechanism, but not locked"
    free: list[str] = []
    blocked: list[str] = []
    for cell, port in line.ends:
        down, right = _STEPS[port]
        near = cell + down * seen.columns + right
        second = (port + 2 - (seen.board[near] >> 4)) % 4 >= 2  # of its arcs: the one that meets the chain
        place = f"{cell_text(near, seen.columns)} ({_FACING[port]} side)"
        (blocked if seen.locked[near] >> second & 1 else free).append(place)
    told = [f"open to {' and '.join(free)}"] if free else []
    told += [f"blocked by a locked arc of {' and '.join(blocked)}"] if blocked else []
    return "; ".join(told + (["other end at the edge"] if len(line.ends) == 1 else []))


def _news(seen: Observation) -> Iterator[str]:
    """The swaps of the seat's own last turn and all that came after it, oldest first."""
    own = [(swap.round, at) for at, swap in enumerate(seen.record) if swap.seat == seen.seat]
    start = min((at for round_, at in own if round_ == own[-1][0]), default=0)
    for swap in seen.record[start:]:
        yield _told(swap, seen)


def _told(swap: Swap, seen: Observation) -> str:
    corners = corners_of(swap.placed)
    colours = [colour_at(swap.placed, corner) for corner in corners]
    placed = "".join(COLOURS[colour] for colour in colours)
    cell = cell_text(swap.row * seen.columns + swap.column, seen.columns)
    who = "You" if swap.seat == seen.seat else f"Seat {swap.seat}"
    bonus = " (bonus turn)" if swap.bonus else ""
    return (
        f"{who}{bonus} laid {placed} at {cell}, {placed[0]} in {CORNERS[corners[0]]} and {placed[1]} in "
        f"{CORNERS[corners[1]]}, and took {TILE_TEXTS[swap.taken]}: {'; '.join(_gains(swap))}."
    )


def _gains(swap: Swap) -> Iterable[str]:
    scored = [f"{name} +{num}" for name, num in zip(COLOUR_NAMES, swap.points, strict=True) if num]
    yield ", ".join(scored) or "no points"
    for colour in swap.mechanisms:
        yield f"completed a {COLOUR_NAMES[colour]} mechanism"
    if any(swap.nuts):
        yield f"won nuts: {_nuts(swap.nuts)}"
    if swap.levers:
        yield f"won {_num(swap.levers, 'bonus turn')}"
