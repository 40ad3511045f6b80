"""What a worker counts for a cluster's dashboards, and what it writes into its log."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from cogeval.cluster.chronicle import Chronicle
from cogeval.cluster.logs import RunLog
from cogeval.cluster.meters import METRICS, Meter
from cogeval.core.agent import Reply, Request, Scripted, Seated
from cogeval.core.episode import play
from cogeval.core.record import Attempt, Episode
from cogeval.games import make_game
from cogeval.schedule.designs import Slot
from cogeval.schedule.messages import Failed, Finished, Void
from cogeval.store.places import LocalPlace


class _Broken:
    async def decide(self, request: Request) -> Reply:
        raise ValueError("no idea" * 100)


class _Sink:
    def __init__(self) -> None:
        self.counts: dict[tuple[str, ...], float] = {}
        self.seen: dict[tuple[str, ...], list[float]] = {}
        self.gauges: dict[tuple[str, ...], float] = {}

    def add(self, metric: str, amount: float, labels: Mapping[str, str]) -> None:
        assert METRICS[metric][0] == "counter"
        assert set(METRICS[metric][2]) == set(labels)
        key = (metric, *labels.values())
        self.counts[key] = self.counts.get(key, 0) + amount

    def observe(self, metric: str, values: Sequence[float], labels: Mapping[str, str]) -> None:
        assert METRICS[metric][0] == "histogram"
        assert set(METRICS[metric][2]) == set(labels)
        self.seen.setdefault((metric, *labels.values()), []).extend(values)

    def set(self, metric: str, value: float, labels: Mapping[str, str]) -> None:
        assert METRICS[metric][0] == "gauge"
        assert set(METRICS[metric][2]) == set(labels)
        self.gauges[(metric, *labels.values())] = value


_GAME = make_game("cogz")
_POOL = [
    Seated("good", Scripted("balanced"), deterministic=True),
    Seated("bad", lambda seat, rng: _Broken(), deterministic=False),
]


def faulty(episode: Episode) -> list[Attempt]:
    return [a for a in episode.attempts if a.fault is not None]


@pytest.fixture(scope="module")
def episode() -> Episode:
    return asyncio.run(play(_GAME, 1, _POOL))


def test_a_worker_counts_faults_by_agent_and_times_those_that_take_time(episode) -> None:
    sink = _Sink()
    meter = Meter(_POOL, sink, "w0")
    meter.add((0, 1), episode, faulty(episode))
    other = asyncio.run(play(_GAME, 2, _POOL[::-1]))
    meter.add((1, 0), other, faulty(other))
    assert not sink.counts, "nothing is handed over before a receipt"
    meter.publish(5)
    assert sink.counts["cogeval_episodes",] == 2
    num_bad = sink.counts["cogeval_faults", "bad", "exception"]
    assert num_bad == sum(a.fault is not None for one in (episode, other) for a in one.attempts) > 0
    assert ("cogeval_faults", "good", "exception") not in sink.counts
    assert len(sink.seen["cogeval_think_s", "bad"]) == num_bad
    assert ("cogeval_think_s", "good") not in sink.seen
    assert sink.gauges["cogeval_in_flight", "w0"] == 5


def test_what_was_handed_over_is_not_counted_again(episode) -> None:
    sink = _Sink()
    meter = Meter(_POOL, sink, "w0")
    meter.add((0, 1), episode, faulty(episode))
    meter.publish(1)
    before = dict(sink.counts)
    meter.publish(0)
    assert sink.counts == before
    assert sink.gauges["cogeval_in_flight", "w0"] == 0


def test_a_log_has_one_line_for_each_fault_with_run_episode_and_seat(tmp_path: Path, episode) -> None:
    path = tmp_path / "logs" / "w0.jsonl"
    log = RunLog(path, "run-1", "w0")
    slot = Slot(7, 3, 1, (0, 1), 0)
    log.faults(slot, "ab" * 16, ["good", "bad"], faulty(episode))
    log.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == sum(a.fault is not None for a in episode.attempts)
    first = lines[0]
    assert (first["run"], first["by"], first["episode"], first["seat"]) == ("run-1", "w0", 7, 1)
    assert (first["event"], first["agent"], first["fault"]) == ("fault", "bad", "exception")
    assert len(first["detail"]) <= 200


def test_an_episode_that_went_well_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "w0.jsonl"
    log = RunLog(path, "run-1", "w0")
    went_well = asyncio.run(play(_GAME, 1, _POOL[:1] * 2))
    log.faults(Slot(0, 0, 1, (0, 0), 0), "ab" * 16, ["good"] * 2, faulty(went_well))
    assert not path.exists()


def test_a_log_is_bounded_and_says_where_the_rest_is(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "w0.jsonl"
    log = RunLog(path, "run-1", "w0")
    for number in range(10_100):
        log.event("fault", number=number)
    log.close()
    lines = path.read_text().splitlines()
    assert len(lines) == 10_000
    assert json.loads(lines[-1])["event"] == "log_full"


def test_a_log_that_cannot_be_written_hurts_nobody(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("a file where the directory should be")
    log = RunLog(tmp_path / "logs" / "w0.jsonl", "run-1", "w0")
    log.event("lost_worker")
    log.close()
    RunLog(None, "run-1", "w0").event("lost_worker")


def test_a_driver_keeps_what_went_wrong_and_counts_it(tmp_path: Path) -> None:
    sink = _Sink()
    (tmp_path / "run-1").mkdir()
    chronicle = Chronicle(LocalPlace(tmp_path / "run-1"), sink)
    chronicle.note(Failed("w0", 3, "a full disk"))
    chronicle.note(Void(3, "a full disk"))
    chronicle.lost("w0", 12, "it died")
    chronicle.note(Finished("w1", (1, 2)))
    chronicle.close()
    lines = [json.loads(line) for line in (tmp_path / "run-1/logs/driver.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines] == ["episode_failed", "void", "worker_lost"]
    assert {line["run"] for line in lines} == {"run-1"}
    assert (lines[0]["episode"], lines[0]["worker"], lines[2]["episodes"]) == (3, "w0", 12)
    assert sink.counts == {
        ("cogeval_retries",): 13,
        ("cogeval_void",): 1,
        ("cogeval_lost_workers",): 1,
    }


def test_the_guide_lists_every_metric_as_it_is() -> None:
    guide = (Path(__file__).parents[2] / "docs/cluster.md").read_text()
    listed = [line for line in guide.splitlines() if line.startswith("| `cogeval_")]
    assert listed == [
        f"| `{name}` | {kind} |{f' {labels} ' if (labels := ', '.join(keys)) else ' '}| {what} |"
        for name, (kind, what, keys) in METRICS.items()
    ]
