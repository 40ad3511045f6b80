"""Starts agents' processes for one worker and sees to it that they end: a program of its own.

The worker starts one nursery, which has loaded what it needs once and forks a supervisor a seat, two of
them ahead. The supervisor starts the agent, is the reaper of whatever that leaves behind, keeps the end of
its stderr, and kills everything when told to, when the agent has exited, and when the worker is gone. Agent
and worker speak over pipes that the supervisor does not hold.

Invariant: a supervisor ends only when it has no descendant left. Imports the standard library alone and
trusts nothing of the worker's environment; run as a file:
`python -I -S supervisor.py SOCKET FOLDER [MODULE]`,
with `owned.py` next to it.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import select
import signal
import socket
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING or __package__:
    from cogeval.agents.process.owned import PidsGroup, place_file, remove_tree
else:  # run as a file: its package is not to be imported, nor to be found by an agent under this name
    sys.path.insert(0, str(Path(__file__).parent))
    from owned import PidsGroup, place_file, remove_tree

    del sys.path[0], sys.modules["owned"]

_SET_PDEATHSIG: Final = 1  # prctl, Linux
_SET_CHILD_SUBREAPER: Final = 36
_CHUNK: Final = 65_536
_STDERR_BYTES: Final = 69_632  # of stderr that are kept, the last ones: 64 kB and what is cut off with care
_REQUEST_BYTES: Final = 1 << 20
_PAUSE_S: Final = 0.005  # between two rounds of killing what is left
_SPARES: Final = 2  # supervisors that are ready
_WORKER_GONE: Final = 9  # exit code of a supervisor that was not needed any more
_PARTING_S: Final = 5.0  # that a nursery waits for its supervisors when the worker is gone

_libc = ctypes.CDLL(None, use_errno=True)


def prctl(option: int, value: int) -> None:
    """Sets an attribute of this process; an OSError when the kernel refuses."""
    if _libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), f"prctl({option}) failed")


def watch_children() -> int:
    """Makes SIGCHLD wake a `select`: gives the descriptor to wait for."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    return reading


def reap(wake: int) -> tuple[dict[int, int], bool]:
    """Takes leave of children that have ended: pid -> wait status; and whether any are left."""
    with contextlib.suppress(BlockingIOError):
        os.read(wake, 4096)
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended, False
        if not pid:
            return ended, True
        ended[pid] = status


def parents() -> dict[int, int]:
    """Every process of this machine that can be seen: pid -> pid of its parent."""
    found: dict[int, int] = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - names are all that is wanted, and quickly
        if entry.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{entry}/stat", "rb") as file:  # noqa: PTH123 - as above
                found[int(entry)] = int(file.read().rpartition(b")")[2].split()[1])
    return found


def descendants(root: int) -> set[int]:
    """Children of a process, their children, and so on, zombies included."""
    children: dict[int, list[int]] = {}
    for pid, parent in parents().items():
        children.setdefault(parent, []).append(pid)
    found: set[int] = set()
    rest = list(children.get(root, ()))
    while rest:
        found.add(pid := rest.pop())
        rest += children.get(pid, ())
    return found


def kill(pids: set[int]) -> None:
    """Kills processes, those that are gone excepted."""
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)


def num_tasks_of_user() -> int:
    """Processes and threads of this user, what RLIMIT_NPROC counts."""
    num = 0
    for pid in parents():
        with contextlib.suppress(OSError):
            if os.stat(f"/proc/{pid}").st_uid == os.getuid():  # noqa: PTH116 - quickly
                num += len(os.listdir(f"/proc/{pid}/task"))  # noqa: PTH208 - quickly
    return num


def limit(limits: dict[str, Any], group: PidsGroup) -> None:
    """Binds this process and its children to their limits; those that are None do not bind."""

    def bind(what: int, most: int | None) -> None:
        if most is not None:
            hard = resource.getrlimit(what)[1]
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(what, (most, most))

    bind(resource.RLIMIT_CORE, 0)
    bind(resource.RLIMIT_AS, limits["memory_mb"] and limits["memory_mb"] << 20)
    bind(resource.RLIMIT_CPU, limits["cpu_s"])
    bind(resource.RLIMIT_NOFILE, limits["open_files"])
    bind(resource.RLIMIT_FSIZE, limits["file_mb"] and limits["file_mb"] << 20)
    if group.path is None and os.getuid() != 0:  # it does not bind root
        bind(resource.RLIMIT_NPROC, num_tasks_of_user() + limits["processes"])


