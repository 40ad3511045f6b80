"""What one seat sees, as a value of its own.

Invariant: an `Observation` holds what the seat may see (R7) and nothing else. The layout is shared with the
state: it is frozen, and all of it follows from the open board. What follows from the rest (finals, legal
swaps, chains) is worked out when asked for.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any, Final

import msgspec
from msgspec.structs import replace

from cogeval.core.game import Json
from cogeval.games.cogz.chains import Layout, make_layout
from cogeval.games.cogz.legal import Swaps
from cogeval.games.cogz.lines import Line, board_texts, cell_text, chains_of
from cogeval.games.cogz.rules import NUM_TILES, lever_of, single_copies
from cogeval.games.cogz.state import NUT_POINTS, Action, Colours, Hand, Parameters, State, Swap
from cogeval.games.cogz.tiles import (
    COLOUR_NAMES,
    CORNERS,
    HAND,
    NUM_PLACED,
    SHAPES,
    TILE_OF,
    TILE_TEXTS,
    TILES,
)


class Observation(msgspec.Struct, frozen=True, gc=False):
    """Everything that one seat may know. Columns hold one entry a seat, seat 0 first."""

    seat: int  # the seat that sees this
    seats: int  # 2..6
    rounds: int  # of the whole game
    lever: int  # first space that counts as past the bonus lever
    pair_copies: int  # of each tile of two colours
    nuts_per_colour: int  # at the start
    setup_locks: bool  # mechanisms that lay there at the start are locked
    open_hands: bool  # `known` is every hand
    round: int  # from 0; `rounds` when the game is complete
    turn: int  # the seat that decides, -1 when the game is over
    bonus: bool  # the swap at hand is a bonus turn
    pending: int  # swaps that this seat still has in its turn, the one at hand included
    swaps: int  # made so far
    layout: Layout  # the board, its arms and locks
    hand: Hand  # own tiles, by slot
    known: tuple[tuple[int, ...], ...]  # tiles that all know to be in each hand, ascending; the own one too
    points: tuple[Colours, ...]  # without nuts
    nuts: tuple[Colours, ...]
    supply: Colours  # nuts that are left
    bonuses: tuple[int, ...]  # bonus turns won so far
    record: tuple[Swap, ...]  # every swap so far

    @property
    def rows(self) -> int:
        """Of the board."""
        return self.layout.rows

    @property
    def columns(self) -> int:
        """Of the board."""
        return self.layout.columns

    @property
    def board(self) -> bytes:
        """Codes of the placed tiles, row by row."""
        return self.layout.board

    @property
    def locked(self) -> bytes:
        """Per cell: bit 0: its first arc (NE or SE) is locked, bit 1: its second (SW or NW)."""
        return self.layout.locked

    @property
    def unseen(self) -> tuple[int, ...]:
        """Starting tiles in each hand that the others have not seen; the own entry too."""
        return tuple([HAND - len(tiles) for tiles in self.known])

    @property
    def boxed(self) -> int:
        """Tiles that were neither dealt nor laid; nobody ever sees them (R1.4)."""
        return NUM_TILES - HAND * self.seats - len(self.board)

    @property
    def out_of_sight(self) -> tuple[int, ...]:
        """Copies of each tile that this seat cannot see: unseen in other hands, or boxed."""
        singles = single_copies(self.pair_copies)
        left = [singles if a == b else self.pair_copies for a, b in TILES]
        for code in self.board:
            left[TILE_OF[code]] -= 1
        for seat, tiles in enumerate(self.known):
            for tile in self.hand if seat == self.seat else tiles:
                left[tile] -= 1
        return tuple(left)

    @property
    def finals(self) -> tuple[Colours, ...]:
        """Each seat's colours with its nuts, as they would count now (R6.1)."""
        return tuple(
            [
                tuple([p + NUT_POINTS * n for p, n in zip(points, nuts, strict=True)])
                for points, nuts in zip(self.points, self.nuts, strict=True)
            ]
        )

    @property
    def scores(self) -> Colours:
        """Each seat's lowest colour with its nuts (R6.1)."""
        return tuple([min(final) for final in self.finals])

    @property
    def legal(self) -> Swaps:
        """What this seat could swap, were it its turn now."""
        return Swaps(self.layout, self.hand)

    @property
    def chains(self) -> tuple[Line, ...]:
        """Every chain of the board, the longest first, then by the place of its first segment."""
        return chains_of(self.layout)


