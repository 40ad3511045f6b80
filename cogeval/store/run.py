"""The run directory: where it is, what it is, what has been committed to it.

Invariant: a directory without a manifest is not a run, a shard without a record does not exist, and
nothing that exists is overwritten. Only the holder of the lock commits or appends to the log. Reads
no Arrow file: that is `read`.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import msgspec

from cogeval.core.ranges import to_ranges
from cogeval.errors import InputError, RunError
from cogeval.store.beginning import CONFIG, create_run, new_run_id
from cogeval.store.claims import claim, read_claims
from cogeval.store.damage import counting
from cogeval.store.lock import HeldLock, LockHolder, acquire, read_lock
from cogeval.store.log import AppendLog, Log, read_log
from cogeval.store.mergers import judged
from cogeval.store.places import Place, PlaceLike, place_at
from cogeval.store.records import problem_of, read_records
from cogeval.store.roots import MANIFEST, SHARDS, check_there, find_run, naming_gone
from cogeval.store.segments import SegmentLog, read_segments
from cogeval.store.shards import (
    MERGING,
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
from cogeval.store.sums import sums_of_sealed

LOG: Final = "ledger.log"
SEGMENTS: Final = "log"  # of the same, in an object store
LOCK: Final = "lock"


__all__ = ["LOCK", "LOG", "SEGMENTS", "RunDir", "new_run_id"]


class RunDir:
    """One run in a store. Make a new one with `create`, get an existing one with `find`.

    Args:
        place: the run's directory or URI, with a manifest in it.
    """

    def __init__(self, place: PlaceLike) -> None:
        self.place: Place = place_at(place)
        self.shards: Place = self.place.sub(SHARDS)
        self._log: Log | None = None
        self._lock: HeldLock | None = None

    @property
    def run_id(self) -> str:
        """The run's name."""
        return self.place.name

    @property
    def uri(self) -> str:
        """The run's directory or URI, for people and for `place_at`."""
        return self.place.uri

    @property
    def path(self) -> Path:
        """The run's directory.

        Raises:
            InputError: it is in an object store.
        """
        if self.place.path is None:
            raise InputError(f"expected a run in a directory for this, got {self.place.where()}")
        return self.place.path

    @property
    def shards_path(self) -> Path:
        """The directory of its shards; see `path`."""
        return self.path / SHARDS

    @classmethod
    def create(cls, root: PlaceLike, run_id: str, manifest: Mapping[str, Any], config_yaml: str) -> RunDir:
        """Makes a new run; its manifest appears last.

        Args:
            root: directory of runs, made when it is missing, or a URI.
            run_id: name of the run's directory, from `new_run_id`.
            manifest: JSON values. ``run_id``, ``created``, ``schema_version`` and the configuration's
                checksum are added here.
            config_yaml: the resolved configuration, without secrets.

        Raises:
            InputError: the run exists, or the root cannot be written.
            StoreFull: there is no room.
        """
        return cls(create_run(root, run_id, manifest, config_yaml))

    @classmethod
    def find(cls, ref: str | Path, root: PlaceLike) -> RunDir:
        """Finds a run as the user names it, to read it; whoever takes its lock has more patience.

        Args:
            ref: a run id, an unambiguous beginning of one, a run's directory or URI, or ``latest``.
            root: directory of runs, or a URI.

        Raises:
            InputError: there is no such run, or more than one; the message lists the known ones.
        """
        return cls(find_run(str(ref), root))

    def discard(self) -> None:
        """Removes a run that was made for nothing, if it is still there.

        Raises:
            RunError: it holds a shard, or part of one.
        """
        if self.shards.names():
            raise RunError(
                f"expected a run without shards to remove, got {self.place.where()} with some; it stays"
            )
        self.place.remove(MANIFEST)  # no run any more, whatever happens next
        self.place.remove_all()

    @cached_property
    def manifest(self) -> dict[str, Any]:
        """What was written at the start, checked against its checksum.

        Raises:
            InputError: it is missing, damaged, or of a schema version that this code does not read.
            RunError: the run's directory is gone.
        """
        path = self.place.where(MANIFEST)
        try:
            manifest = read_checked_json(self.place.read(MANIFEST))
        except (ValueError, OSError) as error:
            check_there(self.place)
            raise InputError(
                f"{path} cannot be used: it {problem_of(error)}; restore it from a copy, or start the run "
                "anew"
            ) from error
        check_schema_version(manifest.get("schema_version"), path)
        return manifest

    @property
    def config_yaml(self) -> str:
        """The resolved configuration.

        Raises:
            InputError: it is missing or has changed since the run began.
        """
        path = self.place.where(CONFIG)
        try:
            data = self.place.read(CONFIG)
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
            The records in the order of shard ids, without those of shards that were merged into others,
            unless these are damaged (see `counting`); and these damaged ones, with what `believed` names.
        """
        believed, damaged = self.believed()
        counted, broken = counting(self.shards, believed)
        return counted, [*damaged, *broken]

    def believed(self) -> tuple[list[ShardRecord], list[DamagedShard]]:
        """Reads every record, and looks at no file.

        Returns:
            The records in the order of shard ids, those of shards that were merged into others too; and the
            shards whose record is damaged, or claims to replace what it does not hold.
        """
        records, damaged = read_records(self.shards)
        believed, unproved = judged(records)
        return believed, [*damaged, *unproved]

    def replaced(self) -> list[tuple[ShardRecord, ShardRecord]]:
        """Shards whose records are still there beside the merged one that replaces them: (old, merged)."""
        believed = self.believed()[0]
        by_id = {record.shard_id: record for record in believed}
        return [(by_id[old], record) for record in believed for old in record.merged if old in by_id]

    def mergers(self) -> dict[str, ShardRecord]:
        """By id of a shard that is named as merged, whether or not it is gone: the record that names it."""
        if not self.shards.names(record_name(f"{MERGING}-*")):
            return {}
        believed = self.believed()[0]
        return {shard_id: record for record in believed for shard_id in record.merged}

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
            RunError: the shard's files or the whole run are gone, or another shard of that id is committed.
            StoreFull: there is no room; the shard stays uncommitted and can be recovered.
        """
        wins, copies = set(accepted), set(superseded)
        if wins & copies or wins | copies != set(sealed.indexes):
            raise ValueError(f"expected the indexes of shard {sealed.shard_id}, each once, got others")
        self._check_files(sealed)
        ranges, gone = to_ranges(wins), to_ranges(copies)
        sums, of_copies = sums_of_sealed(self.shards, sealed, ranges, gone)
        record = ShardRecord(
            sealed.shard_id,
            sealed.files,
            ranges,
            gone,
            datetime.now(UTC).isoformat(timespec="microseconds"),
            sums=sums,
            superseded_sums=of_copies,
        )
        try:
            self.add(record)
        except FileExistsError:
            record = self._standing_record(sealed)
        self.remove_hot(sealed.shard_id)
        return record

    def add(self, record: ShardRecord) -> None:
        """Publishes a record, which makes its shard part of the run; only the holder of the lock may.

        Raises:
            FileExistsError: there is a record of that shard.
            RunError: another driver has taken the lock, or the run's directory is gone.
            StoreFull: there is no room.
        """
        self._check_lock()
        name = record_name(record.shard_id)
        with naming_gone(self.place):
            self.shards.publish(name, checked_json(msgspec.to_builtins(record)), replace=False)

    def _check_files(self, sealed: SealedShard) -> None:
        for table, seal in sealed.files.items():
            name = file_name(sealed.shard_id, table)
            size = self.shards.size(name) or 0
            if size != seal.size:
                check_there(self.place, SHARDS, MANIFEST)
                raise RunError(
                    f"expected {seal.size} bytes in {self.shards.where(name)} to commit it, got {size}; "
                    "is run.root a directory that every node shares?"
                )

    def _standing_record(self, sealed: SealedShard) -> ShardRecord:
        for record in self.records():
            if record.shard_id == sealed.shard_id and record.files == sealed.files:
                return record
        raise RunError(
            f"expected shard {sealed.shard_id} to be new, got another of that id in {self.place.where()}"
        )

    def remove_hot(self, shard_id: str) -> None:
        """Removes a shard's streams, which its record has made superfluous.

        Of a run in an object store they lie on the host of its worker, which has removed them.
        """
        if self.place.path is not None:
            for stream in (*TABLES, "sums"):
                self.shards.remove(hot_name(shard_id, stream))

    def set_aside(self, damaged: DamagedShard) -> None:
        """Takes a damaged shard out of the run, so that its episodes can be played again.

        Its files stay for whoever wants to look; its record is renamed.

        Args:
            damaged: as reading found it.
        """
        self._check_lock()
        with naming_gone(self.place):
            self.shards.rename(record_name(damaged.shard_id), set_aside_name(damaged.shard_id))

    def append_log(self, line: Mapping[str, Any]) -> None:
        """Appends one event to the ledger's log; only the holder of the lock may.

        Args:
            line: JSON values, at least one member.

        Raises:
            RunError: another driver has taken the lock, or the run's directory is gone.
            StoreFull: there is no room.
        """
        self._check_lock()
        if self._log is None:
            with naming_gone(self.place):
                self._log = self._open_log()
        self._log.append(line)

    def log_lines(self) -> list[dict[str, Any]]:
        """The events of the ledger's log; lines torn or damaged are left out."""
        return self.read_log()[0]

    def read_log(self) -> tuple[list[dict[str, Any]], int]:
        """The events of the ledger's log, and the number of damaged lines that were left out."""
        if self.place.path is None:
            return read_segments(self.place.sub(SEGMENTS))
        return read_log(self.place.path / LOG)

    def _open_log(self) -> Log:
        if self.place.path is not None:
            return AppendLog(self.place.path / LOG)
        token = secrets.token_hex(8) if self._lock is None else self._lock.holder.token
        return SegmentLog(self.place.sub(SEGMENTS), token)

    def driver(self) -> LockHolder | None:
        """Who drives the run now; a lock left by a dead process of this host counts for nothing."""
        if self.place.path is None:
            return next(iter(read_claims(self.place.sub(LOCK))), None)
        holder = read_lock(self.place.path / LOCK)
        return None if holder is None or holder.is_dead() else holder

    def acquire_lock(self) -> HeldLock:
        """Takes the run's lock.

        Raises:
            InputError: another driver holds it, or the directory cannot be written.
            RunError: the directory is gone.
        """
        self.place = self.place.patient()  # a store that is away for a minute must not end what writes
        self.shards = self.place.sub(SHARDS)
        try:
            if self.place.path is None:
                return claim(self.place.sub(LOCK), self.run_id)
            with naming_gone(self.place):
                return acquire(self.place.path / LOCK, self.run_id)
        except OSError as error:
            raise InputError(
                f"expected to be able to write {self.place.where()} to lock the run, got: {error.strerror}"
            ) from error

    @contextlib.contextmanager
    def lock(self) -> Iterator[HeldLock]:
        """Holds the run's lock; see `acquire_lock`."""
        held = self._lock = self.acquire_lock()
        try:
            yield held
        finally:
            try:
                self.close()
            finally:
                self._lock = None
                held.release()

    def _check_lock(self) -> None:
        """Raises a RunError when another driver has taken the lock that is held, or the run is gone."""
        check_there(self.place)  # an open log takes lines though its file is removed
        if self._lock is not None:
            self._lock.check()

    def close(self) -> None:
        """Closes the log."""
        if self._log is not None:
            self._log.close()
            self._log = None
