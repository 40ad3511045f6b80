"""Whatever dies and whoever gives up: every decision gets one answer, and only a killer is to blame."""

from __future__ import annotations

import asyncio

import pytest
from fleet import Deed, Doer, Fleet, ManyDoer, request
from hypothesis import given, settings
from hypothesis import strategies as st
from virtual import run

from cogeval.agents.actor.client import SeatClient
from cogeval.agents.actor.options import ActorOptions
from cogeval.errors import HostError, RecordedFaultError

NAMES = ("left", "right")
LATE = "no reply within 1 s of thinking"


def clients(fleet, number=1):
    from fleet import GAME

    return [SeatClient("doer", NAMES[i], fleet, GAME, ActorOptions()) for i in range(number)]


async def outcome(client, deed, asked=None):
    """What came of a decision: its label, the fault, or "withdrawn"."""
    asked = request(deed) if asked is None else asked
    try:
        reply = await client.ask(asked)
    except asyncio.CancelledError:
        return "withdrawn"
    except RecordedFaultError as error:
        return error.detail
    assert reply.memory == asked.memory + b"+"
    return reply.payload["label"]


async def over(fleet, *asked):
    """Lets the clients go when all is said, and waits for what has died."""
    for client in asked:
        await client.close()
    await asyncio.gather(*fleet.closing)
    for process in list(fleet.processes.values()):
        await process.replica.close()


deeds = st.lists(
    st.builds(
        dict,
        takes_s=st.sampled_from([0.0, 0.002, 0.05, 0.3, 2.0]),
        kills=st.sampled_from([False] * 7 + [True]),
        raises=st.sampled_from([False] * 7 + [True]),
        stubborn=st.booleans(),
        starts_s=st.floats(0, 1),
        given_up_s=st.sampled_from([None, None, None, 0.0, 0.003, 0.02, 0.4]),
    ),
    min_size=1,
    max_size=12,
)


@given(
    deeds=deeds,
    kills=st.lists(st.tuples(st.floats(0, 3), st.integers(0, 2)), max_size=6),
    replicas=st.integers(1, 3),
    made=st.sampled_from([Doer, ManyDoer]),
    batch=st.sampled_from([1, 3, 256]),
    flush_ms=st.sampled_from([0, 10]),
)
@settings(max_examples=150, deadline=None)
def test_every_decision_gets_one_answer_and_only_what_killed_two_actors_alone_is_blamed(
    deeds, kills, replicas, made, batch, flush_ms
):
    async def main():
        fleet = Fleet(replicas, made, batch=batch, flush_ms=flush_ms)
        asking = clients(fleet, 2)
        loop = asyncio.get_running_loop()

        def kill(which):
            names = sorted(fleet.processes)
            if names:
                fleet.processes[names[which % len(names)]].die()

        for at_s, which in kills:
            loop.call_later(at_s, kill, which)
        told = await asyncio.gather(*(one(loop, asking[i % 2], i, deed) for i, deed in enumerate(deeds)))
        await over(fleet, *asking)
        return told, fleet

    async def one(loop, client, label, deed):
        await asyncio.sleep(deed["starts_s"])
        what = Deed(label, deed["takes_s"], deed["kills"], deed["raises"], deed["stubborn"])
        task = loop.create_task(outcome(client, what))
        if deed["given_up_s"] is not None:
            loop.call_later(deed["given_up_s"], task.cancel)
        return await asyncio.wait_for(task, 600)

    told, fleet = run(main())
    for label, (answer, deed) in enumerate(zip(told, deeds, strict=True)):
        if isinstance(answer, str) and "process ended" in answer:
            assert fleet.killed_alone[label] >= 2, f"{label} is innocent"
        elif answer == "withdrawn":
            assert deed["given_up_s"] is not None
        elif deed["kills"]:
            assert fleet.killed_alone[label] >= 2 or answer == "withdrawn", "a killer decided"
        elif deed["raises"]:
            assert answer == "ValueError: told to"
        else:
            assert answer == label