@lru_cache(16_384)
def _known(hand: Hand, seen: tuple[bool, ...]) -> tuple[int, ...]:
    """Without the slots: which of them a seat plays from is its own affair (R7)."""
    return tuple(sorted([tile for tile, shown in zip(hand, seen, strict=True) if shown]))


_ALL_SEEN: Final = (True,) * HAND


@lru_cache(64)
def _table(parameters: Parameters) -> tuple[int, int, tuple[tuple[bool, ...], ...]]:
    """Rounds, lever, and what is seen of the hands where they are open."""
    rounds = SHAPES[parameters.seats].rounds
    return rounds, lever_of(parameters), (_ALL_SEEN,) * parameters.seats if parameters.open_hands else ()


def observe(parameters: Parameters, state: State, seat: int) -> Observation:
    """What the seat sees of a state, whoever's turn it is (R7)."""
    rounds, lever, all_seen = _table(parameters)
    return Observation(
        seat,
        parameters.seats,
        rounds,
        lever,
        parameters.pair_copies,
        parameters.nuts_per_colour,
        parameters.setup_locks,
        parameters.open_hands,
        state.round,
        state.seat,
        state.bonus,
        state.pending,
        state.swaps,
        state.layout,
        state.hands[seat],
        tuple(map(_known, state.hands, all_seen or state.seen)),
        state.points,
        state.nuts,
        state.supply,
        state.bonuses,
        state.record,
    )


class _Board(msgspec.Struct, frozen=True):
    """A layout on the wire; its arms are worked out again."""

    rows: Annotated[int, msgspec.Meta(ge=1, le=7)]
    columns: Annotated[int, msgspec.Meta(ge=1, le=7)]
    board: list[Annotated[int, msgspec.Meta(ge=0, lt=NUM_PLACED)]]
    locked: list[Annotated[int, msgspec.Meta(ge=0, le=3)]]

    def layout(self) -> Layout:
        if not self.rows * self.columns == len(self.board) == len(self.locked):
            raise msgspec.ValidationError(
                f"expected {self.rows} x {self.columns} cells in board and locked, "
                f"got {len(self.board)} and {len(self.locked)}"
            )
        bare = make_layout(self.rows, self.columns, bytes(self.board))
        return replace(bare, locked=bytes(self.locked))


def observation_to_wire(observation: Observation) -> dict[str, Json]:
    """The observation as JSON, with what follows from it spelled out for agents in any language."""
    layout = observation.layout
    wire: dict[str, Any] = {
        name: msgspec.to_builtins(getattr(observation, name))
        for name in Observation.__struct_fields__
        if name != "layout"
    }
    wire["layout"] = {
        "rows": layout.rows,
        "columns": layout.columns,
        "board": list(layout.board),
        "locked": list(layout.locked),
    }
    wire["board_text"] = board_texts(layout)
    wire["hand_text"] = [TILE_TEXTS[tile] for tile in observation.hand]
    wire["known_text"] = [[TILE_TEXTS[tile] for tile in tiles] for tiles in observation.known]
    wire["unseen"], wire["boxed"] = list(observation.unseen), observation.boxed
    wire["out_of_sight"] = dict(zip(TILE_TEXTS, observation.out_of_sight, strict=True))
    wire["finals"] = [list(final) for final in observation.finals]
    wire["scores"] = list(observation.scores)
    wire["chains"] = [_chain_to_wire(layout, line) for line in observation.chains if line.length > 1]
    return wire


def _chain_to_wire(layout: Layout, line: Line) -> dict[str, Json]:
    return {
        "colour": COLOUR_NAMES[line.colour],
        "length": line.length,
        "arcs": [f"{cell_text(cell, layout.columns)} {CORNERS[corner]}" for cell, corner in line.arcs],
        "locked": line.locked,
    }


def observation_from_wire(value: Json) -> Observation:
    """The inverse of `observation_to_wire`; what follows from the rest is worked out again.

    Raises:
        msgspec.ValidationError: when a field is missing or of another type.
    """
    if not isinstance(value, dict) or "layout" not in value:
        raise msgspec.ValidationError(f"expected an object with a layout, got {value!r:.200}")
    layout = msgspec.convert(value["layout"], _Board).layout()
    return msgspec.convert({**value, "layout": layout}, Observation)


def action_to_wire(action: Action) -> dict[str, Json]:
    """The action as JSON, every field present."""
    wire: dict[str, Json] = msgspec.to_builtins(action)
    return wire


def action_from_wire(value: Json) -> Action:
    """The inverse of `action_to_wire`.

    Raises:
        msgspec.ValidationError: when a field is missing or no whole number.
    """
    return msgspec.convert(value, Action)
