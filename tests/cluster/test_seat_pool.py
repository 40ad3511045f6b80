"""The books of seat actors and whether they fit, without any cluster."""

import asyncio

import pytest
import ray
from hypothesis import given
from hypothesis import strategies as st
from ray.exceptions import RayActorError

from cogeval.cluster.connection import connected
from cogeval.cluster.plan import ClusterOptions
from cogeval.cluster.seat_fit import Need, Node, check_each, fitting_workers, own_cpus
from cogeval.cluster.seat_pool import Loss, Losses, Roster
from cogeval.cluster.seat_pool_actor import SeatPool
from cogeval.errors import InputError


def roster(replicas=2, spares=1):
    made = Roster("a", replicas, spares)
    for replica in made.begin():
        made.ready(replica)
    return made


def test_a_spare_takes_the_place_of_a_dead_one_and_another_is_started():
    books = roster()
    first, second = books.active
    (spare,) = books.spare
    version = books.version
    assert books.lost(first, "killed")
    assert books.active == (second, spare)
    assert books.version > version
    (fresh,) = books.begin()
    assert fresh not in (first, second, spare)
    books.ready(fresh)
    assert books.spare == (fresh,)


def test_a_loss_that_is_told_twice_counts_once():
    books = roster()
    lost = books.active[0]
    assert books.lost(lost, "one worker says so")
    version = books.version
    assert not books.lost(lost, "another says so too")
    assert books.version == version
    assert len(books.begin()) == 1


def test_without_spares_the_place_is_empty_until_another_is_ready():
    books = roster(replicas=1, spares=0)
    books.lost(books.active[0], "killed")
    assert books.active == ()
    (fresh,) = books.begin()
    assert books.active == ()
    books.ready(fresh)
    assert books.active == (fresh,)


def test_three_that_die_as_they_start_are_trouble_and_one_that_lives_forgives_the_others():
    books = Roster("a", 1, 0)
    for _ in range(2):
        books.lost(*books.begin(), "dies")
    (lives,) = books.begin()
    books.ready(lives)
    books.lost(lives, "killed")
    for _ in range(3):
        assert books.trouble is None
        books.lost(*books.begin(), "dies at once")
    assert books.trouble == "dies at once"
    assert books.begin() == ()


@given(
    st.integers(1, 4),
    st.integers(0, 3),
    st.lists(st.tuples(st.sampled_from(["ready", "lost"]), st.integers(0, 9)), max_size=60),
)
def test_whatever_happens_as_many_as_were_asked_for_are_there_or_being_made(replicas, spares, steps):
    books = Roster("a", replicas, spares)
    seen, starting, lists = set(), [], {}
    for what, which in [("begin", 0), *steps]:
        alive = [*starting, *books.active, *books.spare]
        if what == "ready" and starting:
            books.ready(starting.pop(which % len(starting)))
        elif what == "lost":
            victim = alive[which % len(alive)]
            assert books.lost(victim, "killed")
            starting = [replica for replica in starting if replica != victim]
            assert victim not in (*books.active, *books.spare)
        if books.trouble is not None:
            assert books.begin() == ()
            break
        fresh = books.begin()
        assert not seen & set(fresh)
        seen |= set(fresh)
        starting += fresh
        assert len(starting) + len(books.active) + len(books.spare) == replicas + spares
        assert not books.spare or len(books.active) == replicas
        assert lists.setdefault(books.version, books.active) == books.active


def test_a_loss_is_told_once_and_with_its_reason():
    losses = Losses()
    losses.tell(Loss("a", "a-0", "hung"))
    losses.suspect("a", "a-1")
    assert losses.take() == [Loss("a", "a-0", "hung")]
    assert losses.take() == []
    assert losses.explain("a-1", "node lost", "its node has died")
    assert not losses.explain("a-1", "died", "heard twice")
    assert losses.take() == [Loss("a", "a-1", "node lost", "its node has died")]


def test_one_of_which_nobody_says_why_it_is_gone_is_told_at_the_end():
    losses = Losses()
    losses.suspect("a", "a-1")
    assert losses.take() == []
    losses.end()
    assert losses.take() == [Loss("a", "a-1", "died")]
    losses.end()
    assert losses.take() == []


