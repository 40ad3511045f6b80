"""One episode: the protocols of a game and of an agent, the loop that plays them, and the streams.

Knows nothing of tables, stores, clusters or configuration: everything that it needs is an argument.
"""
