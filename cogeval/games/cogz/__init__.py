"""COGZ: two to six seats swap tiles to close chains of one colour. RULES.md numbers its rules."""
