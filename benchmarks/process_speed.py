"""What agents in processes cost: start, round trip, and how soon a hanging one is gone after its deadline.

    python benchmarks/process_speed.py [--repeats N]

Start is from the first request to the answer to `hello`; gone means that no process of the agent is left.
The goal for the last row is a second.
"""

import argparse
import asyncio
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil

from cogeval.agents import build_agent
from cogeval.agents.process.child import Child
from cogeval.agents.process.launch import Launch
from cogeval.core.episode import Fallback, play
from cogeval.core.seat import Deadlines
from cogeval.games import make_game

ECHO = 'while IFS= read -r line; do echo \'{"type":"ready"}\'; done'
PY_ECHO = "import sys\nfor line in sys.stdin: print('{}', flush=True)"
HANGING = """
import json, os, subprocess, sys, time
for line in sys.stdin:
    if json.loads(line)["type"] == "hello":
        print('{"type": "ready"}', flush=True)
    else:
        nap = "import time; time.sleep(600)"
        subprocess.Popen([sys.executable, "-c", nap, __file__], start_new_session=True)
        while True: pass
"""
DEADLINE_S = 0.3


def show(what: str, seconds: list[float]) -> None:
    """Prints a row: median and the worst."""
    middle, worst = statistics.median(seconds) * 1e3, max(seconds) * 1e3
    print(f"{what:52} {middle:10.3f} {worst:10.3f}")


async def start(command: tuple[str, ...]) -> tuple[float, Child]:
    """Starts a program; gives how long it took to its first line."""
    began = time.perf_counter()
    child = Child(Launch(command))
    await child.write(b'{"type":"hello"}')
    await child.read_line()
    return time.perf_counter() - began, child


async def raw(repeats: int) -> None:
    """Programs that answer anything at once, without a game."""
    for what, command in (("bash", ("bash", "-c", ECHO)), ("python -S", (sys.executable, "-ISc", PY_ECHO))):
        await start(command)
        started = [await start(command) for _ in range(repeats)]
        show(f"start, {what}", [seconds for seconds, _ in started])
        child, trips, line = started[0][1], [], b"x" * 2000
        for _ in range(50 * repeats):
            began = time.perf_counter()
            await child.write(line)
            await child.read_line()
            trips.append(time.perf_counter() - began)
        show(f"round trip of 2 kB, {what}", trips)
        ends = []
        for _, child in started:
            began = time.perf_counter()
            child.kill()
            await child.ended()
            ends.append(time.perf_counter() - began)
        show(f"kill to gone, {what}", ends)


def episodes(repeats: int) -> None:
    """The random agent of Python, inline and placed: the same episodes."""
    game = make_game("cogz")
    for placement in ("inline", "process"):
        entry = build_agent(
            "a", game, {"_target_": "cogeval.agents.random.RandomAgent", "placement": placement}
        )
        other = build_agent("b", game, {"kind": "random"}).seated
        walls, starts, thinks = [], [], []
        for seed in range(repeats + 1):
            began = time.perf_counter()
            episode = asyncio.run(play(game, seed, [entry.seated, other]))
            walls.append(time.perf_counter() - began)
            own = [attempt for attempt in episode.attempts if attempt.seat == 0]
            starts.append(own[0].queue_s)
            thinks += [attempt.think_s for attempt in own[1:]]
        if placement == "process":
            show("placed Python: the first start of a worker", starts[:1])
            show("placed Python: start", starts[1:])
        show(f"COGZ episode, one seat {placement}", walls[1:])
        show(f"COGZ decision, {placement}", thinks)


def kills(repeats: int) -> None:
    """A program that computes for ever, with a child in another session: gone after its deadline."""
    game, late = make_game("cogz"), []
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "hanging.py")
        program.write_text(HANGING)
        settings = {"kind": "process", "command": [sys.executable, str(program)], "files": [str(program)]}
        seated = build_agent("a", game, settings).seated
        late += [asyncio.run(lateness(game, seated, seed, str(program))) for seed in range(repeats)]
    show(f"gone after its deadline of {DEADLINE_S} s", late)


async def lateness(game, seated, seed: int, mark: str) -> float:
    """Seconds from the deadline of the seat's only decision until none of its processes is left."""
    other = build_agent("b", game, {"kind": "random"}).seated
    deadlines = Deadlines(decision_s=DEADLINE_S)
    began = time.perf_counter()
    episode = await play(game, seed, [seated, other], fallback=Fallback("forfeit"), deadlines=deadlines)
    while any(mark in (process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])):
        pass
    fault = next(attempt for attempt in episode.attempts if attempt.fault)
    assert fault.fault == "timeout", fault
    return time.perf_counter() - began - fault.queue_s - DEADLINE_S


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=20)
    repeats = parser.parse_args().repeats
    print(f"{'milliseconds':52} {'median':>10} {'worst':>10}")
    if shutil.which("bash"):
        asyncio.run(raw(repeats))
    episodes(repeats)
    kills(repeats)


if __name__ == "__main__":
    main()
