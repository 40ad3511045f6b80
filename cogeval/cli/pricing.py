"""What a run's models would cost: the estimate of `run --plan`, from texts and prices alone.

Invariant: no service is asked. Between the prompts alone and replies of `max_tokens` each; second tries
and what a service reads from its cache are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rich.console import RenderableType
from rich.text import Text

from cogeval.agents import AgentEntry
from cogeval.agents.llm import LlmSeat
from cogeval.agents.llm.agent import tokens_of_text
from cogeval.agents.llm.prices import cost_usd
from cogeval.cli.output import counted
from cogeval.core.agent import Price, Usage
from cogeval.core.game import AnyGame, Decision, Prompt
from cogeval.core.local_quota import dollars
from cogeval.core.record import Attempt
from cogeval.report.layout import Column, Grid, grid, literal


@dataclass(frozen=True, slots=True)
class AgentPrice:
    """What one model agent would cost; all of it estimated.

    Args:
        agent: its name in the pool.
        account: that its requests count for.
        model: as its service calls it.
        decisions: requests, one each.
        tokens_in: of all prompts.
        tokens_out: of all replies, at most.
        usd_low: of the prompts alone; None: no price is known.
        usd_high: with replies as long as they may be; None: no price is known.
    """

    agent: str
    account: str
    model: str
    decisions: int
    tokens_in: int
    tokens_out: int
    usd_low: float | None
    usd_high: float | None


@dataclass(frozen=True, slots=True)
class RunPrice:
    """What a run would cost.

    Args:
        agents: its models.
        cap_usd: the spending cap; None: there is none.
    """

    agents: tuple[AgentPrice, ...]
    cap_usd: float | None

    @property
    def unpriced(self) -> tuple[AgentPrice, ...]:
        """Agents whose models nobody prices."""
        return tuple(agent for agent in self.agents if agent.usd_high is None)

    def usd(self, account: str | None = None) -> tuple[float | None, float | None]:
        """Least and most dollars of an account or of all; None where some model has no price."""
        agents = [agent for agent in self.agents if account in (None, agent.account)]
        return _sum([agent.usd_low for agent in agents]), _sum([agent.usd_high for agent in agents])

    def as_json(self) -> dict[str, Any]:
        """The estimate as plain JSON."""
        accounts = {
            name: dict(zip(("usd_low", "usd_high"), self.usd(name), strict=True)) for name in self.accounts
        }
        return {
            "agents": [asdict(agent) for agent in self.agents],
            "accounts": accounts,
            "cap_usd": self.cap_usd,
            "unpriced": [agent.agent for agent in self.unpriced],
        }

    @property
    def accounts(self) -> tuple[str, ...]:
        """Names of the accounts, in the order of the pool."""
        return tuple(dict.fromkeys(agent.account for agent in self.agents))

    def lines(self) -> list[str]:
        """The estimate for people, in all."""
        if not self.agents:
            return ["$0.00"]
        low, high = self.usd()
        lines = ["not known in all" if low is None or high is None else _whole(low, high)]
        lines += [
            f"no price is known for {agent.model} of {agent.agent}: set its price, or limits.prices"
            for agent in self.unpriced
        ]
        return [*lines, *self._against_cap(low, high)]

    def table(self) -> Grid:
        """The estimate for people, by agent; accounts of several agents have a line more."""
        columns = [
            Column("model agent", numeric=False), Column("account", numeric=False), Column("requests"),
            Column("tokens in"), Column("out, at\nmost"), Column("low"), Column("high"),
        ]  # fmt: skip
        rows = [
            _row(agent.agent, agent.account, [agent], agent.usd_low, agent.usd_high) for agent in self.agents
        ]
        for account in self.accounts if len(self.accounts) > 1 else ():
            agents = [agent for agent in self.agents if agent.account == account]
            if len(agents) > 1:
                rows.append(_row("together", account, agents, *self.usd(account)))
        return grid(columns, rows)

    def advice(self, num_episodes: int, at_once: int, workers: int) -> str | None:
        """What to set when the cap is less than the episodes that are under way at once cost together.

        Args:
            num_episodes: of the schedule.
            at_once: episodes under way in one worker.
            workers: episode actors.
        """
        low, high = self.usd()
        if self.cap_usd is None or low is None or high is None or not high > self.cap_usd:
            return None
        cap, each_usd = f"the cap of {dollars(self.cap_usd)}", high / num_episodes
        if self.cap_usd < low / num_episodes:
            return f"one episode costs {_between(low / num_episodes, each_usd)}: {cap} buys none"
        num = min(at_once * workers, num_episodes)
        if self.cap_usd >= num * each_usd:
            return None
        fewer = max(1, min(at_once, int(self.cap_usd / (each_usd * workers))))
        settings = [] if self.cap_usd >= workers * each_usd else ["cluster.workers=1"]
        settings += [f"cluster.episodes_in_flight={fewer}"] if fewer < at_once else []
        if not settings:
            return None
        together = f"{counted(num, 'episode')} under way at once cost up to {dollars(num * each_usd)}"
        return f"{together}, more than {cap}: set {' '.join(settings)}, or half-played ones may use it up"

    def _against_cap(self, low: float | None, high: float | None) -> list[str]:
        if self.cap_usd is None or low is None or high is None:
            return []
        cap = f"the cap of {dollars(self.cap_usd)}"
        if high <= self.cap_usd:
            return [f"within {cap}"]
        if low > self.cap_usd:
            return [f"more than {cap}: the run would pause after at most {self.cap_usd / low:.0%} of it"]
        return [
            f"{cap} lies between: the run may pause, after {self.cap_usd / high:.0%} of it at the earliest"
        ]


class Texts:
    """Measures what seats would be asked; watches episodes that are played for an estimate.

    Args:
        game: rules and parameters.
    """

    def __init__(self, game: AnyGame) -> None:
        self._game = game
        self.num_decisions = 0
        self.num_chars = 0

    @property
    def chars_per_decision(self) -> float:
        """Characters of the game's own text that one decision is asked with."""
        return self.num_chars / self.num_decisions if self.num_decisions else 0.0

    def opened(self, phase: int, state: Any, decisions: Sequence[Decision[Any]]) -> None:  # noqa: ARG002
        """Renders the text of every decision of a phase."""
        for decision in decisions:
            text = self._game.prompt(self._game.observe(state, decision.seat))
            self.num_chars += len(text.system) + len(text.user)
            self.num_decisions += 1

    def attempted(self, attempt: Attempt) -> None:
        """Asks nothing of attempts."""

    def resolved(self, phase: int, step: Any) -> None:
        """Asks nothing of steps."""


