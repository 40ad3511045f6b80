"""Plays whole episodes with a real, tiny model on this machine: what `make test-llm` runs.

Invariant: the server that it starts ends with it, by its own process. The model plays badly; what counts is
that its replies arrive, are JSON as the schema says, and cost nobody else anything.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from cogeval.agents import build_agent
from cogeval.core.agent import Resources, Seated, Usage, bound
from cogeval.core.budget import Budget
from cogeval.core.episode import play
from cogeval.core.game import AnyGame
from cogeval.core.local_quota import LocalQuota
from cogeval.core.quota import Limits
from cogeval.core.record import Attempt, Episode
from cogeval.core.seat import Deadlines
from cogeval.games import make_game

HERE = Path(__file__).parent
RUNNING = re.compile(r"Uvicorn running on (http://127\.0\.0\.1:\d+)")
STARTS_S = 120.0  # that the server may take until it listens
LEAST_VALID = 0.6  # of the replies that are JSON objects; most are, with a schema
DEADLINES = Deadlines(decision_s=180.0, retry_s=180.0, episode_timeout_s=1800.0)
TABLES = (  # game, parameters, seats of the model, the baseline of the others
    ("cogchemists", {"rounds": 3}, 1, "quack"),
    ("cogmud", {"turns": 6}, 1, "factor"),
)


class Played(msgspec.Struct, frozen=True):
    """One episode, and what the model's seats did in it."""

    game: str
    episode: Episode
    attempts: tuple[Attempt, ...]  # of the model
    took_s: float

    @property
    def num_valid(self) -> int:
        """Replies that are a JSON object."""
        return sum(_is_object(attempt.text) for attempt in self.attempts)

    @property
    def faults(self) -> Counter[str]:
        """How many of each kind."""
        return Counter(attempt.fault for attempt in self.attempts if attempt.fault is not None)

    @property
    def usage(self) -> Usage:
        """Tokens in all."""
        used = [attempt.usage for attempt in self.attempts if attempt.usage is not None]
        return Usage(sum(u.tokens_in for u in used), sum(u.tokens_out for u in used))


def _is_object(text: str | None) -> bool:
    try:
        return isinstance(json.loads(text or ""), dict)
    except ValueError:
        return False


@contextlib.contextmanager
def serving(python: Path) -> Iterator[str]:
    """Starts the server, waits until it listens, and gives its address."""
    with tempfile.TemporaryFile("w+") as log:
        command = [str(python), str(HERE / "serve.py")]
        server = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        try:
            yield _address(server, log)
        finally:
            server.terminate()
            try:
                server.wait(10)
            except subprocess.TimeoutExpired:
                server.kill()
                server.wait()


def _address(server: subprocess.Popen[bytes], log: Any) -> str:
    until = time.monotonic() + STARTS_S
    while time.monotonic() < until:
        has_ended = server.poll() is not None
        log.seek(0)
        said = log.read()
        if found := RUNNING.search(said):
            return found[1]
        if has_ended:
            raise SystemExit(f"expected a server, it ended with {server.returncode}:\n{said[-3000:]}")
        time.sleep(0.1)
    raise SystemExit(f"expected a server within {STARTS_S:g} s, got:\n{said[-3000:]}")


def seats(game: AnyGame, url: str, num_models: int, baseline: str) -> list[Seated]:
    """The model in the first seats, the baseline in the others."""
    model = build_agent(
        "smollm2",
        game,
        {
            "kind": "llm",
            "provider": "openai",
            "base_url": f"{url}/v1",
            "model": "smollm2",
            "json": "llama",
            "max_tokens": 300,
            "temperature": 0.2,
            "account": "local",
            "price": {"input": 0, "output": 0},
        },
    )
    other = build_agent(baseline, game, {"kind": "baseline", "baseline": baseline})
    quota = LocalQuota(Budget({"local": Limits(concurrency=1)}))
    entries = [model] * num_models + [other] * (game.seats - num_models)
    return [bound(entry.seated, Resources(quota=quota)) for entry in entries]


async def played(url: str, name: str, parameters: dict[str, Any], num_models: int, baseline: str) -> Played:
    """Plays one whole episode."""
    game = make_game(name, **parameters)
    started = time.monotonic()
    episode = await play(game, 7, seats(game, url, num_models, baseline), deadlines=DEADLINES)
    took_s = time.monotonic() - started
    asked = tuple(a for a in episode.attempts if a.seat < num_models and a.source == "agent")
    return Played(name, episode, asked, took_s)


def report(games: Sequence[Played]) -> list[str]:
    """One line a game, and what was wrong most often."""
    lines = ["game         seconds  replies  JSON  accepted  tokens in   out  out/s  faults"]
    for game in games:
        think_s = sum(attempt.think_s for attempt in game.attempts)
        accepted = sum(attempt.accepted for attempt in game.attempts)
        faults = ", ".join(f"{n} {kind}" for kind, n in sorted(game.faults.items())) or "none"
        used = game.usage
        lines.append(
            f"{game.game:12} {game.took_s:7.1f} {len(game.attempts):8} {game.num_valid:5} {accepted:9} "
            f"{used.tokens_in:10} {used.tokens_out:5} {used.tokens_out / think_s:6.1f}  {faults}"
        )
        reasons = Counter(a.detail for a in game.attempts if a.detail)
        lines += [f"             {n} x {detail[:150]}" for detail, n in reasons.most_common(3)]
    return lines


def wrong(game: Played) -> str | None:
    """What a real model must not do to an episode; None: nothing."""
    if game.num_valid < LEAST_VALID * len(game.attempts):
        return (
            f"expected {LEAST_VALID:.0%} of the replies as JSON, got {game.num_valid} of {len(game.attempts)}"
        )
    if outside := set(game.faults) - {"unreadable", "illegal"}:
        return f"expected replies that are at worst unreadable or illegal, got {sorted(outside)}"
    if game.episode.stopped:
        return "expected the episode to end by its rules, the clock ended it"
    others = {a.seat for a in game.episode.attempts if a.fault} - {a.seat for a in game.attempts}
    return f"expected faults of the model's seats only, got some of {sorted(others)}" if others else None


def main() -> int:
    """Plays every table; 1 when something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--python", type=Path, default=Path(".venv-llm/bin/python"), help="has the server")
    with serving(parser.parse_args().python) as url:
        games = [asyncio.run(played(url, *table)) for table in TABLES]
    failures = [f"{game.game}: {what}" for game in games if (what := wrong(game))]
    outcome = failures or ["a real model played whole episodes"]
    sys.stdout.write("\n".join([*report(games), *outcome]) + "\n")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
