"""Reads trace files: JSON lines or one JSON document, plain or gzipped, told apart by content.

Invariant: a file is read whole or refused with one clear line. Must not know what a record means.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from cogeval.core.game import Json
from cogeval.errors import InputError

_GZIP_MAGIC = b"\x1f\x8b"


class Record(msgspec.Struct, frozen=True):
    """One record of a file."""

    place: str  # "line 3" of JSON lines, "entry 3" of an array (both from 1), or "" for a whole document
    value: Json


def read_records(path: Path) -> list[Record]:
    """Reads every record of a trace file.

    Args:
        path: a file of JSON lines, a JSON array (its entries are the records) or a JSON object.

    Returns:
        At least one record.

    Raises:
        InputError: when the file is missing, a damaged gzip, no UTF-8, no JSON, or empty.
    """
    text = _text(path)
    try:
        records = list(_lines(text)) or _document(json.loads(text))
    except ValueError as error:
        raise InputError(f"{path}: expected JSON lines or a JSON document, got {error}") from error
    if not records:
        raise InputError(f"{path}: expected at least one record, got an empty file")
    return records


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        if data.startswith(_GZIP_MAGIC):
            data = gzip.decompress(data)
        elif path.suffix == ".gz":
            raise InputError(f"{path}: expected a gzip file, as its name says, got other bytes")
        text = data.decode("utf-8")
    except OSError as error:  # gzip.BadGzipFile is one of these
        raise InputError(f"{path}: expected a readable file, got {error.strerror or error}") from error
    except (EOFError, zlib.error) as error:
        raise InputError(f"{path}: expected a whole gzip file, got {error}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: expected UTF-8 text, got {error}") from error
    if not text.strip():
        raise InputError(f"{path}: expected at least one record, got an empty file")
    return text


def _lines(text: str) -> Iterator[Record]:
    """The records of JSON lines; none when the first line alone is no JSON object."""
    lines = text.split("\n")  # not splitlines: JSON text may hold other line separators
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            value = json.loads(line)
        except ValueError as error:
            if number == 1 and line.lstrip()[:1] in "[{" and len(lines) > 1:
                return  # perhaps one document over several lines
            raise ValueError(f"line {number}: {error}") from error
        if number == 1 and not isinstance(value, dict):
            return  # a document of one line
        yield Record(f"line {number}", value)


def _document(value: Json) -> list[Record]:
    if isinstance(value, list):
        return [Record(f"entry {i}", item) for i, item in enumerate(value, start=1)]
    return [Record("", value)]
