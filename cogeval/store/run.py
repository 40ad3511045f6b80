"""The run directory: where it is, what it is, what has been committed to it.

Invariant: a directory without a manifest is not a run, a shard without a record does not exist, and
nothing that exists is overwritten. Only the holder of the lock commits or appends to the log. Reads
no Arrow file: that is `read`.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from cogeval.core.ranges import to_ranges
from cogeval.errors import InputError, RunError
from cogeval.store.files import naming_full_disk, publish, sync_directory
from cogeval.store.lock import Lock, acquire
from cogeval.store.log import AppendLog, read_log
from cogeval.store.roots import LATEST, MANIFEST, call, find_run
from cogeval.store.shards import (
    SCHEMA_VERSION,
    TABLES,
    DamagedShard,
    SealedShard,
    ShardRecord,
    check_schema_version,
    checked_json,
    file_name,
    hot_name,
    read_checked_json,
    record_name,
    set_aside_name,
)

_CONFIG = "config.yaml"
_SHARDS = "shards"
_RUN_ID = re.compile(r"\w[\w.+@-]{0,99}")  # what every later command takes as it is


def new_run_id(config_digest: str) -> str:
    """A run id that no other run has and that sorts by time.

    Args:
        config_digest: hexadecimal digest of the resolved configuration.

    Returns:
        For example ``20250131T235959-1a2b3c4d-9f8e7d``: UTC time, digest prefix, random suffix.
    """
    return f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{config_digest[:8]}-{secrets.token_hex(3)}"


class RunDir:
    """One run on disk. Make a new one with `create`, get an existing one with `find`.

    Args:
        path: the run's directory, with a manifest in it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._log: AppendLog | None = None

    @property
    def run_id(self) -> str:
        """The run's name."""
        return self.path.resolve().name

    @property
    def shards_path(self) -> Path:
        """Where the shards are."""
        return self.path / _SHARDS

    @classmethod
    def create(cls, root: Path | str, run_id: str, manifest: Mapping[str, Any], config_yaml: str) -> RunDir:
        """Makes a new run; its manifest appears last.

        Args:
            root: directory of runs, made when it is missing.
            run_id: name of the run's directory, from `new_run_id`.
            manifest: JSON values. ``run_id``, ``created``, ``schema_version`` and the configuration's
                checksum are added here.
            config_yaml: the resolved configuration, without secrets.

        Raises:
            InputError: the run exists, or the root cannot be written.
            StoreFull: there is no room.
        """
        path = Path(root) / run_id
        if not _RUN_ID.fullmatch(run_id) or run_id == LATEST:
            raise InputError(
                f"expected a plain directory name as the run id, got {run_id!r}: 1 to 100 letters, digits "
                f"and . _ + @ -, with a letter, a digit or _ first, and not {LATEST!r}"
            )
        try:
            with naming_full_disk(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.mkdir()
                (path / _SHARDS).mkdir()
            config = config_yaml.encode()
            publish(path / _CONFIG, config, replace=False)
            whole = {
                **manifest,
                "run_id": run_id,
                "created": datetime.now(UTC).isoformat(timespec="microseconds"),
                "schema_version": SCHEMA_VERSION,
                "config_sha256": hashlib.sha256(config).hexdigest(),
            }
            publish(path / MANIFEST, checked_json(whole), replace=False)
            sync_directory(path.parent)
        except FileExistsError as error:
            if path.is_dir():
                raise InputError(
                    f"run {run_id} exists in {root} and is never overwritten; choose another id, or go on "
                    f"with `cogeval resume {call(path)}`"
                ) from error
            raise _unwritable(root, error) from error
        except OSError as error:
            raise _unwritable(root, error) from error
        return cls(path)

    @classmethod
    def find(cls, ref: str | Path, root: Path | str) -> RunDir:
        """Finds a run as the user names it.

        Args:
            ref: a run id, an unambiguous beginning of one, a run's directory, or ``latest``.
            root: directory of runs.

        Raises:
            InputError: there is no such run, or more than one; the message lists the known ones.
        """
        return cls(find_run(str(ref), Path(root)))

    def discard(self) -> None:
        """Removes a run that was made for nothing.

        Raises:
            RunError: it holds a shard, or part of one.
        """
        if any(self.shards_path.iterdir()):
            raise RunError(f"expected a run without shards to remove, got {self.path} with some; it stays")
        (self.path / MANIFEST).unlink()  # no run any more, whatever happens next
        shutil.rmtree(self.path)

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What was written at the start, checked against its checksum.

        Raises:
            InputError: it is missing, damaged, or of a schema version that this code does not read.
        """
        path = self.path / MANIFEST
        try:
            manifest = read_checked_json(path.read_bytes())
        except (ValueError, OSError) as error:
            raise InputError(
                f"{path} cannot be used: it {_problem(error)}; restore it from a copy, or start the run anew"
            ) from error
        check_schema_version(manifest.get("schema_version"), str(path))
        return manifest

    @property
    def config_yaml(self) -> str:
        """The resolved configuration.

        Raises:
            InputError: it is missing or has changed since the run began.
        """
        path = self.path / _CONFIG
        try:
            data = path.read_bytes()
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}") from error
        if hashlib.sha256(data).hexdigest() != self.manifest["config_sha256"]:
            raise InputError(
                f"{path} has changed since the run began, and its episodes would no longer fit; restore it, "
                "or start a new run with the new configuration"
            )
        return data.decode()

    def scan(self) -> tuple[list[ShardRecord], list[DamagedShard]]:
        """Reads every record.

        Returns:
            The records in the order of shard ids, and the shards whose record is damaged.
        """
        records, damaged = [], []
        for path in sorted(self.shards_path.glob(record_name("*"))):
            try:
                records.append(_read_record(path))
            except (ValueError, OSError) as error:
                damaged.append(DamagedShard(path.stem, path.name, _problem(error), None))
        return records, damaged

    def records(self) -> list[ShardRecord]:
        """The readable records, in the order of shard ids; `scan` names the others too."""
        return self.scan()[0]

    def commit(
        self, sealed: SealedShard, accepted: Iterable[int], superseded: Iterable[int] = ()
    ) -> ShardRecord:
        """Makes a sealed shard part of the run; only the holder of the lock may.

        Committing the same files again changes nothing: the first record stands.

        Args:
            sealed: what `ShardWriter.seal` or `recover` gave.
            accepted: schedule indexes whose rows here count.
            superseded: the rest: second copies of episodes that are recorded elsewhere.

        Returns:
            The record on disk.

        Raises:
            ValueError: the indexes are not exactly those of the shard.
            RunError: the shard's files are missing, or another shard of that id is committed.
            StoreFull: there is no room; the shard stays uncommitted and can be recovered.
        """
        wins, copies = set(accepted), set(superseded)
        if wins & copies or wins | copies != set(sealed.indexes):
            raise ValueError(f"expected the indexes of shard {sealed.shard_id}, each once, got others")
        record = ShardRecord(
            sealed.shard_id,
            sealed.files,
            to_ranges(wins),
            to_ranges(copies),
            datetime.now(UTC).isoformat(timespec="microseconds"),
        )
        self._check_files(sealed)
        try:
            path = self.shards_path / record_name(sealed.shard_id)
            publish(path, checked_json(msgspec.to_builtins(record)), replace=False)
        except FileExistsError:
            record = self._standing_record(sealed)
        self.remove_hot(sealed.shard_id)
        return record

    def _check_files(self, sealed: SealedShard) -> None:
        for table, seal in sealed.files.items():
            path = self.shards_path / file_name(sealed.shard_id, table)
            size = path.stat().st_size if path.exists() else 0
            if size != seal.size:
                raise RunError(
                    f"expected {seal.size} bytes in {path} to commit it, got {size}; is run.root a directory "
                    "that every node shares?"
                )

    def _standing_record(self, sealed: SealedShard) -> ShardRecord:
        for record in self.records():
            if record.shard_id == sealed.shard_id and record.files == sealed.files:
                return record
        raise RunError(f"expected shard {sealed.shard_id} to be new, got another of that id in {self.path}")

    def remove_hot(self, shard_id: str) -> None:
        """Removes a shard's streams, which its record has made superfluous."""
        for stream in (*TABLES, "sums"):
            (self.shards_path / hot_name(shard_id, stream)).unlink(missing_ok=True)

    def set_aside(self, damaged: DamagedShard) -> None:
        """Takes a damaged shard out of the run, so that its episodes can be played again.

        Its files stay for whoever wants to look; its record is renamed.

        Args:
            damaged: as reading found it.
        """
        record = self.shards_path / record_name(damaged.shard_id)
        record.replace(self.shards_path / set_aside_name(damaged.shard_id))
        sync_directory(self.shards_path)

    def append_log(self, line: Mapping[str, Any]) -> None:
        """Appends one event to the ledger's log; only the holder of the lock may.

        Args:
            line: JSON values, at least one member.

        Raises:
            StoreFull: there is no room.
        """
        if self._log is None:
            self._log = AppendLog(self.path / "ledger.log")
        self._log.append(line)

    def log_lines(self) -> list[dict[str, Any]]:
        """The events of the ledger's log; lines torn or damaged are left out."""
        return read_log(self.path / "ledger.log")[0]

    def acquire_lock(self) -> Lock:
        """Takes the run's lock.

        Raises:
            InputError: another driver holds it, or the directory cannot be written.
        """
        try:
            return acquire(self.path / "lock", self.run_id)
        except OSError as error:
            raise InputError(
                f"expected to be able to write {self.path} to lock the run, got: {error.strerror}"
            ) from error

    @contextlib.contextmanager
    def lock(self) -> Iterator[Lock]:
        """Holds the run's lock; see `acquire_lock`."""
        held = self.acquire_lock()
        try:
            yield held
        finally:
            self.close()
            held.release()

    def close(self) -> None:
        """Closes the log."""
        if self._log is not None:
            self._log.close()
            self._log = None


def _read_record(path: Path) -> ShardRecord:
    value = read_checked_json(path.read_bytes())
    check_schema_version(value.get("schema_version"), str(path))
    record = msgspec.convert(value, ShardRecord)
    if path.name != record_name(record.shard_id):
        raise ValueError(f"is the record of shard {record.shard_id} under another name")
    return record


def _problem(error: Exception) -> str:
    return f"cannot be read ({error.strerror})" if isinstance(error, OSError) else str(error)


def _unwritable(root: Path | str, error: OSError) -> InputError:
    return InputError(
        f"expected a directory that can be written as run.root, got {str(root)!r}: {error.strerror}; "
        "give another with run.root=DIR"
    )
