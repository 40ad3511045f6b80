"""Where the files that come with cogeval are.

Invariant: a checkout and an installed wheel find the same files. Knows no formats.
"""

from __future__ import annotations

import importlib.resources
from pathlib import Path


def conf_dir() -> Path:
    """The configuration files: beside the package in a checkout, else inside the installed package."""
    package = Path(str(importlib.resources.files("cogeval")))
    beside = package.parent / "conf"
    return beside if (beside / "config.yaml").exists() else package / "conf"
