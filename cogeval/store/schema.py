"""The three tables of a run, column by column.

Invariant: every field says in its metadata what it holds (``doc``: meaning, unit, range), and
docs/store.md shows the same text. Text columns are written by `text.store_text`.
"""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

from cogeval.store.shards import SCHEMA_VERSION as SCHEMA_VERSION

_NAME = pa.dictionary(pa.int32(), pa.string())  # few distinct values: stored once per shard
STATISTICS: Final = pa.map_(pa.string(), pa.float64())


def _field(name: str, kind: Any, doc: str, *, nullable: bool = False) -> Any:
    return pa.field(name, kind, nullable=nullable, metadata={"doc": doc})


def _table(name: str, fields: list[Any]) -> Any:
    return pa.schema(fields, metadata={"table": name, "schema_version": str(SCHEMA_VERSION)})


EPISODES: Final = _table(
    "episodes",
    [
        _field("index", pa.int64(), "place in the schedule, 0 .. scheduled - 1; unique in a run"),
        _field("episode_id", pa.string(), "identity of the experiment, 32 hexadecimal digits"),
        _field("block", pa.int32(), "block of the schedule (one seed and its lineups), 0-based"),
        _field("seed", pa.int64(), "seed of the world"),
        _field("replicate", pa.int32(), "repetition of the same lineup on the same seed, 0-based"),
        _field("reason", _NAME, "why it ended: complete, deadline, or the game's own word"),
        _field("phases", pa.int32(), "phases that were resolved"),
        _field("stopped", pa.bool_(), "the episode clock ended it"),
        _field("clock_events", pa.bool_(), "time decided something: stopped, or a decision timed out"),
        _field("faults", pa.int32(), "attempts with a fault, all seats together"),
        _field("wall_s", pa.float64(), "wall time from the first phase to the end, seconds"),
        _field("digest", pa.binary(32), "sha256 of what happened: actions, reason, scores; 32 bytes"),
        _field("worker", _NAME, "worker that played it"),
        _field("finished_at", pa.timestamp("us", tz="UTC"), "when it was handed to the store"),
    ],
)

SEATS: Final = _table(
    "seats",
    [
        _field("index", pa.int64(), "episode's place in the schedule"),
        _field("block", pa.int32(), "block of the schedule, as in episodes"),
        _field("seat", pa.int8(), "seat, 0 .. seats - 1"),
        _field("agent", _NAME, "agent's name in its pool"),
        _field("score", pa.float64(), "score, in the game's unit"),
        _field("rank", pa.int8(), "seats that did strictly better, 0 is best; forfeits last"),
        _field("share", pa.float64(), "(seats beaten + half the ties) / (seats - 1), 0 .. 1"),
        _field("forfeited", pa.bool_(), "the seat gave up after a fault: left out of score means"),
        _field("num_decisions", pa.int32(), "decisions that the seat had to take"),
        _field("num_fallbacks", pa.int32(), "of these, how many a fallback took in its place"),
        _field("num_faults", pa.int32(), "attempts with a fault"),
        _field("tokens_in", pa.int64(), "prompt tokens, cached ones included; sum of its decisions"),
        _field("tokens_out", pa.int64(), "completion tokens; sum of its decisions"),
        _field("tokens_cached", pa.int64(), "prompt tokens read from a cache; sum of its decisions"),
        _field("cost_usd", pa.float64(), "price of its replies, US dollars; sum of its decisions"),
        _field("think_s", pa.float64(), "think time, seconds; sum of its decisions"),
        _field("queue_s", pa.float64(), "waits not charged to the seat, seconds; sum of its decisions"),
        _field("statistics", STATISTICS, "the game's own figures for the seat, by name"),
    ],
)

DECISIONS: Final = _table(
    "decisions",
    [
        _field("index", pa.int64(), "episode's place in the schedule"),
        _field("phase", pa.int32(), "phase, 0-based"),
        _field("seat", pa.int8(), "seat that had to decide"),
        _field("attempt", pa.int8(), "0 first, 1 the retry; a fallback comes after those it replaces"),
        _field("kind", _NAME, "the game's word for this sort of decision"),
        _field("source", _NAME, "who decided: agent, or the fallback baseline, pass or forfeit"),
        _field("accepted", pa.bool_(), "this attempt's action was played"),
        _field("action", _NAME, "action as canonical JSON; null: none could be read", nullable=True),
        _field("fault", _NAME, "timeout, exception, unreadable or illegal; null: fine", nullable=True),
        _field("detail", pa.string(), "what the fault was, for people", nullable=True),
        _field("think_s", pa.float32(), "think time, seconds; null: it was no number", nullable=True),
        _field("queue_s", pa.float32(), "waits not charged, seconds; null: it was no number", nullable=True),
        _field("tokens_in", pa.int64(), "prompt tokens, 0 .. 2^40; null: not reported", nullable=True),
        _field("tokens_out", pa.int64(), "completion tokens, 0 .. 2^40; null: not reported", nullable=True),
        _field("tokens_cached", pa.int64(), "cached prompt tokens, 0 .. 2^40", nullable=True),
        _field("cost_usd", pa.float64(), "price, US dollars; null: not reported", nullable=True),
        _field("model", _NAME, "model as the provider named it in its reply", nullable=True),
        _field("finish_reason", _NAME, "why the model stopped, as the provider said", nullable=True),
        _field("reply", pa.string(), "reply text as received", nullable=True),
        _field("stderr", pa.string(), "what its process wrote to stderr before the fault", nullable=True),
    ],
)

# Version 2 added `stderr` to decisions.
SCHEMAS: Final[dict[str, Any]] = {"decisions": DECISIONS, "seats": SEATS, "episodes": EPISODES}
"""By table name, in the order in which they are written."""


def conformed(rows: Any, schema: Any) -> Any:
    """Rows as a schema has them: columns that an older version did not have are null.

    Args:
        rows: a pyarrow table.
        schema: what it should be.

    Raises:
        ValueError: a column is missing that may not be null.
    """
    if rows.schema.names == schema.names:
        return rows
    columns = []
    for field in schema:
        if field.name in rows.schema.names:
            columns.append(rows[field.name])
        elif field.nullable:
            columns.append(pa.nulls(rows.num_rows, field.type))
        else:
            raise ValueError(f"has no column {field.name}")
    return pa.Table.from_arrays(columns, schema=schema)
