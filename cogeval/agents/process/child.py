"""The worker's end of one agent's process: lines out, lines in, and its end.

Invariant: never blocks the event loop, never reads more than its bounds allow, and `kill` takes effect
whoever waits. Must not know games: lines are bytes.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import errno
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
from cogeval.agents.process.leftovers import make_folder, sweep
from cogeval.errors import HostError, SeatError

_CHUNK: Final = 65_536
_EXIT_S: Final = 0.2  # that an exit may take to be known after the output has ended
_KILL_S: Final = 1.5  # that a report may take after the word to kill
_PARTING_S: Final = 6.0  # that a nursery may take to end what it started
_DETAIL_CHARS: Final = 400  # of stderr in the description of a fault
_OURS: Final = {
    errno.EMFILE,
    errno.ENFILE,
    errno.EAGAIN,
    errno.ENOMEM,
    errno.ENOBUFS,
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EIO,
}
"""What is wrong with a machine, not with what is to be started on it."""

_CUT_CHARS: Final = 4096  # at the front of a stderr that was cut, which may be a piece of a secret


class ProcessError(SeatError):
    """An agent's process failed its seat."""


class Ending(msgspec.Struct, frozen=True):
    """How a process ended, as its supervisor reports it."""

    status: int | None = None  # as waitpid gives it; None: it did not end by itself
    stderr: str = ""  # since it was last asked for, the last 64 kB
    unstarted: str = ""  # why it never began
    is_ours: bool = False  # it never began for want of something that this machine should have

    def __str__(self) -> str:
        """For people: how it ended and the last lines that it wrote to stderr."""
        if self.unstarted:
            return f"could not begin: {self.unstarted}"
        if self.status is None:
            how = "was killed"
        elif os.WIFSIGNALED(self.status):
            number = os.WTERMSIG(self.status)
            how = f"was ended by {signal.Signals(number).name if number < 32 else f'signal {number}'}"
        else:
            how = f"exited with code {os.WEXITSTATUS(self.status)}"
        said = self.stderr.strip()[-_DETAIL_CHARS:]
        return f"{how}; stderr: {said}" if said else how


class _Report(msgspec.Struct, frozen=True):
    """What a supervisor says: so far, or at the end."""

    status: int | None = None
    stderr: str = ""  # since the last report
    is_cut: bool = False  # there was more
    errno: int = 0
    unstarted: str = ""  # why the agent could not be started


class Nursery:
    """The process that starts agents' processes for this one.

    Args:
        preload: True for Python agents: it has loaded their runner.
    """

    def __init__(self, preload: bool) -> None:
        sweep()
        program = str(Path(__file__).with_name("supervisor.py"))
        flags = ["-I"] if preload else ["-I", "-S"]
        more = [msgspec.json.encode([import_path(), RUNNER]).decode()] if preload else []
        env = {"LANG": "C.UTF-8", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        folder, lock = make_folder()
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            theirs.callback(os.close, lock)  # it holds the folder's from now on
            self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            ours.enter_context(self._socket)
            fd = theirs.enter_context(other).fileno()
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                [sys.executable, *flags, program, str(fd), str(folder), *more],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=env,
                pass_fds=(fd, lock),
                start_new_session=True,
            )
            ours.pop_all()  # started: they stay open

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
        """Ends it, and everything that it started; of one that was killed, what it left behind."""
        with contextlib.suppress(OSError):  # it was closed before
            self._socket.shutdown(socket.SHUT_WR)
        try:
            self._process.wait(_PARTING_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        with contextlib.suppress(OSError):  # ends when the supervisors that served nobody have ended too
            self._socket.settimeout(1.0)
            self._socket.recv(1)
        self._socket.close()
        sweep()


_nurseries: dict[tuple[int, bool], Nursery] = {}  # (pid of this process, preload): a fork gets its own


def nursery(preload: bool) -> Nursery:
    """The nursery of this process, started when first asked for."""
    key = os.getpid(), preload
    found = _nurseries.get(key)
    if found is None or not found.is_alive:
        if found is not None:
            found.close()
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

    Raises:
        HostError: this machine has no descriptors, processes or memory left to start it.
    """

    def __init__(self, launch: Launch) -> None:
        self.can_reuse = False  # what its answer to `hello` said
        self._launch = launch
        self._bounds: Bounds = launch.bounds
        self._told = bytearray()  # by the supervisor, and not read
        self._status: int | None = None
        self._stderr = ""
        self._buffer = bytearray()
        self._num_read = 0
        self._ending: Ending | None = None
        self._is_heard = False  # a supervisor has spoken of it
        self._unstarted, self._is_ours = "", False
        try:
            self._start(launch)
        except OSError as error:
            raise HostError(f"a process for an agent could not be started here: {error}") from None

    def _start(self, launch: Launch) -> None:
        """Opens what connects it and has it started; when that fails, nothing stays open."""
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            stdin, self._in = os.pipe()
            theirs.callback(os.close, stdin)
            ours.callback(os.close, self._in)
            self._out, stdout = os.pipe()
            theirs.callback(os.close, stdout)
            ours.callback(os.close, self._out)
            self._control, control = socket.socketpair()
            theirs.enter_context(control)
            ours.enter_context(self._control)
            self._control.setblocking(False)
            os.set_blocking(self._in, False)
            os.set_blocking(self._out, False)
            self._nursery = nursery(launch.is_python)
            self._nursery.start(launch.request(), [stdin, stdout, control.fileno()])
            ours.pop_all()  # started: they stay open

    @property
    def has_spoken(self) -> bool:
        """True when there is output that nobody asked for."""
        with contextlib.suppress(BlockingIOError):
            self._buffer += os.read(self._out, _CHUNK)
        return bool(self._buffer)

    async def begin_episode(self) -> None:
        """Counts output afresh, and forgets what was written to stderr in another episode."""
        self._num_read = 0
        await self.said()

    async def said(self) -> str:
        """What it has written to stderr since this was last asked, up to 64 kB, without secrets."""
        if self._ending is None:
            with contextlib.suppress(OSError):
                self._control.send(b"s")
            await self._hear()
        said, self._stderr = self._stderr, ""
        return said

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
        reading = asyncio.ensure_future(self._hear_all())
        try:
            if not (await asyncio.wait({reading}, timeout=patience_s))[0]:
                self.kill()
                await asyncio.wait({reading}, timeout=_KILL_S)
        finally:
            if not reading.done():  # it is being killed all the same
                reading.cancel()
            self.kill()
        if not self._is_heard and not self._nursery.is_alive:
            self._unstarted, self._is_ours = "what starts processes here has ended", True
        self._ending = Ending(self._status, self._stderr, self._unstarted, self._is_ours)
        self._control.close()
        return self._ending

    async def _hear_all(self) -> None:
        while await self._hear():
            pass

    async def _hear(self) -> bool:
        """Waits for a report of the supervisor and takes it in; False: there will be no more."""
        loop = asyncio.get_running_loop()
        while (end := self._told.find(b"\n")) < 0:
            try:
                chunk = await loop.sock_recv(self._control, _CHUNK)
            except OSError:  # the supervisor was killed
                return False
            if not chunk:
                return False
            self._told += chunk
        line = bytes(self._told[:end])
        del self._told[: end + 1]
        with contextlib.suppress(msgspec.MsgspecError):
            report = msgspec.json.decode(line, type=_Report)
            said = self._launch.scrubbed(report.stderr)
            self._stderr += said[_CUT_CHARS:] if report.is_cut else said
            self._is_heard = True
            self._status = report.status
            self._unstarted, self._is_ours = report.unstarted, report.errno in _OURS
        return True

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
