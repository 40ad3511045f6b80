"""Cogchemists: four seats race to publish a hidden chemistry. RULES.md numbers its rules."""

from cogeval.games.cogchemists.game import Cogchemists

__all__ = ["Cogchemists"]
