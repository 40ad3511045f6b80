"""The worker's end of one agent's process: lines out, lines in, and its end.

Invariant: never blocks the event loop, never reads more than its bounds allow, and `kill` takes effect
whoever waits. Must not know games: lines are bytes.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from cogeval.agents.process.launch import RUNNER, Bounds, Launch, import_path
from cogeval.errors import SeatError

_CHUNK: Final = 65_536
_EXIT_S: Final = 0.2  # that an exit may take to be known after the output has ended
_KILL_S: Final = 1.5  # that a report may take after the word to kill
_DETAIL_CHARS: Final = 400  # of stderr in the description of a fault


class ProcessError(SeatError):
    """An agent's process failed its seat."""


class Ending(msgspec.Struct, frozen=True):
    """How a process ended, as its supervisor reports it."""

    status: int | None = None  # as waitpid gives it; None: it did not end by itself
    stderr: str = ""  # the last 64 kB

    def __str__(self) -> str:
        """For people: how it ended and the last lines that it wrote to stderr."""
        if self.status is None:
            how = "was killed"
        elif os.WIFSIGNALED(self.status):
            number = os.WTERMSIG(self.status)
            how = f"was ended by {signal.Signals(number).name if number < 32 else f'signal {number}'}"
        else:
            how = f"exited with code {os.WEXITSTATUS(self.status)}"
        said = self.stderr.strip()[-_DETAIL_CHARS:]
        return f"{how}; stderr: {said}" if said else how


class Nursery:
    """The process that starts agents' processes for this one.

    Args:
        preload: True for Python agents: it has loaded their runner.
    """

    def __init__(self, preload: bool) -> None:
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        program = str(Path(__file__).with_name("supervisor.py"))
        flags = ["-I"] if preload else ["-I", "-S"]
        more = [msgspec.json.encode([import_path(), RUNNER]).decode()] if preload else []
        env = {"LANG": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        with theirs:
            fd = theirs.fileno()
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, *flags, program, str(fd), *more],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=env,
                pass_fds=(fd,),
                start_new_session=True,
            )

    @property
    def is_alive(self) -> bool:
        """True until it has ended."""
        return self._process.poll() is None

    def start(self, request: bytes, fds: list[int]) -> None:
        """Has a process started.

        Raises:
            OSError: when the nursery is gone.
        """
        socket.send_fds(self._socket, [request], fds)

    def close(self) -> None:
        """Ends it, and everything that it started."""
        self._socket.close()
        try:
            self._process.wait(6.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_nurseries: dict[tuple[int, bool], Nursery] = {}  # (pid of this process, preload): a fork gets its own


def nursery(preload: bool) -> Nursery:
    """The nursery of this process, started when first asked for."""
    key = os.getpid(), preload
    found = _nurseries.get(key)
    if found is None or not found.is_alive:
        found = _nurseries[key] = Nursery(preload)
    return found


def close_nurseries() -> None:
    """Ends the nurseries of this process, and every agent's process that they started."""
    for key in [key for key in _nurseries if key[0] == os.getpid()]:
        _nurseries.pop(key).close()


atexit.register(close_nurseries)


class Child:
    """One agent's process.

    Args:
        launch: what to start.
    """

    def __init__(self, launch: Launch) -> None:
        self.can_reuse = False  # what its answer to `hello` said
        self._bounds: Bounds = launch.bounds
        self._buffer = bytearray()
        self._num_read = 0
        self._ending: Ending | None = None
        theirs_in, self._in = os.pipe()
        self._out, theirs_out = os.pipe()
        self._control, theirs = socket.socketpair()
        self._control.setblocking(False)
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        try:
            nursery(launch.is_python).start(launch.request(), [theirs_in, theirs_out, theirs.fileno()])
        except OSError:
            self._close_pipes()
            self._control.close()
            raise
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
            theirs.close()

    @property
    def has_spoken(self) -> bool:
        """True when there is output that nobody asked for."""
        with contextlib.suppress(BlockingIOError):
            self._buffer += os.read(self._out, _CHUNK)
        return bool(self._buffer)

    def begin_episode(self) -> None:
        """Counts output afresh."""
        self._num_read = 0

    async def write(self, line: bytes) -> None:
        """Sends a line.

        Raises:
            ProcessError: when the process does not read any more.
        """
        rest = memoryview(line + b"\n")
        loop = asyncio.get_running_loop()
        while rest:
            try:
                rest = rest[os.write(self._in, rest) :]
            except BlockingIOError:
                await _ready(loop.add_writer, loop.remove_writer, self._in)
            except OSError as error:
                raise ProcessError("closed its input") from error

    async def read_line(self) -> bytes:
        """Waits for a line.

        Raises:
            ProcessError: when the output ends or goes beyond its bounds.
        """
        loop = asyncio.get_running_loop()
        most, searched = self._bounds.max_line_kb * 1024, 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            if searched > most:
                raise ProcessError(f"wrote a line of more than {self._bounds.max_line_kb} kB")
            try:
                chunk = os.read(self._out, _CHUNK)
            except BlockingIOError:
                await _ready(loop.add_reader, loop.remove_reader, self._out)
                continue
            if not chunk:
                raise ProcessError("closed its output")
            self._buffer += chunk
            self._num_read += len(chunk)
            if self._num_read > self._bounds.max_output_mb << 20:
                raise ProcessError(f"wrote more than {self._bounds.max_output_mb} MB")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        if len(line) > most:
            raise ProcessError(f"wrote a line of more than {self._bounds.max_line_kb} kB")
        return line

    def end_input(self) -> None:
        """Tells the process that nothing more will come."""
        if self._in >= 0:
            os.close(self._in)
            self._in = -1

    def kill(self) -> None:
        """Has it killed with all its descendants; comes back at once."""
        with contextlib.suppress(OSError):
            self._control.send(b"k")
        self._close_pipes()

    async def ended(self, patience_s: float = _EXIT_S) -> Ending:
        """Waits for its end; kills it when that takes too long.

        Args:
            patience_s: how long it may take to exit by itself.
        """
        if self._ending is not None:
            return self._ending
        reading = asyncio.ensure_future(self._report())
        try:
            if not (await asyncio.wait({reading}, timeout=patience_s))[0]:
                self.kill()
                await asyncio.wait({reading}, timeout=_KILL_S)
        finally:
            if not reading.done():  # it is being killed all the same
                reading.cancel()
            self.kill()
        self._ending = reading.result() if reading.done() and not reading.cancelled() else Ending()
        self._control.close()
        return self._ending

    async def _report(self) -> Ending:
        loop = asyncio.get_running_loop()
        report = bytearray()
        with contextlib.suppress(OSError):
            while chunk := await loop.sock_recv(self._control, _CHUNK):
                report += chunk
        try:
            return msgspec.json.decode(report, type=Ending)
        except msgspec.MsgspecError:
            return Ending()

    def _close_pipes(self) -> None:
        self.end_input()
        if self._out >= 0:
            os.close(self._out)
            self._out = -1


async def _ready(add: Callable[..., Any], remove: Callable[[int], Any], fd: int) -> None:
    """Waits until a descriptor can be read or written."""
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    add(fd, lambda: None if ready.done() else ready.set_result(None))
    try:
        await ready
    finally:
        remove(fd)
