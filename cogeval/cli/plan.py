"""`cogeval run --plan`: what a run would be, before anything is spent.

Invariant: nothing is started and no run directory is made. Counts of the schedule are exact; whatever
is measured on a few episodes played here is called an estimate. No model is called: a baseline of the
game sits in for every agent that is not deterministic.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import msgspec
from rich.table import Table
from rich.text import Text

from cogeval.agents.llm import LlmSeat
from cogeval.cli.output import counted, duration, print_json, show, size, warn
from cogeval.cli.pricing import RunPrice, Texts, price_run
from cogeval.cli.seating import seat_lines, seat_troubles
from cogeval.config import Experiment
from cogeval.config.accounts import run_prices
from cogeval.core.agent import Scripted, Seated
from cogeval.core.episode import play
from cogeval.core.record import ActionCodec, Episode
from cogeval.errors import InputError
from cogeval.report.layout import literal
from cogeval.schedule.designs import Slot

_TRIED_S: Final = 1.0  # of playing for the estimate
_TRIED_EPISODES: Final = 32
_LOOKED_AT: Final = 20_000  # slots of the schedule whose seats are counted one by one


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would be; estimates come from a few episodes played in this process.

    Args:
        game: its name.
        agents: names in the pool.
        design: of the schedule.
        episodes: of the schedule, exact.
        blocks: of the schedule, exact.
        tried_episodes: episodes played for the estimates.
        decisions: estimate, of all seats.
        model_calls: estimate; 0 without model seats.
        price_usd_low: estimate, of the prompts alone; None when some model has no price.
        price_usd_high: estimate, with every reply of max_tokens; None when some model has no price.
        price: estimate, by agent and account.
        bytes: estimate, on disk.
        seconds: estimate, of playing on this many workers; None when agents take time of their own.
        workers: episode actors.
        seat_actors: what they will occupy beside the workers, a line for each agent that has some.
    """

    game: str
    agents: tuple[str, ...]
    design: str
    episodes: int
    blocks: int
    tried_episodes: int
    decisions: int
    model_calls: int
    price_usd_low: float | None
    price_usd_high: float | None
    price: RunPrice
    bytes: int
    seconds: float | None
    workers: int
    seat_actors: tuple[str, ...]


def show_plan(experiment: Experiment, *, as_json: bool) -> int:
    """Prints what a run would be; names keys and SDKs that are missing here, without which none begins."""
    warn([*_missing(experiment), *seat_troubles(experiment)])
    plan = make_plan(experiment)
    if as_json:
        print_json({**asdict(plan), "price": plan.price.as_json()})
        return 0
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _lines(plan):
        table.add_row(Text(name, style="bold"), literal(value))
    tried = counted(plan.tried_episodes, "episode")
    if plan.price.agents:
        show(table, "", plan.price.table())
        at_once = experiment.config.cluster.episodes_in_flight
        advice = plan.price.advice(plan.episodes, at_once, plan.workers)
        if advice is not None:
            show("", literal(advice))
    else:
        show(table)
    show("", f"~ estimated from {tried} played here; nothing was started")
    return 0


def _missing(experiment: Experiment) -> list[str]:
    """What would keep models from being asked; on a cluster that was there before nobody knows here."""
    found = []
    for entry in experiment.agents if experiment.config.cluster.address is None else ():
        if isinstance(entry.seated.agent, LlmSeat):
            try:
                entry.seated.agent.check_connectable()
            except InputError as error:
                found.append(str(error))
    return found


