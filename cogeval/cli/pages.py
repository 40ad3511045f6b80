"""`cogeval ui`: MLflow's pages on a run's tracking store, for as long as somebody looks.

Invariant: the server ends with this command, however that ends, and leaves no word on the terminal
unless --debug asks for it.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from urllib.parse import urlsplit

from cogeval.cli.arguments import Arguments
from cogeval.cli.output import show
from cogeval.cli.program import typed
from cogeval.cli.settings import called, config_of, find_runs
from cogeval.cli.tracking import settings_of
from cogeval.errors import InputError, RunError
from cogeval.tracking import UiCommand, ui_command
from cogeval.tracking.places import run_page, sqlite_path, without_password

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_GRACE_S = 5.0  # that the server has to end by itself


def ui(arguments: Arguments) -> int:
    """Opens MLflow's pages on a run's tracking store."""
    run = find_runs(arguments, arguments.words or ["latest"])[0]
    settings = settings_of(run, config_of(run, arguments.overrides))
    command = ui_command(settings, port=_port(arguments))
    if command is None:
        show(f"the pages are at {without_password(settings.uri)}")
        return 0
    if arguments.switch("--print"):
        show(command.line())
        return 0
    database = sqlite_path(settings.uri)
    if database is not None and not database.exists():
        raise InputError(
            f"nothing is tracked in {database} yet; log the run first: cogeval track {called(run)}"
        )
    _check_free(command.address)
    page = run_page(settings, run.run_id)
    sys.stderr.write(f"in a few seconds: {command.address}{page or ''}\n")
    if page is None:
        sys.stderr.write(typed(f"{run.run_id} is not logged there yet: cogeval track {called(run)}\n"))
    sys.stderr.write("Ctrl-C ends the pages\n")
    return _serve(command, shown=arguments.switch("--debug"))


def _serve(command: UiCommand, *, shown: bool) -> int:
    """Runs the server until it is told to end.

    Args:
        command: the server.
        shown: pass on what it writes.

    Returns:
        0 after Ctrl-C; what a shell gives for another signal.
    """
    output = None if shown else subprocess.DEVNULL
    with _told_to_end() as told:
        server = subprocess.Popen(  # noqa: S603 - our own command line
            command.argv,
            env={**os.environ, **command.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,  # Ctrl-C is for us: the server would answer with tracebacks
        )
        try:
            code = server.wait()
        except _Told:
            return 0 if told[0] == signal.SIGINT else 128 + told[0]
        finally:
            _end(server)
    raise RunError(
        f"MLflow's pages ended by themselves with code {code}"
        + ("" if shown else "; run again with --debug to see why")
    )


class _Told(BaseException):
    """A signal asked for the end."""


@contextmanager
def _told_to_end() -> Iterator[list[int]]:
    """A context in which the first signal to end is kept and raises `_Told`; later ones change nothing."""
    told: list[int] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        told.append(number)
        if len(told) == 1:
            raise _Told

    before = {number: signal.signal(number, handle) for number in _ENDING}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(server: subprocess.Popen[bytes]) -> None:
    """Ends the server and the processes that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(server.pid, number)
        with suppress(subprocess.TimeoutExpired):
            server.wait(_GRACE_S)


def _check_free(address: str) -> None:
    where = urlsplit(address)
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((where.hostname, where.port))
        except OSError as error:
            raise InputError(
                f"--port: expected a free port, got {where.port} ({error.strerror}); name another, for "
                f"example --port {(where.port or 0) % 65535 + 1}"
            ) from error


def _port(arguments: Arguments) -> int:
    written = arguments.value("--port") or "5000"
    if not written.isdecimal() or not 0 < int(written) < 65536:
        raise InputError(f"--port: expected a number from 1 to 65535, got {written!r}")
    return int(written)
