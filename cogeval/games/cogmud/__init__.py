"""Cogmud: six cogs, one town, one sentence a turn. RULES.md numbers its rules."""

from cogeval.games.cogmud.game import Cogmud

__all__ = ["Cogmud"]
