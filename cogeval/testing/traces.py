"""Re-plays recorded traces through the public game API and compares every field that they name.

``python -m cogeval.testing.traces FILE...`` exits with 0 when nothing differs, 1 when something does
and 2 when a file cannot be read. Each kind of file is one line in `KINDS`, recognised by the fields of
its records. Invariant: a kind only rebuilds a record; reading and comparing are the same for all.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from cogeval.core.game import Json
from cogeval.errors import InputError
from cogeval.testing import trace_cogchemists, trace_cogmud, trace_cogmud_parse, trace_random
from cogeval.testing.compare import Difference, compare
from cogeval.testing.compare import Path as FieldPath
from cogeval.testing.trace_files import Record, read_records
from cogeval.testing.trace_inputs import BadInput


class Kind(msgspec.Struct, frozen=True):
    """One kind of record.

    `rebuild` gives the record as our rules make it, from the record's own inputs only (seed,
    configuration, decisions); it raises `BadInput` when those cannot be used. `seat` tells which
    seat a place belongs to, if any.
    """

    name: str
    recognises: Callable[[Json], bool]
    rebuild: Callable[[Json], Json]
    seat: Callable[[FieldPath, Json], int | None]


class Finding(msgspec.Struct, frozen=True):
    """A difference and where it is."""

    file: Path
    record: Record
    kind: Kind
    difference: Difference

    def __str__(self) -> str:
        """One line: file, place, seed, step, seat, field, expected, got."""
        path = self.difference.path
        place = [str(self.file)]
        if self.record.place:
            place.append(self.record.place)
        if isinstance(self.record.value, dict) and "seed" in self.record.value:
            place.append(f"seed {self.record.value['seed']}")
        if len(path) > 1 and path[0] == "steps":
            place.append(f"step {path[1]}")
        seat = self.kind.seat(path, self.record.value)
        if seat is not None:
            place.append(f"seat {seat}")
        what = self.difference
        return f"{', '.join(place)}: {what.field}: expected {what.expected}, got {what.got}"


KINDS: Final = (
    Kind(
        "cogchemists episodes",
        trace_cogchemists.is_episode,
        trace_cogchemists.rebuild_episode,
        trace_cogchemists.seat_of,
    ),
    Kind(
        "cogchemists replies",
        trace_cogchemists.is_reply,
        trace_cogchemists.rebuild_reply,
        trace_cogchemists.seat_of,
    ),
    Kind(
        "chemistry order", trace_cogchemists.is_order, trace_cogchemists.rebuild_order, trace_random.no_seat
    ),
    Kind("cogmud episodes", trace_cogmud.is_episode, trace_cogmud.rebuild_episode, trace_cogmud.seat_of),
    Kind("cogmud replies", trace_cogmud.is_reply, trace_cogmud.rebuild_reply, trace_random.no_seat),
    Kind(
        "cogmud parse cases",
        trace_cogmud_parse.is_case,
        trace_cogmud_parse.rebuild_case,
        trace_cogmud_parse.seat_of,
    ),
    Kind(
        "unicode tables", trace_cogmud_parse.is_table, trace_cogmud_parse.rebuild_table, trace_random.no_seat
    ),
    Kind("random vectors", trace_random.is_vector, trace_random.rebuild_vector, trace_random.no_seat),
)


def kind_of(file: Path, record: Record) -> Kind:
    """Recognises a record.

    Raises:
        InputError: when it is of no known kind.
    """
    for kind in KINDS:
        if kind.recognises(record.value):
            return kind
    value = record.value
    fields = f"fields {', '.join(map(str, value))}" if isinstance(value, dict) else type(value).__name__
    known = ", ".join(kind.name for kind in KINDS)
    raise InputError(f"{file}: {record.place}: expected one of the known kinds ({known}), got {fields[:200]}")


def check_record(record: Record, kind: Kind, counts: Counter[str]) -> Iterator[Difference]:
    """Gives every difference between one record and our rules.

    Args:
        record: from a file.
        kind: what sort of record it is.
        counts: gains the compared fields.
    """
    try:
        ours = kind.rebuild(record.value)
    except BadInput as error:
        yield Difference(error.path, error.expected, error.got)
    except Exception as error:  # noqa: BLE001 - whatever breaks the rules is a finding at its record
        yield Difference((), "rules that take the record's inputs", f"{type(error).__name__}: {error}")
    else:
        yield from compare(record.value, ours, counts)


def check_file(file: Path, tables: dict[str, Counter[str]]) -> Iterator[Finding]:
    """Gives every finding of one file.

    Args:
        file: in a format that `KINDS` recognises.
        tables: gains the compared fields, by the kind of record.

    Raises:
        InputError: when the file cannot be read or is of no known kind.
    """
    for record in read_records(file):
        kind = kind_of(file, record)
        counts = tables.setdefault(kind.name, Counter())
        counts["records"] += 1
        for difference in check_record(record, kind, counts):
            yield Finding(file, record, kind, difference)


def table_lines(tables: dict[str, Counter[str]]) -> Iterator[str]:
    """Renders what was compared: for each object of the format, how many values of which fields."""
    for kind, counts in tables.items():
        yield f"{kind}: {counts['records']:,} records"
        objects: dict[str, list[str]] = {}
        for field in sorted(counts):
            if field != "records":
                objects.setdefault(field.rpartition(".")[0], []).append(field)
        for name, fields in objects.items():
            number = sum(counts[field] for field in fields)
            names = " ".join(field.rpartition(".")[2] for field in fields)
            yield f"  {name or '(record)':<28} {number:>7,}  {names}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line; gives the exit code."""
    parser = argparse.ArgumentParser(prog="python -m cogeval.testing.traces", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="recorded traces")
    parser.add_argument("--all", action="store_true", help="print all differences, not only the first")
    options = parser.parse_args(arguments)
    tables: dict[str, Counter[str]] = {}
    try:
        found = _report(options.files, options.all, tables)
    except InputError as error:
        print(error, file=sys.stderr)  # noqa: T201 - a command line
        return error.exit_code
    for line in table_lines(tables):
        print(line)  # noqa: T201 - a command line
    compared = sum(counts.total() - counts["records"] for counts in tables.values())
    differences = f"{found or 'no'} difference{'s' if found != 1 else ''}"
    print(f"compared {compared:,} fields: {differences}")  # noqa: T201 - a command line
    return 1 if found else 0


def _report(files: Iterable[Path], every: bool, tables: dict[str, Counter[str]]) -> int:
    """Prints the first finding, or every one; compares everything in both cases."""
    found = 0
    for file in files:
        for finding in check_file(file, tables):
            found += 1
            if every or found == 1:
                print(finding)  # noqa: T201 - a command line
    return found


if __name__ == "__main__":
    sys.exit(main())
