"""The episode loop: phases, fallbacks, endings, and its record played again."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from toy import Bid, Bids, FakeClock, Turns, bids, sits

from cogeval.core.agent import Reply, Request, Scripted, Seated
from cogeval.core.episode import Fallback, play, replay
from cogeval.core.record import Episode
from cogeval.core.seat import Deadlines, agent_stream
from cogeval.errors import EpisodeError, InputError

SOON = Deadlines(decision_s=0.05, retry_s=0.05)


def run(game: Any, *seats: Seated, seed: int = 5, **more: Any) -> Episode:
    return asyncio.run(play(game, seed, seats, **more))


def broken(request: Request) -> Reply:
    raise ValueError("broken")


# --- phases ----------------------------------------------------------------------------------------------


def test_seats_of_a_phase_decide_at_the_same_time_on_the_same_state() -> None:
    async def main() -> Episode:
        barrier = asyncio.Barrier(3)  # passes only when all three are deciding at once
        states: list[Any] = []

        async def decide(request: Request) -> Reply:
            states.append(request.observation)
            await barrier.wait()
            return Reply(Bid(request.decision.seat))

        episode = await play(Bids(3, 2), 0, [sits(decide)] * 3, deadlines=Deadlines(decision_s=5))
        assert [s.phase for s in states] == [0, 0, 0, 1, 1, 1]
        assert len(set(states)) == 2
        return episode

    assert [s.score for s in asyncio.run(main()).results.seats] == [0, 2, 4]


def test_no_seat_is_charged_for_anothers_thinking() -> None:
    async def slow(request: Request) -> Reply:
        await asyncio.Event().wait()
        return Reply(Bid(1))

    async def quick(request: Request) -> Reply:
        return Reply(Bid(2))

    episode = run(Bids(3, 1), sits(slow), sits(quick), bids(3), deadlines=SOON)
    assert [(a.seat, a.fault) for a in episode.attempts] == [(0, "timeout"), (0, None), (1, None), (2, None)]
    assert all(a.think_s < 0.04 for a in episode.attempts if a.seat)


def test_in_a_turn_game_only_the_seat_to_move_is_asked() -> None:
    asked: list[tuple[int, int]] = []

    def decide(request: Request) -> Reply:
        asked.append((request.observation.phase, request.decision.seat))
        return Reply(Bid(1))

    episode = run(Turns(3, 7), *[sits(decide)] * 3)
    assert asked == [(i, i % 3) for i in range(7)]
    assert [s.score for s in episode.results.seats] == [3, 2, 2]
    assert episode.ranks == (0, 1, 1)
    assert episode.shares == (1.0, 0.25, 0.25)


def test_a_game_that_opens_over_is_an_episode_without_decisions() -> None:
    episode = run(Bids(2, 0), bids(1), bids(2))
    assert episode.attempts == ()
    assert episode.journal() == []
    assert replay(Bids(2, 0), 5, [])[1] == episode.digest


def test_a_scripted_seat_plays_the_games_baseline_without_fault() -> None:
    episode = run(Bids(2, 2), Seated("s", Scripted("seeded"), True), bids(1))
    mine = [a for a in episode.attempts if a.seat == 0]
    assert [a.action for a in mine] == [Bid(5), Bid(6)]
    assert {(a.source, a.fault, a.accepted) for a in mine} == {("agent", None, True)}


def test_agents_get_a_stream_of_their_own_that_replicates_differ_in() -> None:
    words: list[int] = []

    def factory(seat: int, rng: Any) -> Any:
        words.append(rng.word())
        return bids(1).agent(seat, rng)  # type: ignore[operator]

    seats = [Seated("a", factory, True)] * 2
    for replicate in (0, 1, 0):
        run(Bids(2, 1), *seats, replicate=replicate)
    assert words[:2] == words[4:]
    assert len(set(words)) == 4
    assert words[3] == agent_stream(5, 1, 1).word()


# --- faults ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fallback", "source", "score"),
    [
        (Fallback(), "baseline", 14),
        (Fallback(baseline="seeded"), "baseline", 11),
        (Fallback("pass"), "pass", 0),
    ],
)
def test_after_a_fault_the_fallback_decides(fallback: Fallback, source: str, score: float) -> None:
    episode = run(Bids(2, 2), sits(broken), bids(3), fallback=fallback)
    mine = [a for a in episode.attempts if a.seat == 0]
    assert [(a.attempt, a.source, a.accepted) for a in mine] == [(0, "agent", False), (1, source, True)] * 2
    assert episode.results.seats[0].score == score
    assert not any(episode.forfeited)


def test_a_forfeit_is_the_default_to_the_end_and_ranked_last() -> None:
    asked: list[int] = []

    def good_once(request: Request) -> Reply:
        asked.append(request.observation.phase)
        return Reply(Bid(9)) if len(asked) == 1 else broken(request)

    episode = run(Bids(3, 4), sits(good_once), bids(1), bids(2), fallback=Fallback("forfeit"))
    mine = [a for a in episode.attempts if a.seat == 0]
    assert asked == [0, 1]
    assert [(a.phase, a.source, a.action) for a in mine if a.accepted] == [
        (0, "agent", Bid(9)), (1, "forfeit", Bid(0)), (2, "forfeit", Bid(0)), (3, "forfeit", Bid(0)),
    ]  # fmt: skip
    assert [s.score for s in episode.results.seats] == [9, 4, 8]  # it would have been first
    assert episode.forfeited == (True, False, False)
    assert episode.ranks == (2, 1, 0)
    assert episode.shares == (0.0, 0.5, 1.0)
    assert replay(Bids(3, 4), 5, episode.journal())[1] == episode.digest


def test_faults_change_nothing_for_the_others() -> None:
    seen: list[Any] = []

    def watch(request: Request) -> Reply:
        seen.append(request.observation)
        return Reply(Bid(1))

    with_fault = run(Bids(2, 3), sits(broken), sits(watch))
    first, seen[:] = list(seen), []
    without = run(Bids(2, 3), bids(7), sits(watch))
    assert seen == first
    assert with_fault.digest == without.digest


# --- clocks ----------------------------------------------------------------------------------------------


def test_the_episode_clock_stops_between_phases_once_its_share_has_passed() -> None:
    clock = FakeClock()

    async def slow(request: Request) -> Reply:
        clock.time += 25
        return Reply(Bid(1))

    deadlines = Deadlines(decision_s=60, episode_timeout_s=100, play_fraction=0.6)
    episode = run(Bids(2, 9), sits(slow), bids(2), deadlines=deadlines, clock=clock)
    assert episode.results.phases == 3  # 75 s, looked at after 25, 50 and 75
    assert episode.results.reason == "deadline"
    assert episode.stopped
    assert episode.has_clock_events
    assert episode.wall_s == 75
    assert replay(Bids(2, 9), 5, episode.journal(), stopped=True)[1] == episode.digest


def test_an_episode_that_ends_in_its_last_phase_is_not_stopped() -> None:
    clock = FakeClock()

    async def slow(request: Request) -> Reply:
        clock.time += 99
        return Reply(Bid(1))

    deadlines = Deadlines(decision_s=200, episode_timeout_s=10)
    episode = run(Bids(1, 1), sits(slow), deadlines=deadlines, clock=clock)
    assert not episode.stopped
    assert episode.results.reason == "complete"


def test_with_deterministic_seats_only_the_episode_clock_is_off() -> None:
    clock = FakeClock()

    def slow(request: Request) -> Reply:
        clock.time += 1000
        return Reply(Bid(1))

    seats = [sits(slow), Seated("s", Scripted("seven"), True)]
    episode = run(Bids(2, 5), *seats, deadlines=Deadlines(episode_timeout_s=1), clock=clock)
    assert episode.results.phases == 5
    assert not episode.has_clock_events


@pytest.mark.parametrize(("is_model", "starts"), [(True, [100, 130, 160]), (False, [100, 100, 100])])
def test_batches_of_model_calls_keep_their_spacing(is_model: bool, starts: list[float]) -> None:
    clock = FakeClock()
    asked: list[float] = []

    async def decide(request: Request) -> Reply:
        asked.append(clock.now())
        return Reply(Bid(1))

    deadlines = Deadlines(min_batch_spacing_s=30)
    run(Bids(2, 3), sits(decide, is_model=is_model), bids(1), deadlines=deadlines, clock=clock)
    assert asked == starts


def test_spacing_waits_only_for_phases_that_a_model_decides() -> None:
    clock = FakeClock()
    asked: list[float] = []

    async def model(request: Request) -> Reply:
        asked.append(clock.now())
        return Reply(Bid(1))

    def other(request: Request) -> Reply:
        clock.time += 10
        return Reply(Bid(1))

    deadlines = Deadlines(min_batch_spacing_s=25)
    run(Turns(2, 4), sits(model, is_model=True), sits(other), deadlines=deadlines, clock=clock)
    assert asked == [100, 125]


def test_a_cancelled_episode_leaves_no_task_behind() -> None:
    async def main() -> None:
        deciding = asyncio.Semaphore(0)

        async def decide(request: Request) -> Reply:
            deciding.release()
            await asyncio.Event().wait()
            return Reply(Bid(1))

        task = asyncio.ensure_future(play(Bids(3, 2), 0, [sits(decide)] * 3))
        for _ in range(3):
            await deciding.acquire()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for _ in range(5):  # a cancelled task ends in the next rounds of the loop
            await asyncio.sleep(0)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


# --- the record played again -----------------------------------------------------------------------------


@pytest.mark.parametrize("game", [Bids(3, 4), Turns(3, 5)], ids=["simultaneous", "turns"])
def test_a_replayed_journal_gives_the_equal_digest(game: Any) -> None:
    def varied(request: Request) -> Reply:
        return Reply(Bid(request.observation.phase * 2 % 12, say="é"))  # 10 is out of range

    episode = run(game, sits(varied), sits(broken), bids(4))
    state, digest = replay(game, 5, episode.journal())
    assert digest == episode.digest
    assert game.results(state) == episode.results
    assert run(game, sits(varied), sits(broken), bids(4)).digest == digest


def test_the_digest_covers_what_happened_and_not_how_long_it_took() -> None:
    def thinks(seconds: float) -> Seated:
        return sits(lambda request: Reply(Bid(1), think_s=seconds, text=str(seconds)))

    base = run(Bids(1, 2), thinks(1)).digest
    assert run(Bids(1, 2), thinks(2)).digest == base
    assert run(Bids(1, 2), thinks(1), seed=6).digest != base
    assert run(Bids(1, 3), thinks(1)).digest != base
    assert run(Turns(1, 2), thinks(1)).digest != base
    assert run(Bids(1, 2), bids(2)).digest != base


GOOD = [{0: Bid(1), 1: Bid(2)}, {0: Bid(3), 1: Bid(4)}]


@pytest.mark.parametrize(
    ("journal", "stopped", "message"),
    [
        ([{0: Bid(1)}, GOOD[1]], False, r"phase 0: expected actions of seats \[0, 1\], got \[0\]"),
        (
            [GOOD[0], {0: Bid(1), 2: Bid(1)}],
            False,
            r"phase 1: expected actions of seats \[0, 1\], got \[0, 2\]",
        ),
        ([*GOOD, GOOD[0]], False, r"phase 2: expected actions of seats \[\], got \[0, 1\]"),
        (GOOD[:1], False, r"ends after 1 phases, before the episode does"),
        (GOOD, True, r"expected an open episode to stop, got one over after 2 phases"),
    ],
)
def test_a_journal_that_does_not_fit_the_rules_is_an_error(journal: Any, stopped: bool, message: str) -> None:
    with pytest.raises(EpisodeError, match=message):
        replay(Bids(2, 2), 0, journal, stopped=stopped)


# --- our own failures ------------------------------------------------------------------------------------


def test_a_lineup_of_the_wrong_size_is_an_error() -> None:
    with pytest.raises(EpisodeError, match="expected 2 seats for bids, got 3"):
        run(Bids(2, 1), bids(1), bids(1), bids(1))


def test_rules_that_fail_are_no_fault_of_a_seat() -> None:
    class BrokenLater(Bids):
        def step(self, state: Any, actions: Any) -> Any:
            if state.phase == 1:
                raise KeyError("shop")
            return super().step(state, actions)

    with pytest.raises(EpisodeError, match="bids 1 failed in phase 1: KeyError: 'shop'") as caught:
        run(BrokenLater(1, 3), bids(1))
    assert isinstance(caught.value.__cause__, KeyError)


def test_an_unknown_baseline_is_the_users_to_mend() -> None:
    with pytest.raises(InputError, match="unknown baseline 'eight'"):
        run(Bids(1, 1), sits(broken), fallback=Fallback(baseline="eight"))
