"""Lineups that treat every agent alike: who meets whom, and who sits where.

Invariant: at every moment of the sequence each agent has sat in each seat equally often, to within one,
and has appeared equally often, to within one; pairs of agents meet equally often as nearly as a greedy
choice gets. Must not know seeds of blocks, designs or agents: it speaks in indexes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final, TypeAlias

from cogeval.core.rng import Stream, stream

__all__ = ["Lineup", "balanced_lineups", "distinct_rotations"]

Lineup: TypeAlias = tuple[int, ...]
"""Agent index per seat."""

_CYCLE_MIN: Final = 512  # blocks: shorter cycles would show few of the possible seatings
_CYCLE_MAX: Final = 8192  # blocks: a cycle that did not come out even by then starts again all the same


@lru_cache(maxsize=8)
def balanced_lineups(num_agents: int, num_seats: int, run_seed: int, num_blocks: int) -> tuple[Lineup, ...]:
    """One cycle of lineups, to be gone through block by block, again and again.

    The sequence is made in rounds of `num_agents` blocks. In a round every agent appears exactly
    `num_seats` times, once in each seat; the cycle ends with a round after which all pairs have met
    equally often.

    Args:
        num_agents: size of the pool, at least 1.
        num_seats: size of the table, at least 1. Where the pool is smaller, agents repeat as evenly as
            possible.
        run_seed: decides all that is open.
        num_blocks: how many will be needed; fewer are made when they suffice. Does not change them.

    Returns:
        Lineups, a multiple of `num_agents` of them.
    """
    rng = stream(run_seed, "lineups", num_agents, num_seats)
    copies, extras = divmod(num_seats, num_agents)
    meetings = [[0] * num_agents for _ in range(num_agents)]
    lineups: list[Lineup] = []
    while len(lineups) < num_blocks and len(lineups) < max(_CYCLE_MAX, num_agents):
        dealt = _deal_round(num_agents, extras, meetings, rng)
        tables = [[*range(num_agents)] * copies + hand for hand in dealt]
        lineups += _seat_round(tables, num_agents, rng)
        if len(lineups) >= _CYCLE_MIN and _all_equal(meetings):
            break
    return tuple(lineups)


def distinct_rotations(lineup: Lineup) -> tuple[Lineup, ...]:
    """Every rotation of a lineup, each once, beginning with itself."""
    turned = (lineup[i:] + lineup[:i] for i in range(len(lineup)))
    return tuple(dict.fromkeys(turned))


def _all_equal(meetings: list[list[int]]) -> bool:
    met = {count for i, row in enumerate(meetings) for count in row[:i]}
    return len(met) <= 1


# --- who meets whom -----------------------------------------------------------------------------------


def _deal_round(num_agents: int, hand_size: int, meetings: list[list[int]], rng: Stream) -> list[list[int]]:
    """Deals `num_agents` hands from a deck of all agents that starts anew when it is empty.

    A hand that the old deck cannot fill takes the rest from the new one, so appearances never differ by
    more than one. Within that, each card is one that has met the hand least often.
    """
    hands: list[list[int]] = []
    deck: list[int] = []
    for _ in range(num_agents):
        hand: list[int] = []
        while len(hand) < hand_size:
            if not deck:
                deck = [*range(num_agents)]
                rng.shuffle(deck)
            card = min(
                (c for c in deck if c not in hand), key=lambda c: sum(meetings[c][h] ** 2 for h in hand)
            )
            deck.remove(card)
            hand.append(card)
        for i, a in enumerate(hand):
            for b in hand[:i]:
                meetings[a][b] += 1
                meetings[b][a] += 1
        hands.append(hand)
    return hands


# --- who sits where -----------------------------------------------------------------------------------


def _seat_round(tables: list[list[int]], num_agents: int, rng: Stream) -> list[Lineup]:
    """Seats a round so that every agent sits in each seat exactly once.

    That is an edge colouring (a colour is a seat) of the bipartite multigraph of tables and agents,
    all of degree `num_seats`; one always exists (Koenig 1916). An edge whose ends have no free seat in
    common gets one by exchanging two seats along an alternating path.
    """
    num_seats = len(tables[0])
    agent_at = [[-1] * num_seats for _ in tables]
    table_of = [[-1] * num_seats for _ in range(num_agents)]
    for table, hand in enumerate(tables):
        for agent in hand:
            here = [s for s in range(num_seats) if agent_at[table][s] < 0]
            common = [s for s in here if table_of[agent][s] < 0]
            if common:
                seat = common[rng.below(len(common))]
            else:
                seat = here[rng.below(len(here))]
                _exchange(agent_at, table_of, agent, seat, table_of[agent].index(-1))
            agent_at[table][seat] = agent
            table_of[agent][seat] = table
    return [tuple(lineup) for lineup in agent_at]


def _exchange(
    agent_at: list[list[int]], table_of: list[list[int]], agent: int, wanted: int, free: int
) -> None:
    """Frees the wanted seat for the agent by exchanging it with the free one along their path."""
    path: list[tuple[int, int, int]] = []  # agent, table, seat
    node, seat, at_agent = agent, wanted, True
    while (other := (table_of if at_agent else agent_at)[node][seat]) >= 0:
        path.append((node, other, seat) if at_agent else (other, node, seat))
        node, at_agent, seat = other, not at_agent, wanted + free - seat
    for a, t, s in path:
        agent_at[t][s] = table_of[a][s] = -1
    for a, t, s in path:
        agent_at[t][wanted + free - s] = a
        table_of[a][wanted + free - s] = t
