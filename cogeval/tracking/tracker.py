"""The driver's side of tracking: hands the latest summary to the tracker process and never waits.

Invariant: no call but `close` takes longer than storing a reference, no call raises because of MLflow,
and `close` returns within its time with the process gone. mlflow is never imported here.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

import cogeval
from cogeval.errors import RunError
from cogeval.report import RunSummary
from cogeval.tracking.messages import Begin, Failed, Logged, RunDescription, Tracked, TrackingSettings, Update
from cogeval.tracking.places import why_unusable, without_password

__all__ = ["MlflowTracker", "track"]

_QUIET = {
    "DO_NOT_TRACK": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_ENABLE_ARTIFACTS_PROGRESS_BAR": "false",
    "GIT_PYTHON_REFRESH": "quiet",
}
_PATIENCE = {  # an unreachable server is given up in seconds: the next update tries again
    "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
    "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}

_GRACE_S = 5.0


class MlflowTracker:
    """Tracks one run from a process of its own.

    Args:
        settings: which store and experiment.
        warn: is called with one line when tracking fails, from the thread that calls this object.
        again: the command that logs the run again; None: the one that names it by its id.
    """

    def __init__(
        self, settings: TrackingSettings, warn: Callable[[str], None], again: str | None = None
    ) -> None:
        self._settings = settings
        self._warn = warn
        self._again = again
        self._process: subprocess.Popen[bytes] | None = None
        self._stderr: IO[bytes] | None = None
        self._pump: threading.Thread | None = None
        self._changed = threading.Condition()
        self._slot: Update | None = None  # guarded by _changed, like all below
        self._closing = False
        self._busy = False
        self._next_s = 0.0
        self._failure: str | None = None  # of the latest message; None: it was carried out
        self._warned = False
        self._tracked: Tracked | None = None
        self._finished = False

    def start(self, run: RunDescription) -> None:
        """Starts the tracker process; it takes seconds to import MLflow, and nobody waits for it.

        Args:
            run: what is fixed about the run.
        """
        self._again = self._again or f"cogeval track {run.run_id}"
        if (problem := why_unusable(self._settings.uri)) is not None:  # MLflow would try for a minute
            self._give_up(problem)
            return
        ours, theirs = socket.socketpair()
        try:
            self._process, self._stderr = _launch(theirs)
        except OSError as error:  # no memory, no processes left: the run itself may still go on
            ours.close()
            self._give_up(f"cannot start the tracker process: {error}")
            return
        finally:
            theirs.close()
        pipe = Connection(ours.detach())
        begin = Begin(self._settings, run)
        self._pump = threading.Thread(target=self._talk, args=(pipe, begin), name="tracker", daemon=True)
        self._pump.start()

    def wants_update(self) -> bool:
        """True when a summary given now would be sent now: making one for nothing can be saved."""
        with self._changed:
            return not self._busy and self._slot is None and time.monotonic() >= self._next_s

    def update(self, summary: RunSummary) -> None:
        """Offers a state of the run; it replaces an earlier one that was not sent yet."""
        with self._changed:
            self._slot = Update(summary, final=False)
            self._changed.notify_all()
        self._report()

    def finish(self, summary: RunSummary, ended_ms: int | None = None) -> None:
        """Hands over the last state; `close` waits until it is logged.

        Args:
            summary: the state to end with.
            ended_ms: when the run ended, milliseconds since 1970; None: now.
        """
        with self._changed:
            self._slot = Update(summary, final=True, ended_ms=ended_ms)
            self._changed.notify_all()

    def close(self, timeout_s: float = 60.0) -> Tracked | None:
        """Waits for what was handed over, then ends the process.

        Args:
            timeout_s: how long to wait at most, seconds.

        Returns:
            Where the run is in MLflow; None when its last state could not be logged there.
        """
        if self._pump is None or self._process is None or self._stderr is None:
            return None
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        try:
            self._pump.join(timeout_s)
            if self._pump.is_alive():
                with self._changed:
                    self._failure = f"no answer from {self._settings.uri} within {timeout_s:g} s"
                    self._finished = False
        finally:
            self._process.kill()  # it has answered or never will; a database survives this
            self._process.wait()
        self._pump.join(_GRACE_S)  # the other end of its pipe is closed now
        self._stderr.close()
        self._process = self._pump = self._stderr = None
        self._report(last=True)
        return self._tracked if self._finished else None

    def _give_up(self, why: str) -> None:
        self._failure, self._busy = why, True
        self._report()

    def _report(self, last: bool = False) -> None:
        """Warns, on the caller's thread: once while the run goes on, once at the end if it matters."""
        with self._changed:
            failure, repeated = self._failure, self._warned and not last
            if failure is None or repeated:
                return
            self._warned = True
        self._warn(
            without_password(
                f"tracking failed: {failure.rstrip('.')}. The run is not affected; "
                f"`{self._again}` logs it again"
            )
        )

    def _talk(self, pipe: Connection, begin: Begin) -> None:
        """The pump thread: one message at a time, each the latest there is."""
        with pipe:
            try:
                pipe.send(begin)
                while (update := self._take()) is not None:
                    pipe.send(update)
                    self._answered(pipe.recv(), update)
            except (EOFError, OSError):
                with self._changed:
                    self._failure = self._failure or self._last_words()
                    self._busy = True  # forever: nobody is there to log anything

    def _take(self) -> Update | None:
        """Waits for the next message that is due; None when there is none left and the run is over."""
        with self._changed:
            while True:
                due_s = self._next_s - time.monotonic()
                if self._slot is not None and (self._slot.final or self._closing or due_s <= 0):
                    update, self._slot, self._busy = self._slot, None, True
                    return update
                if self._closing:
                    return None
                self._changed.wait(None if self._slot is None else due_s)

    def _answered(self, answer: Logged | Failed, update: Update) -> None:
        with self._changed:
            self._busy = False
            self._next_s = time.monotonic() + self._settings.every_s
            self._finished = update.final and isinstance(answer, Logged)
            if isinstance(answer, Logged):
                self._tracked, self._failure = answer.tracked, None
            else:
                self._failure = answer.reason

    def _last_words(self) -> str:
        """Why the process is gone: the last line that it wrote, an import error as a rule."""
        assert self._stderr is not None
        self._stderr.seek(0)
        lines = self._stderr.read().decode(errors="replace").strip().splitlines()
        return lines[-1] if lines else "the tracker process ended"