def test_the_innocent_beside_a_killer_are_asked_again_and_it_is_blamed():
    async def main():
        fleet = Fleet(2)
        (client,) = clients(fleet)
        deeds = [Deed(i, 0.2, kills=i == 7) for i in range(40)]
        told = await asyncio.gather(*(outcome(client, deed) for deed in deeds))
        await over(fleet, client)
        return told, fleet

    told, fleet = run(main())
    assert told[:7] + told[8:] == [i for i in range(40) if i != 7]
    assert told[7] == "the seat actor's process ended 2 times while it made this decision and no other"
    assert fleet.begun[7] == 4
    assert max(fleet.begun.values()) == 4


def test_thinking_in_an_actor_that_died_is_not_charged():
    async def main():
        fleet = Fleet(1)
        (client,) = clients(fleet)
        asked = request(Deed(0, 0.5), budget_s=0.8)
        asyncio.get_running_loop().call_later(0.4, next(iter(fleet.processes.values())).die)
        told = await outcome(client, Deed(0), asked)
        think_s, queue_s = asked.timer.think_s, asked.timer.queue_s
        await over(fleet, client)
        return told, think_s, queue_s

    told, think_s, queue_s = run(main())
    assert told == 0
    assert 0.45 < think_s < 0.55
    assert 0.4 < queue_s < 0.6


def test_a_decision_that_cannot_be_cancelled_ends_its_actor_and_the_others_are_asked_again():
    async def main():
        fleet = Fleet(1, ManyDoer)
        (client,) = clients(fleet)
        asked = request(Deed(0, 900.0, stubborn=True), budget_s=1.0)
        hanging = asyncio.ensure_future(outcome(client, Deed(0), asked))
        await asyncio.sleep(0.1)
        waiting = [asyncio.ensure_future(outcome(client, Deed(i))) for i in (1, 2, 3)]
        told = await asyncio.gather(hanging, *waiting)
        await over(fleet, client)
        assert asked.timer.think_s >= 1.0
        return told, fleet.num_hung, asyncio.get_running_loop().time()

    told, num_hung, passed_s = run(main())
    assert told == [LATE, 1, 2, 3]
    assert num_hung == 1
    assert passed_s < 10


def test_a_decision_given_up_in_its_time_ends_nobody_unless_it_goes_on_beyond_it():
    async def main(takes_s):
        fleet = Fleet(1, ManyDoer)
        (client,) = clients(fleet)
        asked = request(Deed(0, takes_s, stubborn=True), budget_s=3.0)
        dropped = asyncio.ensure_future(outcome(client, Deed(0), asked))
        await asyncio.sleep(0.5)
        dropped.cancel()
        await asyncio.sleep(10)
        await over(fleet, client)
        return fleet.num_hung

    assert run(main(2.0)) == 0
    assert run(main(900.0)) == 1


def test_an_error_in_a_batch_is_the_fault_of_its_decision_alone():
    async def main():
        fleet = Fleet(1, ManyDoer, batch=64)
        (client,) = clients(fleet)
        told = await asyncio.gather(*(outcome(client, Deed(i, 0.0, raises=i in (3, 20))) for i in range(33)))
        await over(fleet, client)
        return told

    told = run(main())
    assert [i for i, answer in enumerate(told) if answer == "ValueError: told to"] == [3, 20]
    assert all(answer == i for i, answer in enumerate(told) if i not in (3, 20))


def test_without_a_pool_the_episode_fails_and_no_seat_is_blamed():
    class Gone:
        async def replicas(self, known):
            raise ConnectionError("no driver")

    async def main():
        (client,) = clients(Gone())
        with pytest.raises(
            HostError, match="seat actors of doer cannot be reached: ConnectionError: no driver"
        ):
            await client.ask(request(Deed(0)))
        await client.close()

    run(main())