def become_agent(request: dict[str, Any], fds: list[int], cwd: str, group: PidsGroup, parent: int) -> None:
    """Turns this fresh process into the agent; does not come back."""
    try:
        os.setsid()
        prctl(_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it was gone before
            os._exit(1)
        signal.set_wakeup_fd(-1)
        for each in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGINT, signal.SIGXFSZ):
            signal.signal(each, signal.SIG_DFL)
        for target, fd in enumerate(fds):
            os.dup2(fd, target)
        os.closerange(3, 1 << 16)
        os.chdir(cwd)
        env = {**request["env"], "HOME": cwd, "TMPDIR": cwd, "PWD": cwd}
        limit(request["limits"], group)
        if request["command"]:
            os.execvpe(request["command"][0], request["command"], env)  # noqa: S606 - the user's own command
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # as in every Python: an OSError tells it
        os.environ.clear()
        os.environ.update(env)
        sys.path[:] = request["path"]
        importlib.import_module(request["module"]).main()
        os._exit(0)
    except BaseException as error:  # noqa: BLE001 - nothing may return into the supervisor's code
        with contextlib.suppress(OSError):
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
        os._exit(127)


class Supervisor:
    """One agent's process and everything that comes of it.

    Args:
        control: the socket to the worker.
        wake: readable when a child has ended.
        group: that this process is in.
        cwd: the agent's directory, empty.
    """

    def __init__(self, control: socket.socket, wake: int, group: PidsGroup, cwd: str) -> None:
        self.control = control
        self.wake = wake
        self.group = group
        self.cwd = cwd
        self.stderr = bytearray()
        self.err, self.agent = -1, -1
        self.status: int | None = None

    def start(self, request: dict[str, Any], fds: list[int]) -> None:
        """Starts the agent.

        Args:
            request: what to start, as `Launch.request` writes it.
            fds: the agent's stdin and stdout.

        Raises:
            OSError: this machine has no room, descriptors or processes left, or a file is gone.
        """
        for name, target in request["files"]:
            place_file(Path(target), Path(self.cwd, name))
        self.group.limit(request["limits"]["processes"])
        self.err, err = os.pipe()
        os.set_blocking(self.err, False)
        parent = os.getpid()
        self.agent = os.fork()
        if not self.agent:
            become_agent(request, [*fds, err], self.cwd, self.group, parent)
        for fd in (*fds, err):
            os.close(fd)

    def run(self) -> None:
        """Waits for the agent's end or the worker's word, then clears up and reports."""
        watched: list[Any] = [self.control, self.wake, self.err]
        while self.status is None:
            ready, _, _ = select.select(watched, (), ())
            if self.err in ready and not self._read_stderr():
                watched.remove(self.err)
            if self.wake in ready:
                self._reap()
            if self.control in ready and not self._listen():
                break
        status = self.status  # None: it did not end by itself
        self._kill_all()
        remove_tree(Path(self.cwd))
        self._tell(status)

    def _listen(self) -> bool:
        """Takes a word from the worker; False: the word to kill, or the worker is gone."""
        with contextlib.suppress(OSError):
            if self.control.recv(1) == b"s":
                return self._tell(None)
        return False

    def _tell(self, status: int | None) -> bool:
        """Reports what was written to stderr since the last report; False when the worker does not read."""
        self._read_stderr()
        is_cut = len(self.stderr) == _STDERR_BYTES
        report = {"status": status, "stderr": self.stderr.decode("utf-8", "replace"), "is_cut": is_cut}
        self.stderr.clear()
        with contextlib.suppress(OSError):
            self.control.sendall(json.dumps(report).encode() + b"\n")
            return True
        return False

    def _read_stderr(self) -> bool:
        """Reads what there is, 1 MB at most at a time; False when nobody can write any more."""
        for _ in range(16):
            try:
                chunk = os.read(self.err, _CHUNK)
            except BlockingIOError:
                return True
            if not chunk:
                return False
            self.stderr += chunk
            del self.stderr[:-_STDERR_BYTES]
        return True

    def _reap(self) -> bool:
        ended, are_left = reap(self.wake)
        self.status = ended.get(self.agent, self.status)
        return are_left

    def _kill_all(self) -> None:
        """Kills until nobody is left: an orphan's parent is this process, so no child means no descendant."""
        self.group.limit(0)  # nothing in it can fork any more, so that killing comes to an end
        with contextlib.suppress(OSError):
            os.killpg(self.agent, signal.SIGKILL)  # one blow for most
        while self._reap():
            kill(descendants(os.getpid()))
            select.select((self.wake,), (), (), _PAUSE_S)


