"""COGZ: two to six seats swap tiles to close chains of one colour. RULES.md numbers its rules."""

from cogeval.games.cogz.game import Cogz

__all__ = ["Cogz"]