def _launch(pipe: socket.socket) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
    """Starts the tracker process on one end of a pipe; the file takes what it complains of.

    It is a plain program and not a multiprocessing child: those import the user's main module again.
    """
    package_root = str(Path(cogeval.__file__).resolve().parent.parent)
    python_path = os.pathsep.join(filter(None, (package_root, os.environ.get("PYTHONPATH", ""))))
    stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
    try:
        process = subprocess.Popen(  # noqa: S603 - our own module, by the interpreter that runs us
            [sys.executable, "-P", "-m", "cogeval.tracking.process", str(pipe.fileno())],
            env={**_PATIENCE, **os.environ, **_QUIET, "PYTHONPATH": python_path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stderr,
            pass_fds=(pipe.fileno(),),
            start_new_session=True,  # Ctrl-C is the driver's to handle; this process ends with its pipe
        )
    except OSError:
        stderr.close()
        raise
    return process, stderr


def track(
    settings: TrackingSettings,
    run: RunDescription,
    summary: RunSummary,
    *,
    ended_ms: int | None = None,
    timeout_s: float = 300.0,
    again: str | None = None,
) -> Tracked:
    """Logs a recorded run, whether or not it was tracked while it was played.

    Args:
        settings: which store and experiment.
        run: what is fixed about the run.
        summary: its state.
        ended_ms: when it ended, milliseconds since 1970; None: now.
        timeout_s: how long to wait at most, seconds.
        again: the command that logs the run again; None: the one that names it by its id.

    Returns:
        Where the run is in MLflow.

    Raises:
        RunError: the store could not be reached or refused; the message says why.
    """
    warnings: list[str] = []
    tracker = MlflowTracker(settings, warnings.append, again)
    tracker.start(run)
    tracker.finish(summary, ended_ms)
    tracked = tracker.close(timeout_s)
    if tracked is None:
        raise RunError(warnings[-1] if warnings else "tracking failed")
    return tracked
