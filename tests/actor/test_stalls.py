"""A replica whose whole process stands still: only the decision that keeps it so is late."""

from __future__ import annotations

import asyncio

import pytest
from fleet import Deed, Doer, Fleet, ManyDoer, request
from hypothesis import given, settings
from hypothesis import strategies as st
from test_deaths import LATE, clients, outcome, over
from virtual import run

BUDGET_S = 1.0


async def asked_of(fleet, asking, deeds):
    """What came of each deed, the time that each was charged, and how long it took."""
    loop = asyncio.get_running_loop()

    async def one(label, starts_s, deed):
        await asyncio.sleep(starts_s)
        mine, began = request(deed, budget_s=BUDGET_S), loop.time()
        told = await asyncio.wait_for(outcome(asking[label % len(asking)], deed, mine), 600)
        return told, mine.timer.think_s, loop.time() - began

    told = await asyncio.gather(*(one(i, *deed) for i, deed in enumerate(deeds)))
    await over(fleet, *asking)
    return told


def stalls_cost_their_own_seats(deeds, replicas, made=Doer, num_clients=2, **options):
    async def main():
        fleet = Fleet(replicas, made, **options)
        return await asked_of(fleet, clients(fleet, num_clients), deeds)

    told = run(main())
    for label, ((answer, think_s, _), (_, deed)) in enumerate(zip(told, deeds, strict=True)):
        if deed.stalls or deed.blocks:
            assert answer == LATE
            assert BUDGET_S <= think_s < BUDGET_S + 1
        else:
            assert answer == label, f"{label} is innocent"
            assert think_s < BUDGET_S
    return [took_s for _, _, took_s in told]


@given(
    deeds=st.lists(
        st.tuples(
            st.floats(0, 2),
            st.sampled_from([0.0, 0.002, 0.05, 0.5, 0.95]),
            st.sampled_from([{}] * 8 + [{"stalls": True}, {"blocks": True}]),
        ),
        min_size=1,
        max_size=12,
    ),
    replicas=st.integers(1, 3),
    flush_ms=st.sampled_from([0, 10, 300]),
)
@settings(max_examples=200, deadline=None)
def test_a_stall_costs_its_own_seat_only(deeds, replicas, flush_ms):
    told = [(starts_s, Deed(i, takes_s, **worst)) for i, (starts_s, takes_s, worst) in enumerate(deeds)]
    stalls_cost_their_own_seats(told, replicas, flush_ms=flush_ms)


@pytest.mark.parametrize("made", [Doer, ManyDoer])
def test_an_answer_that_had_not_left_when_another_decision_stalls_the_process_is_given_again(made):
    done = [(0.0, Deed(i, 0.3)) for i in range(2)]
    took_s = stalls_cost_their_own_seats(
        [*done, (0.25, Deed(2, 0.1 if made is Doer else 0.05, stalls=True))],
        1,
        made,
        1,
        batch=1,
        flush_ms=200,
    )
    assert max(took_s[:2]) < 2 * (BUDGET_S + 1)


def test_of_a_crowd_only_the_one_that_stalls_is_late():
    deeds = [(0.0, Deed(i, 0.3, stalls=i == 7)) for i in range(40)]
    stalls_cost_their_own_seats(deeds, 2)


@pytest.mark.parametrize("num_clients", [1, 2])
def test_what_keeps_the_event_loop_ends_one_process_and_nobody_else_is_asked_alone(num_clients):
    async def main():
        fleet = Fleet(1)
        deeds = [(0.0, Deed(i, 0.3, blocks=i == 7)) for i in range(200)]
        told = await asked_of(fleet, clients(fleet, num_clients), deeds)
        return told, fleet

    told, fleet = run(main())
    assert [answer for answer, _, _ in told] == [*range(7), LATE, *range(8, 200)]
    assert len(fleet.known) == 1
    assert fleet.begun[7] == 1
    assert max(took_s for _, _, took_s in told) < 2 * (BUDGET_S + 1)


def test_a_replica_that_is_merely_slow_to_say_what_it_has_ends_nobody():
    async def main():
        fleet = Fleet(1, flush_ms=500)
        deeds = [(0.0, Deed(0, 0.8)), (0.1, Deed(1, 0.95)), (0.0, Deed(2, 3.0))]
        return await asked_of(fleet, clients(fleet), deeds), fleet.num_hung

    told, num_hung = run(main())
    assert [answer for answer, _, _ in told] == [0, 1, LATE]
    assert num_hung == 0


def test_waits_inside_an_agent_move_the_end_of_its_time():
    class Waits(Doer):
        async def decide(self, request):
            with request.timer.queued():
                await asyncio.sleep(2.0)
            return await super().decide(request)

    async def main():
        fleet = Fleet(1, Waits)
        return await asked_of(fleet, clients(fleet), [(0.0, Deed(0, 0.8)), (0.0, Deed(1, 1.2))])

    (first, _, _), (second, think_s, _) = run(main())
    assert (first, second) == (0, LATE)
    assert think_s == pytest.approx(1.0, abs=0.05)


def test_an_answer_of_one_that_ran_alone_leaves_before_the_next_that_is_alone_can_stall_the_process():
    quick = [(0.0, Deed(i, 0.0, stalls=i == 6)) for i in range(1, 9)]
    stalls_cost_their_own_seats([(1.0, Deed(0, 0.0)), *quick], 1, flush_ms=0)
