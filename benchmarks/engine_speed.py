"""Episodes a CPU second of one core: engine and agents, without Ray and without writing anything.

Each row is a table full of one agent. "rules" steps the game directly; "play" goes through the episode loop,
with its attempts, digest and results. CPU time is measured and the best of several runs counts: the machine's
other work only slows.

    python benchmarks/engine_speed.py [--game cogmud] [--seats 6] [--repeat_s 1.5] [--repeats 5]
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

GOALS = {
    ("cogchemists", "assayer"): 800,
    ("cogchemists", "random"): 800,
    ("cogmud", "factor"): 800,
    ("cogz", "balanced"): 250,
}
"""Episodes a second that a table full of an agent must pass through `play`."""

MOVES_GOAL = {("cogz", "random"): 20_000}
"""Decisions a second on the bare rules, with the list of legal actions made for each."""

WARM_UP_S = 1.0  # of episodes on other seeds: masks, tables and caches fill
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
    """Draws from the list of legal actions where there is one, else as the game samples."""

    def episode(seed: int) -> object:
        state = game.initial_state(seed)
        rng = stream(seed, "engine speed")
        while decisions := game.decisions(state):
            actions = {}
            for d in decisions:
                try:
                    listed = list(d.legal)
                except TypeError:
                    actions[d.seat] = d.legal.sample(rng)
                else:
                    actions[d.seat] = listed[rng.below(len(listed))]
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


def best_rate(run: Callable[[range], None], repeat_s: float, repeats: int) -> float:
    """Episodes a CPU second of the fastest repeat, each on seeds of its own and about so long."""
    started, num, first = time.process_time(), 0, FIRST_WARM_SEED
    while (spent := time.process_time() - started) < WARM_UP_S or num == 0:
        run(range(first + num, first + num + 5))
        num += 5
    size = max(5, round(num / spent * repeat_s))
    best = 0.0
    for repeat in range(repeats):
        started = time.process_time()
        run(range(repeat * size, (repeat + 1) * size))
        best = max(best, size / (time.process_time() - started))
    return best


def decisions_of(game: AnyGame, seed: int = 0) -> int:
    """How many decisions an episode has, roughly: one of random actions."""
    state, rng, num = game.initial_state(seed), stream(seed, "decisions"), 0
    while decisions := game.decisions(state):
        num += len(decisions)
        state = game.step(state, {d.seat: d.legal.sample(rng) for d in decisions}).next
    return num


def measure(name: str, parameters: dict[str, int], repeat_s: float, repeats: int) -> None:
    """Prints the rows of one game."""
    game = make_game(name, **parameters)
    rows: list[tuple[str, str, Callable[[range], None]]] = []
    for baseline in game.spec.baselines:
        seated = Seated(baseline, Scripted(baseline), deterministic=True)
        rows.append((baseline, "rules", each(scripted_rules(game, baseline))))
        rows.append((baseline, "play", through_play(game, seated)))
    random_seat = Seated("random", RandomAgent, deterministic=True)
    rows.append(("random", "rules", each(random_rules(game))))
    rows.append(("random", "play", through_play(game, random_seat)))
    num = decisions_of(game)
    for agent, through, run in rows:
        rate = best_rate(run, repeat_s, repeats)
        goals = GOALS if through == "play" else {}
        moves_goal = MOVES_GOAL.get((name, agent), 0) if through == "rules" else 0
        goal = max(goals.get((name, agent), 0), moves_goal / num)
        verdict = f"  below {goal:,.0f}" if rate < goal and not parameters else ""
        lineup = f"{game.seats} x {agent}"
        print(f"{name:<13}{lineup:<18}{through:<8}{rate:>10,.0f}{rate * num:>13,.0f}{verdict}", flush=True)


def main() -> None:
    """Measures and prints a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--game", choices=list(GAMES), help="only this one")
    parser.add_argument("--seats", type=int, help="of the table, where the game leaves a choice")
    parser.add_argument("--repeat_s", type=float, default=1.5, help="CPU seconds of one repeat")
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    parameters = {"seats": args.seats} if args.seats else {}
    print(f"{'game':<13}{'seats':<18}{'through':<8}{'episodes/s':>10}{'decisions/s':>13}")
    for name in [args.game] if args.game else GAMES:
        measure(name, parameters, args.repeat_s, args.repeats)


if __name__ == "__main__":
    main()
