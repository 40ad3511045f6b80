"""Agents that are models behind an API: providers, prompts, prices, and the agent that waits its turn."""

from __future__ import annotations

from cogeval.agents.llm.agent import BoundSeat, LlmAgent, LlmSeat
from cogeval.agents.llm.building import llm_agent
from cogeval.agents.llm.prices import read_price, read_prices
from cogeval.agents.llm.secrets import scrub

__all__ = ["BoundSeat", "LlmAgent", "LlmSeat", "llm_agent", "read_price", "read_prices", "scrub"]
