"""MLflow's pages: where they are, and that nothing is left of their server."""

from __future__ import annotations

import os
import signal
import socket
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from cogeval.cli import pages
from cogeval.errors import RunError
from cogeval.tracking import UiCommand

SERVER = """
import os, pathlib, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN if {stubborn} else signal.SIG_DFL)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path("pids").write_text(f"{{os.getpid()}} {{child.pid}}")
print("a server's own words"); sys.stderr.write("Traceback\\n"); sys.stdout.flush()
os.kill(os.getppid(), {signal})
time.sleep(600)
"""


def server_that_sends(number: int, *, stubborn: bool = False) -> UiCommand:
    code = SERVER.format(signal=int(number), stubborn=stubborn)
    return UiCommand((sys.executable, "-c", code), {}, "http://127.0.0.1:1")


def wait_until_gone(pid: int) -> None:
    """A killed process is gone when the kernel has got to it; the test's own timeout bounds the wait."""
    status = Path(f"/proc/{pid}/stat")
    with suppress(FileNotFoundError, ProcessLookupError):
        while status.read_text().rpartition(")")[2].split()[0] != "Z":
            time.sleep(0.01)


@pytest.mark.timeout(60)
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks processes up in /proc")
@pytest.mark.parametrize(
    ("number", "code", "stubborn"),
    [(signal.SIGINT, 0, False), (signal.SIGTERM, 143, False), (signal.SIGHUP, 129, True)],
)
def test_the_server_ends_with_the_command_and_says_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], number, code, stubborn
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pages, "_GRACE_S", 0.3)
    before = signal.getsignal(number)
    assert pages._serve(server_that_sends(number, stubborn=stubborn), shown=False) == code
    assert signal.getsignal(number) == before
    assert capfd.readouterr() == ("", "")
    for pid in (tmp_path / "pids").read_text().split():
        wait_until_gone(int(pid))


def test_with_debug_the_servers_words_are_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    pages._serve(server_that_sends(signal.SIGINT), shown=True)
    assert "a server's own words" in capfd.readouterr().out


def test_a_server_that_ends_by_itself_is_a_failure(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="ended by themselves with code 3; run again with --debug"):
        pages._serve(
            UiCommand((sys.executable, "-c", "raise SystemExit(3)"), {}, "http://127.0.0.1:1"), shown=False
        )


def test_a_port_in_use_is_refused_in_one_line(cogeval, make_run, tmp_path: Path) -> None:
    make_run(done=1)
    (tmp_path / "mlflow.db").touch()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        answer = cogeval("ui", "latest", "--port", str(port))
    assert answer.code == 2
    assert answer.err.count("\n") == 1
    assert f"--port: expected a free port, got {port}" in answer.err
    assert "for example --port " in answer.err


def test_a_run_that_is_not_logged_yet_is_named_with_the_command_that_logs_it(
    cogeval, make_run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(done=1)
    (tmp_path / "mlflow.db").touch()
    monkeypatch.setattr(pages, "_serve", lambda command, shown: os.EX_OK)
    monkeypatch.setattr(pages, "_check_free", lambda address: None)
    answer = cogeval("ui", "latest", "--port", "5999")
    assert answer.code == 0
    assert answer.err.startswith("in a few seconds: http://127.0.0.1:5999\n")
    assert f"{run.run_id} is not logged there yet: cogeval track {run.run_id}\n" in answer.err
