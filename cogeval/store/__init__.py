"""The run directory: written by workers shard by shard, committed by the driver, read by everybody.

`run` (directory, lock, log, commits) and `shards` need no pyarrow; `write`, `recover`, `read` and
`checks` do, and are imported by their own names so that light commands stay light.
"""
