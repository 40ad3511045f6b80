"""The Ray that a run plays on: one of our own by default, or a cluster that is already there.

Invariant: our own Ray is private (a temporary directory of its own, no dashboard, no usage reports)
and gone when the context ends; a cluster that was there before stays as it was.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import psutil
import ray
from ray.exceptions import AuthenticationError

from cogeval.cluster.lifeline import Lifeline
from cogeval.cluster.nodes import living_nodes
from cogeval.cluster.plan import ClusterOptions
from cogeval.cluster.seat_fit import (
    Need,
    Node,
    check_each,
    fitting_workers,
    own_cpus,
    this_machine,
)
from cogeval.errors import InputError, RunError

_HOME = "cogeval-ray-"  # then the driver's pid: temporary directories of our own Rays
_ANSWER_S = 5.0  # longest wait for something to listen at an address
_STARTS = 2  # tries: Ray gives its own start 30 s, which a machine that is very busy may need
_OBJECT_STORE_BYTES = 100_000_000  # receipts are small and rows never pass through the object store


@contextmanager
def connected(options: ClusterOptions, needs: Sequence[Need] = ()) -> Iterator[int]:
    """Connects to Ray for the time of a run.

    Args:
        options: the address, and the number of workers that must fit.
        needs: what seat actors ask for; they come on top of the workers.

    Yields:
        The number of workers to start.

    Raises:
        InputError: no cluster answers at the address, or it is too small.
        RunError: our own Ray does not start.
    """
    _hush_ray()
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # else a warning at every start
    if ray.is_initialized():  # a caller (a notebook, a test) holds the connection
        yield _fitting(options, needs)
        return
    if options.address is None:
        # It gets CPUs for all, but one seat actor must not want more than there are.
        check_each(needs, [this_machine()])
        with _own_ray(options, needs):
            yield fitting_workers(needs, _nodes(), options.workers or os.cpu_count() or 1)
        return
    check_address(options.address)
    try:
        ray.init(address=options.address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError, AuthenticationError) as error:
        raise _not_let_in(options.address, error) from error
    try:
        if _HOME in ray._private.worker._global_node.get_session_dir_path():
            raise InputError(
                f"cluster.address: what answers at {options.address!r} is the private Ray of another run "
                "and ends with it; name a cluster of yours as HOST:PORT"
            )
        yield _fitting(options, needs)
    finally:
        _leave()


def lifeline() -> Lifeline:
    """Watches the Ray that this process is connected to."""
    node = ray._private.worker._global_node  # Ray has no public name for the socket
    local = None if node is None else node.raylet_socket_name
    return Lifeline(ray.get_runtime_context().gcs_address, local)


def _leave() -> None:
    """Disconnects, unless there is nothing left to disconnect from: Ray would wait for it for a minute."""
    if not ray.is_initialized() or lifeline().look():
        ray.shutdown()
    else:
        atexit.unregister(ray._private.worker.shutdown)
        atexit.register(_end_at_once)


def _end_at_once() -> None:
    """Ends a process that still holds a Ray that is lost: taken apart in order, it would crash."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1)


def _hush_ray() -> None:
    """Keeps what Ray says of dead workers off stdout, where one JSON object may be all that is wanted.

    The driver says itself what a death cost. Ray has no setting for it, hence its private name.
    """
    for name in ("print_to_stdstream", "print_worker_logs"):
        if hasattr(ray._private.worker, name):
            setattr(ray._private.worker, name, lambda *_args, **_kwargs: None)


def check_address(address: str | None) -> None:
    """Finds out in seconds that nothing listens at an address; Ray would try for minutes.

    Args:
        address: ``HOST:PORT``, ``ray://HOST:PORT``, ``auto``, ``local`` or None.

    Raises:
        InputError: it is no address, or nothing answers there.
    """
    if address in (None, "auto", "local"):
        return
    assert address is not None
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        raise InputError(f"cluster.address: expected HOST:PORT, ray://HOST:PORT or auto, got {address!r}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S).close()
    except (OSError, OverflowError) as error:
        raise _no_cluster(address, error) from error


def _no_cluster(address: str, error: Exception) -> InputError:
    return InputError(
        f"cluster.address: no Ray cluster answers at {address!r} ({str(error).strip().splitlines()[0]}); "
        "start one with `ray start --head`, or play on this machine with cluster.address=null"
    )


def _not_let_in(address: str, error: Exception) -> InputError:
    """Something listens there: Ray itself says no more than that it could not connect."""
    return InputError(
        f"cluster.address: what listens at {address!r} does not let this process in "
        f"({str(error).strip().splitlines()[0]}). A Ray cluster that asks for a token, as new Rays do, wants "
        "RAY_AUTH_MODE=token and the cluster's own token here, in RAY_AUTH_TOKEN or ~/.ray/auth_token; else "
        "look whether it is a Ray head of the same version"
    )


def _fitting(options: ClusterOptions, needs: Sequence[Need]) -> int:
    """The number of workers, which must fit: Ray would wait silently for room that never comes."""
    nodes = _nodes()
    if sum(node.cpus for node in nodes) < 1:
        raise InputError("the Ray cluster has no CPUs; add a node to it before the run")
    return fitting_workers(needs, nodes, options.workers)


def _nodes() -> list[Node]:
    return list(living_nodes().values())


def _remove_abandoned(parent: Path) -> None:
    """Removes what drivers that were killed have left behind."""
    for path in parent.glob(f"{_HOME}*-*"):
        pid = path.name.removeprefix(_HOME).partition("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)) and path.stat().st_uid == os.getuid():
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _own_ray(options: ClusterOptions, needs: Sequence[Need]) -> Iterator[None]:
    # Socket paths have about 100 characters at most, which the temporary directory of macOS uses up.
    short = Path("/tmp")  # noqa: S108 - the directory made in it is private
    parent = short if short.is_dir() else Path(tempfile.gettempdir())
    _remove_abandoned(parent)
    cpus = max(os.cpu_count() or 1, options.workers or 0) + own_cpus(needs)
    for left in reversed(range(_STARTS)):
        home = tempfile.mkdtemp(prefix=f"{_HOME}{os.getpid()}-", dir=parent)
        try:
            _start(home, cpus)
            break
        except BaseException as error:
            ray.shutdown()
            shutil.rmtree(home, ignore_errors=True)
            if not isinstance(error, Exception):  # Ctrl-C, or SIGTERM as Ray hands it on
                raise KeyboardInterrupt from error
            if not left:
                raise RunError(f"Ray did not start on this machine: {error}") from error
    try:
        yield
    finally:
        _leave()
        shutil.rmtree(home, ignore_errors=True)


def _start(home: str, cpus: int) -> None:
    ray.init(
        address="local",  # never one that another process left an address file of
        num_cpus=cpus,
        include_dashboard=False,
        log_to_driver=False,
        logging_level=logging.ERROR,
        object_store_memory=_OBJECT_STORE_BYTES,
        _temp_dir=home,
    )
