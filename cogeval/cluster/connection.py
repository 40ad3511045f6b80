"""The Ray that a run plays on: one of our own by default, or a cluster that is already there.

Invariant: our own Ray is private (a temporary directory of its own, no dashboard, no usage reports)
and gone when the context ends; a cluster that was there before stays as it was.
"""

from __future__ import annotations

import logging
import os
import shutil
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import ray

from cogeval.cluster.plan import ClusterOptions
from cogeval.errors import InputError, RunError

_HOME = "cogeval-ray-"  # then the driver's pid: temporary directories of our own Rays
_ANSWER_S = 5.0  # longest wait for something to listen at an address
_OBJECT_STORE_BYTES = 100_000_000  # receipts are small and rows never pass through the object store


@contextmanager
def connected(options: ClusterOptions) -> Iterator[int]:
    """Connects to Ray for the time of a run.

    Args:
        options: the address, and the number of workers that must fit.

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
        yield _fitting(options)
        return
    if options.address is None:
        with _own_ray(options):
            yield options.workers or os.cpu_count() or 1
        return
    check_address(options.address)
    try:
        ray.init(address=options.address, log_to_driver=False, logging_level=logging.ERROR)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise _no_cluster(options.address, error) from error
    try:
        if _HOME in ray._private.worker._global_node.get_session_dir_path():
            raise InputError(
                f"cluster.address: what answers at {options.address!r} is the private Ray of another run "
                "and ends with it; name a cluster of yours as HOST:PORT"
            )
        yield _fitting(options)
    finally:
        ray.shutdown()


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
        "start one with `ray start --head`, or leave cluster.address out to play on this machine. A cluster "
        "that asks for tokens, as new Rays do, needs the same RAY_AUTH_MODE and token here"
    )


def _fitting(options: ClusterOptions) -> int:
    """The number of workers, which must fit: Ray would wait silently for room that never comes."""
    cpus = int(ray.cluster_resources().get("CPU", 0))
    if cpus < 1:
        raise InputError("the Ray cluster has no CPUs; add a node to it before the run")
    workers = options.workers or cpus
    if workers > cpus:
        raise InputError(
            f"cluster.workers: expected at most {cpus}, the CPUs of the cluster, got {workers}; "
            "lower it or add nodes"
        )
    return workers


def _remove_abandoned(parent: Path) -> None:
    """Removes what drivers that were killed have left behind."""
    for path in parent.glob(f"{_HOME}*-*"):
        pid = path.name.removeprefix(_HOME).partition("-")[0]
        if pid.isdigit() and not psutil.pid_exists(int(pid)) and path.stat().st_uid == os.getuid():
            shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _own_ray(options: ClusterOptions) -> Iterator[None]:
    # Socket paths have about 100 characters at most, which the temporary directory of macOS uses up.
    short = Path("/tmp")  # noqa: S108 - the directory made in it is private
    parent = short if short.is_dir() else Path(tempfile.gettempdir())
    _remove_abandoned(parent)
    home = tempfile.mkdtemp(prefix=f"{_HOME}{os.getpid()}-", dir=parent)
    cpus = os.cpu_count() or 1
    try:
        ray.init(
            address="local",  # never one that another process left an address file of
            num_cpus=max(cpus, options.workers or 0),
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.ERROR,
            object_store_memory=_OBJECT_STORE_BYTES,
            _temp_dir=home,
        )
    except BaseException as error:
        ray.shutdown()
        shutil.rmtree(home, ignore_errors=True)
        if not isinstance(error, Exception):  # Ctrl-C, or SIGTERM as Ray hands it on
            raise KeyboardInterrupt from error
        raise RunError(f"Ray did not start on this machine: {error}") from error
    try:
        yield
    finally:
        ray.shutdown()
        shutil.rmtree(home, ignore_errors=True)
