"""Pair breaking: from episodes to weighted cells of who beat whom in which seats, per block and in total.

An episode becomes its seat pairs; pairs of one agent with itself are dropped, a tie is half a win each.

Invariant: the order of episodes changes no bit of any result, because cells sum whole half wins in
sorted order. It must not know of models, intervals or names.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cogeval.errors import InputError
from cogeval.ratings.table import FloatArray, IntArray, Table, half_wins

__all__ = ["BlockCells", "PairCells", "break_episodes", "cells_from_matrix", "run_heads", "sums"]


@dataclass(frozen=True, slots=True, eq=False)
class PairCells:
    """Pairs aggregated by who met whom in which seats; one cell per (first, second, seat, seat).

    Args:
        num_agents: how many agents the indexes run over.
        num_seats: how many seats; 1 when seats are not told apart.
        first: int [num_cells], an agent.
        second: int [num_cells], the other agent.
        first_seat: int [num_cells], where the first sat.
        second_seat: int [num_cells], where the second sat.
        games: float [num_cells], summed weight of the pairs.
        wins: float [num_cells], the first agent's wins, ties counted half, 0 .. games.
    """

    num_agents: int
    num_seats: int
    first: IntArray
    second: IntArray
    first_seat: IntArray
    second_seat: IntArray
    games: FloatArray
    wins: FloatArray

    def win_matrix(self) -> FloatArray:
        """Wins of each row over each column, ties counted half: float [num_agents, num_agents]."""
        size = self.num_agents
        won = sums(self.first * size + self.second, self.wins, size * size)
        lost = sums(self.second * size + self.first, self.games - self.wins, size * size)
        return (won + lost).reshape(size, size)


@dataclass(frozen=True, slots=True, eq=False)
class BlockCells:
    """The cells of every block, in compressed rows, and their totals.

    Args:
        totals: the cells summed over blocks.
        starts: int [num_blocks + 1], block b holds the entries starts[b] .. starts[b + 1] - 1.
        cell: int [num_entries], index into the totals; rising within a block.
        games: float [num_entries], summed weight of the block's pairs in that cell.
        wins: float [num_entries], wins of the cell's first agent.

    Only blocks with at least one pair are kept: the others say nothing about who beats whom.
    """

    totals: PairCells
    starts: IntArray
    cell: IntArray
    games: FloatArray
    wins: FloatArray

    @property
    def num_blocks(self) -> int:
        """The number of blocks with at least one pair."""
        return len(self.starts) - 1


def break_episodes(table: Table, *, seats: bool = True, weighted: bool = True) -> BlockCells:
    """Breaks every episode into its seat pairs and aggregates them by block and cell.

    Args:
        table: the episodes.
        seats: tell the seats apart, as the seat term needs.
        weighted: weigh each pair 1 / (seats - 1), so that every seat of an episode counts as one game.

    Returns:
        The cells of each block. Self pairs are dropped.
    """
    layout = _Layout.of(table, table.num_seats if seats else 1)
    keys = _pair_keys(table, layout)
    starts = run_heads(keys)
    count = np.diff(starts, append=len(keys)).astype(np.float64)
    keys = keys[starts]
    if weighted:
        count /= (keys & layout.seat_mask) - 1
    half = (keys >> layout.seat) & 3
    group = keys >> (layout.seat + 2)
    heads = run_heads(group)
    games = np.add.reduceat(count, heads) if len(heads) else count
    wins = np.add.reduceat(count * half, heads) / 2.0 if len(heads) else count
    return _index_cells(group[heads], games, wins, layout)


def cells_from_matrix(wins: FloatArray) -> PairCells:
    """Cells of a win matrix (ties already counted half each way), seats unknown.

    Args:
        wins: float [num_agents, num_agents], wins of each row over each column.
    """
    first, second = np.nonzero(np.triu(wins + wins.T, 1))
    won, lost = wins[first, second], wins[second, first]
    nowhere = np.zeros_like(first)
    return PairCells(len(wins), 1, first, second, nowhere, nowhere, won + lost, won.astype(np.float64))


def sums(index: IntArray, weights: FloatArray, size: int) -> FloatArray:
    """Sums the weights that share an index: float [size]."""
    return np.asarray(np.bincount(index, weights, size), dtype=np.float64)


def run_heads(rising: IntArray) -> IntArray:
    """Where a sorted array changes: the index of the first of each run of equal values."""
    changes = np.ones(len(rising), dtype=np.bool_)
    np.not_equal(rising[1:], rising[:-1], out=changes[1:])
    return np.flatnonzero(changes)


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a pair packs into 64 bits, from the top: block, agents, seats, half wins (2), seats in the episode.

    Shifts unpack millions of keys in a fraction of the time that divisions take.
    """

    num_agents: int
    num_seats: int
    agent: int
    place: int
    seat: int

    @classmethod
    def of(cls, table: Table, num_places: int) -> _Layout:
        num_agents = len(table.names)
        agent, seat = num_agents.bit_length(), table.num_seats.bit_length()
        place = num_places.bit_length() if num_places > 1 else 0
        bits = table.num_blocks.bit_length() + 2 * agent + 2 * place + 2 + seat
        if bits > 63:
            raise InputError(
                f"expected a table that packs into 63 bits a pair, got {bits} for {num_agents} agents, "
                f"{table.num_seats} seats and {table.num_blocks} blocks; rate fewer agents at once"
            )
        return cls(num_agents, num_places, agent, place, seat)

    @property
    def seat_mask(self) -> int:
        return (1 << self.seat) - 1

    @property
    def cell(self) -> int:
        return 2 * self.agent + 2 * self.place


