"""Who plays whom: designs as pure, lazy functions of the configuration, and the ledger of a run.

Invariant: a schedule is never stored; its i-th episode is computed from the configuration alone.
Must not know agents, stores or clusters: it speaks in indexes.
"""
