"""Agents in processes of their own: a command line in any language, or a Python class placed apart.

Invariant: what such a process does, short of attacking its own user's other processes, costs its seat and
nobody else, and when its episode is over none of its descendants is left. Must not know stores or clusters.
"""