def _pair_keys(table: Table, layout: _Layout) -> IntArray:
    occupied = table.occupied()
    occupancy = occupied.sum(axis=1, dtype=np.int64)
    keys = [np.zeros(0, dtype=np.int64)]
    for seat in range(table.num_seats):
        for other in range(seat + 1, table.num_seats):
            a, b = table.agents[:, seat].astype(np.int64), table.agents[:, other].astype(np.int64)
            won = half_wins(table.ranks[:, seat], table.ranks[:, other])
            if layout.place == 0:  # without seats a pair is unordered: the lower agent first
                won = np.where(a < b, won, 2 - won)
                a, b = np.minimum(a, b), np.maximum(a, b)
            code = (((table.blocks.astype(np.int64) << layout.agent) | a) << layout.agent) | b
            if layout.place:
                code = (((code << layout.place) | seat) << layout.place) | other
            code = (((code << 2) | won) << layout.seat) | occupancy
            keys.append(code[occupied[:, seat] & occupied[:, other] & (a != b)])
    joined = np.concatenate(keys)
    joined.sort()
    return joined


def _index_cells(group: IntArray, games: FloatArray, wins: FloatArray, layout: _Layout) -> BlockCells:
    block = group >> layout.cell
    codes, cell = _unique(group & ((1 << layout.cell) - 1), 1 << layout.cell)
    agents, places = codes >> (2 * layout.place), codes & ((1 << 2 * layout.place) - 1)
    totals = PairCells(
        num_agents=layout.num_agents,
        num_seats=layout.num_seats,
        first=agents >> layout.agent,
        second=agents & ((1 << layout.agent) - 1),
        first_seat=places >> layout.place,
        second_seat=places & ((1 << layout.place) - 1),
        games=sums(cell, games, len(codes)),
        wins=sums(cell, wins, len(codes)),
    )
    return BlockCells(totals, np.append(run_heads(block), len(block)), cell, games, wins)


def _unique(code: IntArray, top: int) -> tuple[IntArray, IntArray]:
    # A table look-up beats sorting millions of entries whenever the table is no longer than they are.
    if top > 4 * len(code) + 1_000_000:
        codes, cell = np.unique(code, return_inverse=True)
        return codes, cell
    used = np.zeros(top, dtype=np.bool_)
    used[code] = True
    codes = np.flatnonzero(used)
    place = np.zeros(top, dtype=np.int64)
    place[codes] = np.arange(len(codes))
    return codes, place[code]
