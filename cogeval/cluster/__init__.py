"""Episodes in parallel on Ray: episode actors, the driver that feeds them, and the Ray they run on.

Invariant: the ledger decides, this package obeys; rows never pass through the driver. The only direct
imports of ray.
"""
