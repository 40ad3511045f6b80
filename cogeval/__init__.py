"""cogeval: evaluate agents in multi-seat games, in bulk, reproducibly.

The floors of the package, from the ground up: ``core`` (one episode), ``games``, then ``agents``,
``schedule``, ``store`` and ``ratings``, then ``testing`` and ``report``, then ``cluster`` and
``tracking``, then ``config`` (the one composition root) and ``cli``. Imports point down only.
"""

__version__ = "0.1.0"
