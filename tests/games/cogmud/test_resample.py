"""R8.2: another world that a seat cannot tell apart."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import replace

from cogeval.games.cogmud import Cogmud
from cogeval.games.cogmud.state import Line, Offer, State
from cogeval.games.cogmud.world import CARRY_CAP, STOCK_CAP
from cogeval.games.league import ALIASES
from cogeval.testing.snapshot import snapshot
from cogeval.testing.walks import walk

GAME = Cogmud(turns=24)

KNOWN = {"turn", "turns_played", "reason", "room_log"}
"""Columns that hide nothing: the clock, and the log that is empty while a turn is open."""


def states() -> Iterator[State]:
    for seed in range(3):
        for position in walk(GAME, seed).positions:
            yield position.state


def tangled() -> State:
    """Bonds, offers and hints on all sides."""
    state = GAME.step(
        GAME.initial_state(7), {d.seat: d.default for d in GAME.decisions(GAME.initial_state(7))}
    )
    offers = (
        Offer("trade", 1, 0, 4, 2, 9, 0),
        Offer("trade", 2, 1, 5, 1, 20, 0),
        Offer("hire", 3, 0, -1, 0, 6, 0),
        Offer("hire", 0, 4, -1, 0, 2, 0),
    )
    return replace(
        state.next,
        employer=(1, -1, 0, 2, 5, 3),
        bond=(2, 0, 1, 2, 1, 2),
        offers=offers,
        hint=(True,) * 6,
        stock=((0,) * 6, *state.next.stock[1:]),
        notes=("Ask Gasket.",) * 6,
    )


def everything() -> Iterator[State]:
    yield from states()
    yield tangled()


def others(state: State, num: int = 2) -> Iterator[tuple[int, State]]:
    for seat in range(6):
        for draw in range(num):
            yield seat, GAME.resample_hidden(state, seat, np.random.default_rng([state.turn, seat, draw]))


def test_r8_2_an_observation_is_the_same_when_anything_hidden_changes() -> None:
    changed: set[str] = set()
    for state in everything():
        legal = {d.seat: d.legal for d in GAME.decisions(state)}
        for seat, other in others(state):
            seen, also = GAME.observe(state, seat), GAME.observe(other, seat)
            assert snapshot(seen) == snapshot(also)
            assert GAME.observation_to_wire(seen) == GAME.observation_to_wire(also)
            assert GAME.prompt(seen) == GAME.prompt(also)
            assert legal[seat] == GAME.decisions(other)[seat].legal
            changed |= {n for n in State.__struct_fields__ if getattr(state, n) != getattr(other, n)}
    assert changed == {*State.__struct_fields__} - KNOWN


def test_r8_2_every_hidden_entry_of_a_column_is_redrawn() -> None:
    """Of other seats everything changes in some draw; of the seat itself only what it does not see."""
    state = tangled()
    columns = (
        *("prev_room", "coin", "pack", "commissions", "delivered", "robberies", "robbed"),
        *("outcome", "sentence", "hint", "notes"),
    )
    unseen = ("prev_room", "robberies", "robbed")
    for seat in range(6):
        draws = [GAME.resample_hidden(state, seat, np.random.default_rng(draw)) for draw in range(30)]
        for name in columns:
            for each in range(6):
                values = {getattr(other, name)[each] for other in draws}
                assert (len(values) == 1) == (each == seat and name not in unseen), (name, seat, each)


def test_resampled_worlds_keep_to_their_bounds() -> None:
    for state in everything():
        for seat, other in others(state, num=1):
            assert len({*other.names}) == 6
            assert {*other.names} <= {*ALIASES}
            assert all(coin >= 0 for coin in (*other.coin, *other.till))
            assert all(sum(pack) <= CARRY_CAP and min(pack) >= 0 for pack in other.pack)
            assert all(0 <= units <= STOCK_CAP for shelf in other.stock for units in shelf)
            assert all(units >= 0 for lying in other.floor for units in lying)
            assert all(len({*goods}) == 2 and {*goods} <= {0, 1, 2, 3} for goods in other.commissions)
            assert all(0 <= units <= 2 for done in other.delivered for units in done)
            for cog, (employer, bond) in enumerate(zip(other.employer, other.bond, strict=True)):
                assert employer != cog
                assert (employer >= 0) == (1 <= bond <= 3)
            here = state.room[seat]
            assert [room == here for room in other.room] == [room == here for room in state.room]
            assert all(offer.posted == state.turn - 1 for offer in other.offers)
            assert all(offer.sender != offer.to for offer in other.offers)


def test_resampled_worlds_play_on() -> None:
    for state in everything():
        for _, other in others(state, num=1):
            GAME.step(other, {d.seat: d.default for d in GAME.decisions(other)})


@pytest.mark.parametrize("seed", range(20))
def test_r6_4_what_the_seat_was_told_stays_true(seed: int) -> None:
    state = tangled()
    for seat in range(6):
        other = GAME.resample_hidden(state, seat, np.random.default_rng(seed))
        assert GAME.observe(other, seat).tips == GAME.observe(state, seat).tips != ()


def test_aliases_that_the_seat_has_met_stay_with_their_cogs() -> None:
    state = tangled()
    met = {0, 1, 2, 3, 4}  # itself, its employer, its retainer, whose offer it has, whom it made one
    for draw in range(10):
        other = GAME.resample_hidden(state, 0, np.random.default_rng(draw))
        assert all(other.names[cog] == state.names[cog] for cog in met)
    assert {GAME.resample_hidden(state, 0, np.random.default_rng(draw)).names[5] for draw in range(30)} - {
        state.names[5]
    }


def test_a_cog_that_was_heard_to_leave_is_where_it_went() -> None:
    state = GAME.initial_state(3)
    here, gone = state.room[0], state.room[1]
    heard: list[tuple[Line, ...]] = [()] * 9
    heard[here] = (Line("left", state.names[1], room=gone),)
    state = replace(state, heard=tuple(heard))
    for draw in range(10):
        assert GAME.resample_hidden(state, 0, np.random.default_rng(draw)).room[1] == gone
