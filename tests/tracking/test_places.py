"""Where tracking keeps its things, and how its pages are opened."""

from __future__ import annotations

import re
import shlex
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from cogeval.tracking import Tracked, TrackingSettings, default_settings, ui_command
from cogeval.tracking.places import run_page, sqlite_path, unknown_scheme, why_unusable, without_password


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


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("https://me:hush@host/x", "https://***@host/x"),
        ("https://host/?access_token=hush&page=2", "https://host/?access_token=***&page=2"),
        ("https://host/?page=2&API_KEY=hush", "https://host/?page=2&API_KEY=***"),
        ("https://host/?clientSecret=hush#top", "https://host/?clientSecret=***#top"),
        ("postgresql://host/db?sslkey=client.pem&connect_timeout=3",) * 2,
        ("sqlite:////a/key=b/mlflow.db",) * 2,
    ],
)
def test_secrets_of_a_uri_are_taken_out_of_it(uri: str, shown: str) -> None:
    assert without_password(uri) == without_password(shown) == shown


def test_a_scheme_that_mlflow_has_no_store_for_is_known_at_once() -> None:
    for uri in ("http://h", "sqlite:///a.db", "postgresql+psycopg2://h/db", "databricks", "./mlruns"):
        assert unknown_scheme(uri) is None, uri
    assert unknown_scheme("htp://host") == "htp"


def test_an_sqlite_file_that_cannot_be_used_is_known_at_once(tmp_path: Path) -> None:
    assert why_unusable("http://host:5000") is None
    assert why_unusable(f"sqlite:///{tmp_path}/new/mlflow.db") is None
    assert "unable to open" in (why_unusable(f"sqlite:///{tmp_path}") or "")
    (tmp_path / "text").write_text("no database, though long enough to look at " * 9)
    assert "not a database" in (why_unusable(f"sqlite:///{tmp_path}/text") or "")
    assert "no directory that can be written" in (why_unusable(f"sqlite:///{tmp_path}/text/mlflow.db") or "")


def test_a_database_that_another_process_holds_is_usable(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE t (x)")
        other.execute("BEGIN EXCLUSIVE")
        assert why_unusable(f"sqlite:///{path}") is None


def test_no_page_is_made_up_for_a_run_that_is_not_there(tmp_path: Path) -> None:
    assert run_page(TrackingSettings("http://host:5000"), "run-a") is None
    assert run_page(TrackingSettings(f"sqlite:///{tmp_path}/none.db"), "run-a") is None
    (tmp_path / "empty.db").touch()
    assert run_page(TrackingSettings(f"sqlite:///{tmp_path}/empty.db"), "run-a") is None


def test_ui_command_serves_the_store_and_its_files_on_loopback(tmp_path: Path) -> None:
    settings = default_settings(tmp_path / "my runs" / "runs")
    command = ui_command(settings, port=5001)
    assert command is not None
    assert command.address == "http://127.0.0.1:5001"
    assert command.environment["MLFLOW_SERVER_ENABLE_JOB_EXECUTION"] == "false"
    words = shlex.split(command.line())
    assert words[words.index("--backend-store-uri") + 1] == settings.uri
    assert words[words.index("--artifacts-destination") + 1] == settings.artifact_root


def test_the_command_in_the_docs_is_the_one_that_is_run() -> None:
    page = (Path(__file__).parents[2] / "docs" / "tracking.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```\n(MLFLOW_SERVER.*?)```", page, re.DOTALL)
    command = ui_command(default_settings(Path("/abs/path/runs")))
    assert command is not None
    words = shlex.split(command.line())
    assert shlex.split(shown.replace("\\\n", " ")) == ["python" if w == sys.executable else w for w in words]


def test_a_server_needs_no_ui_command() -> None:
    assert ui_command(TrackingSettings("https://mlflow.example")) is None


def test_compare_page_holds_the_agents_in_ladder_order() -> None:
    tracked = Tracked("7", "aa", {"best": "b1", "worst": "c2"})
    assert tracked.compare_path.startswith(
        "/#/compare-runs?runs=%5B%22b1%22%2C%22c2%22%5D&experiments=%5B%227%22%5D"
    )
