"""One run under one schedule of kills: plays it through `cogeval run` and `cogeval resume`, then proves it.

Invariant: nothing here is part of the product: it starts processes, looks at files and sends signals.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from chaos_cluster import Machines
from chaos_schedule import Step, Stretch

from cogeval.core.ranges import from_ranges
from cogeval.core.record import run_digest
from cogeval.store.read import read_tables
from cogeval.store.run import RunDir

HERE = Path(__file__).resolve().parent
_STRETCH_S = 400.0  # longest that a driver may take: minutes only on a machine that does much else
_SEAL_S = 4.0  # longest wait for a worker to seal a shard while its driver stands still
_POLL_S = 0.03
_ACTED = (
    "{_target_: chaos_agents.Leans, placement: actor, deterministic: true, actor: {replicas: 2, cpus: 0}}"
)
_FINE = (0, 130, -signal.SIGKILL, -signal.SIGTERM)


@dataclass(slots=True)
class Report:
    """What became of one seed."""

    seed: int
    actions: list[str] = field(default_factory=list)  # as they were done
    num_resumes: int = 0
    elapsed_s: float = 0.0
    digest: str = ""
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Scene:
    """What every run of one session shares."""

    machines: Machines
    directory: Path  # of the runs
    num_episodes: int
    decision_s: float  # that a decision of the slow agent takes
    has_seats: bool = False  # an agent has seat actors

    @property
    def doom(self) -> Path:
        """The file that arms a worker; its path is a parameter of the agent."""
        return self.directory / "doom"

    def options(self) -> list[str]:
        """Of `cogeval run`."""
        agents = HERE / "agents"
        slow = f"{{_target_: chaos_agents.Ponders, seconds: {self.decision_s}, doom: {self.doom}}}"
        return [
            f"cluster.address={self.machines.address}",
            f"agent_paths=[{agents}]",
            f"+pool.agents.slow={slow}",
            f"schedule.blocks={self.num_episodes}",
            "schedule=round_robin",
            "game.rounds=3",
            "tracking=off",
            "cluster.episodes_in_flight=8",
            "cluster.max_attempts=50",  # innocent episodes are sent as often as this script kills
            "store.seal_every_s=1",
            "deadlines.decision_s=60",
            *([f"+pool.agents.acted={_ACTED}"] if self.has_seats else []),
        ]


class Ordeal:
    """One run.

    Args:
        scene: what runs share.
        seed: names the run's root.
    """

    def __init__(self, scene: Scene, seed: int) -> None:
        self.scene = scene
        self.root = scene.directory / f"seed-{seed}"
        self.report = Report(seed)
        self.driver: psutil.Popen | None = None
        self._seen = 0

    def go(self, stretches: tuple[Stretch, ...]) -> Report:
        """Plays to the end whatever happens, and looks at what is there."""
        began = time.monotonic()
        self.root.mkdir(parents=True)
        for number, stretch in enumerate(stretches):
            self.start(stretch.ending)
            for step in stretch.steps:
                self.carry_out(step)
            if stretch.ending is not None:
                self.carry_out(stretch.ending)
            self.wait(last=number == len(stretches) - 1)
            self.scene.doom.unlink(missing_ok=True)
        self.scene.machines.restore()
        if self.run_dir() is None or self.finished() < self.scene.num_episodes:
            self.start(None)
            self.wait(last=True)
        self.prove()
        self.report.elapsed_s = time.monotonic() - began
        return self.report

    # --- the driver -----------------------------------------------------------------------------------

    def run_dir(self) -> RunDir | None:
        """The run, once there is one."""
        found = sorted(self.root.glob("*/manifest.json"))
        return RunDir(found[0].parent) if found else None

    def start(self, ending: Step | None) -> None:
        """Starts a driver: the first one, or one that goes on."""
        run = self.run_dir()
        root = f"run.root={self.root}"
        resuming = run is not None
        words = ["resume", "latest", root] if resuming else ["run", root, *self.scene.options()]
        program = [sys.executable, "-m", "cogeval"]
        if ending is not None and ending.action == "kill driver at a touch":
            touch = 1 + ending.pick % (60 if resuming else 40)
            program = [sys.executable, str(HERE / "death.py"), str(touch), str(self.root)]
            self.report.actions.append(f"driver will die at touch {touch}")
        self.report.num_resumes += resuming
        with (self.root / "drivers.log").open("a") as log:
            self.driver = psutil.Popen([*program, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    @property
    def is_driven(self) -> bool:
        """True while the driver lives."""
        return self.driver is not None and self.driver.poll() is None

    def wait(self, *, last: bool) -> None:
        """Waits for the driver's end, and judges it."""
        assert self.driver is not None
        try:
            code = self.driver.wait(_STRETCH_S)
        except psutil.TimeoutExpired:
            self.driver.kill()
            self.driver.wait()
            self.report.problems.append(f"a driver was still there after {_STRETCH_S:g} s")
            return
        if code not in ((0,) if last else _FINE):
            self.report.problems.append(f"a driver ended with code {code}: {self.last_words()}")

    def last_words(self) -> str:
        """The last line that a driver wrote."""
        lines = (self.root / "drivers.log").read_text().strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    # --- moments --------------------------------------------------------------------------------------

    def finished(self) -> int:
        """Episodes on disk: recorded, or flushed to a shard that is being filled."""
        num = 0
        for shards in self.root.glob("*/shards"):
            records = {p.stem: p for p in shards.glob("*.json")}
            with contextlib.suppress(OSError, ValueError):  # a file that goes while we look
                num += sum(from_ranges(json.loads(p.read_bytes())["accepted"]).size for p in records.values())
                hot = [p for p in shards.glob("*.sums.hot") if p.name.split(".")[0] not in records]
                num += sum(p.read_bytes().count(b"\n") for p in hot)
        self._seen = max(self._seen, num)
        return self._seen

    def unrecorded(self) -> list[str]:
        """Shards that are sealed and have no record yet."""
        sealed = {p.name.split(".")[0] for p in self.root.glob("*/shards/*.episodes.arrow")}
        return sorted(sealed - {p.stem for p in self.root.glob("*/shards/*.json")})

    def wait_for(self, share: float) -> bool:
        """Waits until so much is finished; False when the driver ended before."""
        while self.finished() < share * self.scene.num_episodes:
            if not self.is_driven:
                return False
            time.sleep(_POLL_S)
        return self.is_driven

    # --- actions --------------------------------------------------------------------------------------

    def carry_out(self, step: Step) -> None:
        """Waits for the step's moment and does it; a run that is over by then is left alone."""
        if step.action == "kill driver at a touch":
            return  # it was armed when it started
        if step.action == "kill driver early":
            time.sleep(step.pick % 3000 / 1000)
            self.signal_driver(signal.SIGKILL)
        elif self.wait_for(step.at):
            {
                "kill worker": self.kill_worker,
                "kill all workers": self.kill_all_workers,
                "freeze worker": self.freeze_worker,
                "kill worker at a touch": self.doom_worker,
                "kill worker at a seal": self.kill_worker_at_a_seal,
                "kill seat actor": self.kill_seat_actor,
                "kill node": self.kill_node,
                "add node": self.add_node,
                "kill driver": lambda _: self.signal_driver(signal.SIGKILL),
                "kill driver at a seal": self.kill_driver_at_a_seal,
                "stop driver": lambda _: self.signal_driver(signal.SIGTERM),
            }[step.action](step.pick)
        else:
            return
        self.report.actions.append(str(step))

    def workers(self) -> list[psutil.Process]:
        """Processes of the episode actors."""
        return self.scene.machines.actors("EpisodeActor")

    def kill_worker(self, pick: int) -> None:
        """Kills one episode actor."""
        if workers := self.workers():
            send(workers[pick % len(workers)], signal.SIGKILL)

    def kill_all_workers(self, pick: int) -> None:
        """Kills every episode actor at once."""
        for worker in self.workers():
            send(worker, signal.SIGKILL)

    def freeze_worker(self, pick: int) -> None:
        """Lets one episode actor stand still for up to two seconds."""
        if workers := self.workers():
            worker = workers[pick % len(workers)]
            send(worker, signal.SIGSTOP)
            time.sleep(pick % 2000 / 1000)
            send(worker, signal.SIGCONT)

    def doom_worker(self, pick: int) -> None:
        """Lets the next worker that makes an agent die at one of its touches of the run's files."""
        aside = self.scene.doom.with_suffix(".new")
        aside.write_text(f"{1 + pick % 25} {self.root}")
        aside.rename(self.scene.doom)

    def sealed_while_driver_stands_still(self) -> str:
        """Stops the driver until a shard is sealed that it cannot record; its id, or nothing."""
        self.signal_driver(signal.SIGSTOP)
        until = time.monotonic() + _SEAL_S
        while time.monotonic() < until:
            if found := self.unrecorded():
                return found[0]
            time.sleep(_POLL_S)
        return ""

    def kill_worker_at_a_seal(self, pick: int) -> None:
        """Kills the workers when one has sealed a shard and the driver has not heard of it."""
        if not self.sealed_while_driver_stands_still():
            self.report.actions.append("no shard was sealed")
        self.kill_all_workers(pick)
        self.signal_driver(signal.SIGCONT)

    def kill_driver_at_a_seal(self, pick: int) -> None:
        """Kills the driver between a shard and its record."""
        if not self.sealed_while_driver_stands_still():
            self.report.actions.append("no shard was sealed")
        self.signal_driver(signal.SIGKILL)

    def kill_seat_actor(self, pick: int) -> None:
        """Kills one replica of a seat pool."""
        if seats := self.scene.machines.actors("SeatActor"):
            send(seats[pick % len(seats)], signal.SIGKILL)

    def kill_node(self, pick: int) -> None:
        """Kills a node; another one takes its place."""
        self.scene.machines.kill_node(pick)
        if pick & 0x10000 or not self.scene.machines.nodes:
            self.scene.machines.add_node()

    def add_node(self, pick: int) -> None:
        """Adds a node."""
        self.scene.machines.add_node()

    def signal_driver(self, number: signal.Signals) -> None:
        """Sends the driver a signal, when it is there."""
        if self.is_driven:
            assert self.driver is not None
            send(self.driver, number)

    # --- proof ----------------------------------------------------------------------------------------

    def prove(self) -> None:
        """Compares what is on disk with what was scheduled, by the product's audit and by our own count."""
        run = self.run_dir()
        if run is None:
            self.report.problems.append(f"there is no run: {self.last_words()}")
            return
        audit = cogeval("audit", "latest", "--json", f"run.root={self.root}")
        self.report.problems += [f"audit: {f['rule']}: {f['message']}" for f in audit["findings"]]
        episodes = read_tables(run, tables=("episodes",)).episodes
        indexes = sorted(episodes["index"].to_pylist())
        if indexes != list(range(self.scene.num_episodes)):
            num_once = len(set(indexes))
            self.report.problems.append(
                f"{num_once} episodes of {self.scene.num_episodes}, {len(indexes)} rows"
            )
        self.report.digest = run_digest(episodes["digest"].to_pylist())
        status = cogeval("status", "latest", "--json", f"run.root={self.root}")
        found = (status["state"], status["recorded"], status["void"])
        if found != ("complete", self.scene.num_episodes, 0):
            self.report.problems.append(f"status: state, recorded, void are {found}")


def send(process: psutil.Process, number: signal.Signals) -> None:
    """Sends a signal to a process that may be gone."""
    with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
        process.send_signal(number)


def cogeval(*words: str) -> dict[str, object]:
    """What a command says as JSON, whatever its exit code."""
    done = subprocess.run(
        [sys.executable, "-m", "cogeval", *words], capture_output=True, text=True, check=False, timeout=120
    )
    if not done.stdout:
        raise RuntimeError(f"cogeval {' '.join(words)} ended with {done.returncode}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def undisturbed(scene: Scene) -> Report:
    """The run that all others are compared with."""
    ordeal = Ordeal(scene, -1)
    return ordeal.go((Stretch((), None),))


def new_directory(parent: str | None) -> Path:
    """A private directory for the runs of one session."""
    import tempfile

    return Path(tempfile.mkdtemp(prefix=f"cogeval-chaos-{os.getpid()}-", dir=parent))