def price_run(
    agents: Sequence[AgentEntry],
    decisions: Sequence[float],
    texts: Texts,
    prices: Mapping[str, Price],
    cap_usd: float | None,
) -> RunPrice:
    """Works out what a run's models would cost.

    Args:
        agents: of the pool.
        decisions: expected of each agent, in the whole run.
        texts: measured.
        prices: of the run.
        cap_usd: its spending cap.
    """
    found = []
    for entry, expected in zip(agents, decisions, strict=True):
        seat = entry.seated.agent
        if isinstance(seat, LlmSeat):
            found.append(_price(entry.name, seat, round(expected), texts, seat.price_in(prices)))
    return RunPrice(tuple(found), cap_usd)


def _price(name: str, seat: LlmSeat, decisions: int, texts: Texts, price: Price | None) -> AgentPrice:
    own = seat.prompt.around(Prompt(system="", user=""))
    chars = texts.chars_per_decision + len(own.system) + len(own.user)
    tokens_in, tokens_out = decisions * tokens_of_text(round(chars)), decisions * seat.max_tokens
    usages = (Usage(tokens_in), Usage(tokens_in, tokens_out))
    usd = [None if price is None else round(cost_usd(price, usage), 6) for usage in usages]
    return AgentPrice(name, seat.account, seat.model, decisions, tokens_in, tokens_out, usd[0], usd[1])


def _whole(low: float, high: float) -> str:
    said = _between(low, high)
    return f"~ {said}: prompts alone, and with every reply of max_tokens" if high else said


def _row(
    name: str, account: str, agents: Sequence[AgentPrice], low: float | None, high: float | None
) -> list[RenderableType]:
    counts = [
        sum(agent.decisions for agent in agents),
        sum(agent.tokens_in for agent in agents),
        sum(agent.tokens_out for agent in agents),
    ]
    usd = ["?" if amount is None else dollars(amount) for amount in (low, high)]
    return [literal(name, "bold"), literal(account), *(Text(f"{n:,}") for n in counts), *map(Text, usd)]


def _sum(amounts: Sequence[float | None]) -> float | None:
    known = [usd for usd in amounts if usd is not None]
    return round(sum(known), 6) if len(known) == len(amounts) else None


def _between(low: float, high: float) -> str:
    return f"{dollars(low)} to {dollars(high)}" if low != high else dollars(low)
