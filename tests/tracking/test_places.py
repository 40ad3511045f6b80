"""Where tracking keeps its things, and how its pages are opened."""

from __future__ import annotations

import shlex
from pathlib import Path

from cogeval.tracking import Tracked, TrackingSettings, default_settings, ui_command
from cogeval.tracking.places import sqlite_path


def test_default_store_is_an_sqlite_file_beside_the_runs(tmp_path: Path) -> None:
    settings = default_settings(tmp_path / "runs")
    assert settings.uri == f"sqlite:///{tmp_path}/mlflow.db"
    assert settings.artifact_root == str(tmp_path / "mlartifacts")
    assert sqlite_path(settings.uri) == tmp_path / "mlflow.db"


def test_a_relative_run_root_gives_absolute_places() -> None:
    settings = default_settings(Path("runs"))
    assert settings.uri == f"sqlite:///{Path.cwd()}/mlflow.db"


def test_only_sqlite_files_have_a_path() -> None:
    assert sqlite_path("http://host:5000") is None
    assert sqlite_path("postgresql://host/db") is None
    assert sqlite_path("sqlite:///") is None
    assert sqlite_path("sqlite:////a/b.db?timeout=3") == Path("/a/b.db")


def test_ui_command_serves_the_store_and_its_files_on_loopback(tmp_path: Path) -> None:
    settings = default_settings(tmp_path / "my runs" / "runs")
    command = ui_command(settings, port=5001)
    assert command is not None
    assert command.address == "http://127.0.0.1:5001"
    assert command.environment["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] == "false"
    words = shlex.split(command.line())
    assert words[words.index("--backend-store-uri") + 1] == settings.uri
    assert words[words.index("--artifacts-destination") + 1] == settings.artifact_root


def test_a_server_needs_no_ui_command() -> None:
    assert ui_command(TrackingSettings("https://mlflow.example")) is None


def test_compare_page_holds_the_agents_in_ladder_order() -> None:
    tracked = Tracked("7", "aa", {"best": "b1", "worst": "c2"})
    assert tracked.compare_path.startswith(
        "/#/compare-runs?runs=%5B%22b1%22%2C%22c2%22%5D&experiments=%5B%227%22%5D"
    )
