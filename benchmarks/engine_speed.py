"""Episodes a CPU second of one core: engine and agents, without Ray and without writing anything.

Each row is a table full of one agent. "rules" steps the game directly; "play" goes through the episode loop,
with its attempts, digest and results. CPU time is measured and the best of several runs counts: the machine's
other work only slows.

    python benchmarks/engine_speed.py [--game cogmud] [--episodes 1500] [--repeats 5]
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Callable

from cogeval.agents.random import RandomAgent
from cogeval.core.agent import Scripted, Seated
from cogeval.core.episode import play
from cogeval.core.game import AnyGame
from cogeval.core.record import ActionCodec
from cogeval.core.rng import stream
from cogeval.games import GAMES, make_game

GOALS = {("cogchemists", "assayer"): 800, ("cogchemists", "random"): 800, ("cogmud", "factor"): 800}
"""Episodes a second that a table full of an agent must pass through `play`."""

WARM_UP = 200  # episodes on other seeds: masks, tables and caches fill
FIRST_WARM_SEED = 10**6


def scripted_rules(game: AnyGame, baseline: str) -> Callable[[int], object]:
    """Baselines on the bare rules."""

    def episode(seed: int) -> object:
        state = game.initial_state(seed)
        while decisions := game.decisions(state):
            actions = {d.seat: game.baseline(baseline, state, d.seat, seed) for d in decisions}
            state = game.step(state, actions).next
        return game.results(state)

    return episode


def random_rules(game: AnyGame) -> Callable[[int], object]:
    """Seats that observe and draw a legal action."""

    def episode(seed: int) -> object:
        state = game.initial_state(seed)
        rngs = [stream(seed, "agent", seat) for seat in range(game.seats)]
        while decisions := game.decisions(state):
            actions = {}
            for d in decisions:
                game.observe(state, d.seat)
                actions[d.seat] = d.legal.sample(rngs[d.seat])
            state = game.step(state, actions).next
        return game.results(state)

    return episode


def through_play(game: AnyGame, seated: Seated) -> Callable[[range], None]:
    """Plays a range of seeds in one event loop."""
    codec = ActionCodec(game)

    async def episodes(seeds: range) -> None:
        for seed in seeds:
            await play(game, seed, (seated,) * game.seats, codec=codec)

    return lambda seeds: asyncio.run(episodes(seeds))


def each(episode: Callable[[int], object]) -> Callable[[range], None]:
    """Runs an episode function over a range of seeds."""

    def run(seeds: range) -> None:
        for seed in seeds:
            episode(seed)

    return run


def best_rate(run: Callable[[range], None], num_episodes: int, repeats: int) -> float:
    """Episodes a CPU second of the fastest repeat, each on seeds of its own."""
    run(range(FIRST_WARM_SEED, FIRST_WARM_SEED + WARM_UP))
    best = 0.0
    for repeat in range(repeats):
        started = time.process_time()
        run(range(repeat * num_episodes, (repeat + 1) * num_episodes))
        best = max(best, num_episodes / (time.process_time() - started))
    return best


def measure(name: str, num_episodes: int, repeats: int) -> None:
    """Prints the rows of one game with its default parameters."""
    game = make_game(name)
    rows: list[tuple[str, str, Callable[[range], None]]] = []
    for baseline in game.spec.baselines:
        seated = Seated(baseline, Scripted(baseline), deterministic=True)
        rows.append((baseline, "rules", each(scripted_rules(game, baseline))))
        rows.append((baseline, "play", through_play(game, seated)))
    random_seat = Seated("random", RandomAgent, deterministic=True)
    rows.append(("random", "rules", each(random_rules(game))))
    rows.append(("random", "play", through_play(game, random_seat)))
    for agent, through, run in rows:
        rate = best_rate(run, num_episodes, repeats)
        goal = GOALS.get((name, agent), 0)
        verdict = f"  below {goal}" if rate < goal else ""
        print(f"{name:<14}{game.seats} x {agent:<14}{through:<10}{rate:>10,.0f}{verdict}", flush=True)


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--game", choices=list(GAMES), help="only this one")
    parser.add_argument("--episodes", type=int, default=1500)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    print(f"{'game':<14}{'seats':<18}{'through':<10}{'episodes/s':>10}")
    for name in [args.game] if args.game else GAMES:
        measure(name, args.episodes, args.repeats)


if __name__ == "__main__":
    main()
