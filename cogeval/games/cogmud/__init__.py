"""Cogmud: six cogs, one town, one sentence a turn. RULES.md numbers its rules."""
