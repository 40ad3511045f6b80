"""Where MLflow keeps things by default, and the command that opens its pages.

Invariant: every path is absolute, so that nothing lands in the directory a user happens to stand in.
"""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cogeval.tracking.messages import TrackingSettings

__all__ = ["UiCommand", "default_settings", "is_server", "sqlite_path", "ui_command", "without_password"]

_SQLITE = "sqlite:///"


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


def is_server(uri: str) -> bool:
    """True when the URI is an MLflow server's address."""
    return uri.startswith(("http://", "https://"))


def without_password(text: str) -> str:
    """The text with user and password taken out of every URI in it."""
    return re.sub(r"(?<=://)[^/\s@]*@", "***@", text)


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
