"""Agents in seat actors: one object serves the seats of many episodes, in another process where there is one.

Invariant: nothing here imports ray; a cluster wraps the replica and hands the client its pool.
"""