def make_plan(experiment: Experiment) -> Plan:
    """Works out what a run would be, playing a few episodes for it."""
    schedule, config = experiment.schedule, experiment.config
    texts = Texts(experiment.game) if any(agent.seated.is_model for agent in experiment.agents) else None
    tried, took_s = asyncio.run(_try(experiment, texts))
    share = len(schedule) / len(tried)
    decisions = sum(sum(a.accepted for a in episode.attempts) for _, episode in tried)
    by_agent = _decisions_by_agent(experiment, decisions / (len(tried) * experiment.game.seats))
    calls = sum(n for n, agent in zip(by_agent, experiment.agents, strict=True) if agent.seated.is_model)
    prices, cap_usd = run_prices(config.limits), config.limits.spend_usd
    price = price_run(experiment.agents, by_agent, texts or Texts(experiment.game), prices, cap_usd)
    others = calls and len(price.agents) < sum(agent.seated.is_model for agent in experiment.agents)
    low, high = (None, None) if others else price.usd()
    workers = config.cluster.workers or os.cpu_count() or 1
    timed = all(agent.seated.deterministic for agent in experiment.agents)
    return Plan(
        game=experiment.game.spec.name,
        agents=tuple(agent.name for agent in experiment.agents),
        design=config.schedule.design,
        episodes=len(schedule),
        blocks=schedule.num_blocks,
        tried_episodes=len(tried),
        decisions=round(decisions * share),
        model_calls=round(calls),
        price_usd_low=low,
        price_usd_high=high,
        price=price,
        bytes=round(_stored_bytes(experiment, tried) * share),
        seconds=took_s * share / workers if timed else None,
        workers=workers,
        seat_actors=tuple(seat_lines(experiment)),
    )


def _decisions_by_agent(experiment: Experiment, per_seat: float) -> list[float]:
    """Decisions that each agent is expected to take in the whole run: its seats, times those of one."""
    num_seats, schedule = [0] * len(experiment.agents), experiment.schedule
    num_slots = min(len(schedule), _LOOKED_AT)
    for index in range(num_slots):
        for agent in schedule[index].lineup:
            num_seats[agent] += 1
    return [num * per_seat * len(schedule) / num_slots for num in num_seats]


async def _try(experiment: Experiment, texts: Texts | None) -> tuple[list[tuple[Slot, Episode]], float]:
    """Plays the first episodes of the schedule, at least one."""
    stand_in = Scripted(experiment.game.spec.baselines[0])
    seats = [_seated(agent.seated, stand_in) for agent in experiment.agents]
    codec = ActionCodec(experiment.game)
    tried: list[tuple[Slot, Episode]] = []
    began = time.perf_counter()
    for slot in experiment.schedule:
        episode = await play(
            experiment.game,
            slot.seed,
            [seats[i] for i in slot.lineup],
            fallback=experiment.fallback,
            deadlines=experiment.deadlines,
            replicate=slot.replicate,
            codec=codec,
            watcher=texts,
        )
        tried.append((slot, episode))
        if len(tried) >= _TRIED_EPISODES or time.perf_counter() - began > _TRIED_S:
            break
    return tried, time.perf_counter() - began


def _seated(seated: Seated, stand_in: Scripted) -> Seated:
    if seated.deterministic:
        return seated
    return msgspec.structs.replace(seated, agent=stand_in, deterministic=True, is_model=False)


def _stored_bytes(experiment: Experiment, tried: list[tuple[Slot, Episode]]) -> int:
    """What the tried episodes take on disk, written as a run would and thrown away."""
    from cogeval.store.write import ShardWriter

    with tempfile.TemporaryDirectory(prefix="cogeval-plan-") as folder:
        (Path(folder) / "shards").mkdir()
        writer = ShardWriter(
            folder, "plan-w0-0000", agent_names=[a.name for a in experiment.agents], worker="plan-w0"
        )
        for slot, episode in tried:
            writer.add(
                index=slot.index,
                episode_id="0" * 32,
                block=slot.block,
                lineup=slot.lineup,
                episode=episode,
            )
        return writer.seal().num_bytes


def _lines(plan: Plan) -> list[tuple[str, str]]:
    price = plan.price.lines() if plan.price_usd_low is not None or plan.price.agents else ["not known"]
    seconds = "not known: agents take time of their own"
    if plan.seconds is not None:
        seconds = f"~ {duration(plan.seconds)} on {counted(plan.workers, 'worker')}, start-up not counted"
    return [
        ("game", plan.game),
        ("agents", ", ".join(plan.agents)),
        ("episodes", f"{plan.episodes:,} in {counted(plan.blocks, 'block')} ({plan.design})"),
        ("decisions", f"~ {plan.decisions:,}"),
        ("model calls", f"~ {plan.model_calls:,}" if plan.model_calls else "0"),
        *zip(["price", *[""] * len(price)], price, strict=False),
        ("disk", f"~ {size(plan.bytes)}"),
        ("time", seconds),
        *zip(["seat actors", *[""] * len(plan.seat_actors)], plan.seat_actors, strict=False),
    ]