NODE_DIED = (
    "The actor died because its node has died. Node Id: 1f\n\tthe actor's node was terminated unexpectedly"
)
WORKER_DIED = "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR"


@pytest.mark.parametrize(
    ("says", "why", "detail"),
    [
        (NODE_DIED, "node lost", "the actor's node was terminated unexpectedly"),
        (WORKER_DIED, "died", WORKER_DIED),
        ("page " * 100, "died", "page " * 39 + "..."),
    ],
)
@pytest.mark.parametrize("is_missed_first", [False, True])
def test_what_ray_says_of_a_dead_one_tells_a_lost_node_from_a_lost_process(
    says, why, detail, is_missed_first
):
    async def heard():
        pool = SeatPool((), {})
        waiting = asyncio.ensure_future(pool.losses())
        await asyncio.sleep(0)
        if is_missed_first:  # by a worker, before the pool hears of it
            pool._losses.suspect("a", "a-0")
        else:
            pool._actors["a-0"] = None
        pool._explain("a", "a-0", RayActorError(error_msg=says))
        pool._actors.clear()
        pool._explain("a", "a-0", RayActorError(error_msg=says))  # heard twice
        pool._tell()
        return await waiting

    assert asyncio.run(heard()) == [Loss("a", "a-0", why, detail)]


def test_nothing_is_heard_of_a_closed_pool():
    async def heard():
        pool = SeatPool((), {})
        waiting = asyncio.ensure_future(pool.losses())
        pool._losses.suspect("a", "a-0")
        await pool.close()
        return [*await waiting, *await pool.losses()]

    assert asyncio.run(heard()) == [Loss("a", "a-0", "died")]


def need(count=1, cpus=1.0, gpus=0.0, memory_mb=0.0, agent="big"):
    return Need(agent, count, cpus, gpus, memory_mb)


TWO_NODES = [Node("10.0.0.1", 4, 0, 8000), Node("10.0.0.2", 2, 1, 4000)]


def test_workers_get_what_is_left_beside_the_seat_actors():
    assert fitting_workers([], TWO_NODES, None) == 6
    assert fitting_workers([need(count=2)], TWO_NODES, None) == 4
    assert fitting_workers([need(count=1, cpus=0.5, gpus=1)], TWO_NODES, None) == 5
    assert fitting_workers([need(count=2)], TWO_NODES, 3) == 3


@pytest.mark.parametrize("wanted", [need(cpus=5), need(gpus=2), need(memory_mb=9000), need(cpus=3, gpus=1)])
def test_a_seat_actor_that_no_node_can_hold_is_refused_with_what_was_asked_and_what_there_is(wanted):
    with pytest.raises(InputError) as refused:
        check_each([wanted], TWO_NODES)
    message = str(refused.value)
    assert wanted.each() in message
    assert "pool.agents.big.actor" in message
    assert all(str(node) in message for node in TWO_NODES)


def test_seat_actors_that_do_not_fit_together_are_refused():
    with pytest.raises(InputError, match=r"there is room for 3 of big.*4 x 2 CPUs"):
        fitting_workers([need(count=4, cpus=2, memory_mb=4000)], TWO_NODES, None)


def test_seat_actors_that_leave_no_room_for_the_workers_are_refused():
    with pytest.raises(InputError, match=r"room for 1 workers.*2 workers take a CPU each"):
        fitting_workers([need(count=5)], TWO_NODES, 2)


def test_the_largest_are_placed_first():
    nodes = [Node("a", 2, 0, 100), Node("b", 4, 0, 100)]
    assert fitting_workers([need(cpus=1, agent="small"), need(cpus=4)], nodes, None) == 1


def test_fractions_of_a_cpu_are_rounded_up_once():
    assert own_cpus([need(count=3, cpus=0.5)]) == 2
    assert own_cpus([need(count=3, cpus=0)]) == 0


def test_a_ray_of_our_own_is_not_started_for_a_seat_actor_that_the_machine_cannot_hold():
    refused = pytest.raises(InputError, match=r"9,999 CPUs.*\[this machine: \d+ CPUs, [\d,]+ MB")
    with refused, connected(ClusterOptions(workers=1), [need(cpus=9999)]):
        pass
    assert not ray.is_initialized()
