"""Where MLflow keeps things by default, and the command that opens its pages.

Invariant: every path is absolute, so that nothing lands in the directory a user happens to stand in.
"""

from __future__ import annotations

import os
import re
import shlex
import sqlite3
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path

from cogeval.tracking.messages import TrackingSettings, page_of

__all__ = [
    "UiCommand",
    "default_settings",
    "is_server",
    "run_page",
    "sqlite_path",
    "ui_command",
    "unknown_scheme",
    "why_unusable",
    "without_password",
]

_SQLITE = "sqlite:///"
_SCHEMES = ("file", "sqlite", "http", "https", "postgresql", "mysql", "mssql", "databricks")
_SECRET_PARAMETER = re.compile(
    r"([?&;](?:[\w.-]*(?:token|secret|passw|credential|api_?key|signature)[\w.-]*"
    r"|(?:[\w.-]*[_.-])?(?:key|sig|auth))=)"
    r"(?!\*\*\*)[^&;#\s]+",
    re.IGNORECASE,
)


def default_settings(run_root: Path, experiment: str = "cogeval", every_s: float = 30.0) -> TrackingSettings:
    """Tracking in an SQLite file beside the directory of runs.

    Args:
        run_root: the directory that holds the runs.
        experiment: name of the MLflow experiment.
        every_s: least time between two live updates, seconds.
    """
    beside = run_root.absolute().parent
    return TrackingSettings(
        f"{_SQLITE}{beside / 'mlflow.db'}", experiment, str(beside / "mlartifacts"), every_s
    )


def sqlite_path(uri: str) -> Path | None:
    """The database file of an SQLite URI; None for any other, and for one in memory."""
    if not uri.startswith(_SQLITE):
        return None
    path = uri.removeprefix(_SQLITE).partition("?")[0]
    return Path(path).absolute() if path else None


def unknown_scheme(uri: str) -> str | None:
    """The scheme of a URI that no tracking store of MLflow's has; None when one has it, and for paths."""
    scheme, separator, _ = uri.partition("://")
    known = {*_SCHEMES, *(plugin.name for plugin in entry_points(group="mlflow.tracking_store"))}
    return None if not separator or scheme.lower().partition("+")[0] in known else scheme


def why_unusable(uri: str) -> str | None:
    """Why an SQLite file cannot be used, found without a wait; None when it can, and for other stores."""
    path = sqlite_path(uri)
    if path is None:
        return None
    if not path.exists():
        parent = next(parent for parent in path.parents if parent.exists())
        usable = parent.is_dir() and os.access(parent, os.W_OK | os.X_OK)
        return None if usable else f"cannot make {path}: {parent} is no directory that can be written"
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=rw", uri=True, timeout=1.0)) as database:
            database.execute("PRAGMA schema_version").fetchone()
    except sqlite3.Error as error:
        return None if _is_busy(error) else f"cannot open {path}: {error}"
    return None if os.access(path, os.W_OK) else f"cannot write {path}"


def _is_busy(error: sqlite3.Error) -> bool:
    """True when another process holds the database: it will let go."""
    return getattr(error, "sqlite_errorname", "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


_RUN_QUERY = """
    SELECT runs.experiment_id, runs.run_uuid FROM runs
    JOIN experiments ON experiments.experiment_id = runs.experiment_id AND experiments.name = ?
    JOIN tags AS id ON id.run_uuid = runs.run_uuid AND id.key = 'cogeval.run_id' AND id.value = ?
    JOIN tags AS kind ON kind.run_uuid = runs.run_uuid AND kind.key = 'cogeval.kind'
    WHERE kind.value = 'run' AND runs.lifecycle_stage = 'active'
"""


def run_page(settings: TrackingSettings, run_id: str) -> str | None:
    """The page of a run that an SQLite store holds, to be put behind the address of the pages.

    Reads MLflow's tables directly: asking MLflow would take seconds.

    Args:
        settings: where it is tracked.
        run_id: of the run, as cogeval names it.

    Returns:
        The path; None when the store does not hold the run, or is no SQLite file of MLflow's.
    """
    path = sqlite_path(settings.uri)
    if path is None:
        return None
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=1.0)) as database:
            found = database.execute(_RUN_QUERY, (settings.experiment, run_id)).fetchone()
    except sqlite3.Error:
        return None
    return None if found is None else page_of(str(found[0]), str(found[1]))


def is_server(uri: str) -> bool:
    """True when the URI is an MLflow server's address."""
    return uri.startswith(("http://", "https://"))


def without_password(text: str) -> str:
    """The text with user, password and secret parameters taken out of every URI in it."""
    return _SECRET_PARAMETER.sub(r"\1***", re.sub(r"(?<=://)[^/\s@]*@", "***@", text))


@dataclass(frozen=True, slots=True)
class UiCommand:
    """A command that serves MLflow's pages.

    Args:
        argv: program and arguments.
        environment: variables to set beside those of the user.
        address: where the pages are then.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    address: str

    def line(self) -> str:
        """The command as one would type it."""
        variables = [f"{name}={shlex.quote(value)}" for name, value in self.environment.items()]
        return " ".join([*variables, shlex.join(self.argv)])


def ui_command(settings: TrackingSettings, *, host: str = "127.0.0.1", port: int = 5000) -> UiCommand | None:
    """The command that shows a tracking store in a browser.

    Args:
        settings: where runs are tracked.
        host: address to listen on.
        port: port to listen on.

    Returns:
        The command, or None when the URI is a server's: its pages are at that address already.
    """
    if is_server(settings.uri):
        return None
    argv = [sys.executable, "-m", "mlflow", "ui", "--backend-store-uri", settings.uri]
    if settings.artifact_root is not None:
        argv += ["--artifacts-destination", settings.artifact_root]
    argv += ["--host", host, "--port", str(port), "--workers", "1"]
    environment = {
        "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",  # starts nothing that an evaluation needs
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    return UiCommand(tuple(argv), environment, f"http://{host}:{port}")