class Nurse:
    """Keeps supervisors ready until the worker is gone; the first that is free takes the next request.

    Orphans come to this process only when an agent has killed its own supervisor: they are killed too.

    Args:
        worker: where requests come from.
        folder: where agents' directories lie; this process holds its lock.
    """

    def __init__(self, worker: socket.socket, folder: str) -> None:
        prctl(_SET_CHILD_SUBREAPER, 1)
        self.worker = worker
        self.folder = folder
        self.wake = watch_children()
        self.taken, self.take = os.pipe()  # a byte for each request that was taken
        self.supervisors: dict[int, PidsGroup] = {}
        self.free: list[PidsGroup] = []
        self.is_over = False

    def run(self) -> None:
        """Serves until the worker is gone and nothing is left of what it started."""
        for _ in range(_SPARES):
            self._fork()
        while not self.is_over:
            ready, _, _ = select.select((self.taken, self.wake), (), ())
            if self.wake in ready:
                self._tidy()
            if self.taken in ready:
                for _ in os.read(self.taken, _SPARES):
                    self._fork()
        until = time.monotonic() + _PARTING_S
        while self._tidy() and time.monotonic() < until:
            select.select((self.wake,), (), (), 0.1)
        for group in (*self.free, *self.supervisors.values()):
            group.remove()
        remove_tree(Path(self.folder))

    def _fork(self) -> None:
        group = self.free.pop() if self.free else PidsGroup()
        pid = os.fork()
        if pid:
            self.supervisors[pid] = group
            return
        code = 1
        try:
            code = self._supervise(group)
        finally:
            os._exit(code)

    def _supervise(self, group: PidsGroup) -> int:
        """What a supervisor does: gets ready, takes one request, and serves it."""
        prctl(_SET_CHILD_SUBREAPER, 1)
        os.close(self.taken)
        os.close(self.wake)
        wake = watch_children()
        group.enter()
        data, fds, _, _ = socket.recv_fds(self.worker, _REQUEST_BYTES, 3)
        if not data:
            return _WORKER_GONE
        os.write(self.take, b"t")
        os.close(self.take)
        self.worker.close()
        self._serve(json.loads(data), fds, wake, group)
        return 0

    def _serve(self, request: dict[str, Any], fds: list[int], wake: int, group: PidsGroup) -> None:
        """Starts an agent and sees it to its end; tells the worker if it cannot be started."""
        control, cwd = socket.socket(fileno=fds[2]), None
        control.settimeout(1.0)
        try:
            cwd = tempfile.mkdtemp(prefix=f"{os.getpid()}-", dir=self.folder)
            supervisor = Supervisor(control, wake, group, cwd)
            supervisor.start(request, fds[:2])
        except OSError as error:
            if cwd is not None:
                remove_tree(Path(cwd))
            with contextlib.suppress(OSError):
                control.sendall(
                    json.dumps({"errno": error.errno or 0, "unstarted": str(error)}).encode() + b"\n"
                )
        else:
            supervisor.run()

    def _tidy(self) -> bool:
        """Reaps supervisors that have ended and kills orphans; False when no child is left."""
        ended, are_left = reap(self.wake)
        for pid in self.supervisors.keys() - ended.keys():  # stopped by its agent: no better than killed
            if os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOHANG):
                os.kill(pid, signal.SIGKILL)
        for pid, status in ended.items():
            if pid in self.supervisors:
                self.free.append(self.supervisors.pop(pid))
            self.is_over |= os.waitstatus_to_exitcode(status) == _WORKER_GONE
        if killed := [pid for pid, status in ended.items() if os.WIFSIGNALED(status)]:
            self._stand_in(killed)
        return are_left

    def _stand_in(self, killed: list[int]) -> None:
        """Does what supervisors that were killed cannot do any more."""
        for pid in [pid for pid, parent in parents().items() if parent == os.getpid()]:
            if pid not in self.supervisors:
                kill(descendants(pid) | {pid})
        for pid in killed:
            for folder in Path(self.folder).glob(f"{pid}-*"):
                remove_tree(folder)


def main() -> None:
    """Runs a nursery on the socket and in the folder that are named, with a module loaded if there is one."""
    worker = socket.socket(fileno=int(sys.argv[1]))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the worker's business
    if len(sys.argv) > 3:
        path, module = json.loads(sys.argv[3])
        sys.path[:] = path
        importlib.import_module(module)
    Nurse(worker, sys.argv[2]).run()


if __name__ == "__main__":
    main()
