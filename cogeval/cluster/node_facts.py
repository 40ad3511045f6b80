"""What a node can say of itself before it is trusted with a run.

Invariant: travels by value and needs nothing but Python where it runs: that node may have another
cogeval, or none. Hence the imports inside.
"""

from __future__ import annotations

from typing import Any


def facts() -> dict[str, Any]:
    """Host, Python, and the version of cogeval (None: there is none)."""
    import socket
    import sys

    try:
        import cogeval

        version = getattr(cogeval, "__version__", "unknown")
    except ImportError:
        version = None
    return {
        "host": socket.gethostname(),
        "executable": sys.executable,
        "python": tuple(sys.version_info[:2]),
        "cogeval": version,
    }
