"""A final file of a shard, as bytes: what sealing and merging both write.

Invariant: its seal is of exactly the bytes that it gives. Touches no file.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import pyarrow as pa

from cogeval.store.shards import FileSeal

_OPTIONS: Final = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=1), use_threads=False)
_ROWS_PER_BATCH: Final = 1 << 20  # few big batches: small ones cost their readers more than they save


class FinalFile:
    """An Arrow file in memory, compressed as it grows.

    Args:
        schema: of its table.
    """

    __slots__ = ("_num_rows", "_sink", "_writer")

    def __init__(self, schema: Any) -> None:
        self._num_rows = 0
        self._sink = pa.BufferOutputStream()
        self._writer = pa.ipc.new_file(self._sink, schema, options=_OPTIONS)

    def write(self, rows: Any) -> None:
        """Appends rows, in as few batches as can be.

        Args:
            rows: a pyarrow table. A file has one dictionary per column: all rows of it share theirs.
        """
        self._num_rows += rows.num_rows
        self._writer.write_table(rows.combine_chunks(), max_chunksize=_ROWS_PER_BATCH)

    def finish(self) -> tuple[memoryview, FileSeal]:
        """The content, and its seal; nothing can be appended any more."""
        self._writer.close()
        data = memoryview(self._sink.getvalue())
        return data, FileSeal(self._num_rows, data.nbytes, hashlib.sha256(data).hexdigest())
