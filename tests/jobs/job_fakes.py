"""Commands that stand in for a cluster's: each writes down how it was called."""

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
JOBS = ROOT / "jobs"

_RECORD = """#!{python}
import json, os, sys
if {lasts!r}:  # as `ray start --block` does, until it is told to end
    import signal
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
with open({log!r}, "a") as log:
    log.write(json.dumps([{name!r}, *sys.argv[1:]]) + "\\n")
print({says!r})
if {lasts!r}:
    signal.pause()
sys.exit({code!r})
"""


def put(folder, name, *, says="", code=0, lasts=False):
    """Puts a command into a directory that says something, ends with a code, or lasts until SIGTERM."""
    log = str(folder / "calls.jsonl")
    path = folder / name
    path.write_text(
        _RECORD.format(python=sys.executable, name=name, log=log, says=says, code=code, lasts=lasts)
    )
    path.chmod(0o755)


def run_with(folder, *command, **variables):
    """Runs a command that finds the stand-ins first; gives it, and their calls in the order of the log."""
    kept = {name: os.environ[name] for name in ("HOME", "LANG") if name in os.environ}
    environment = {**kept, "PATH": f"{folder}:/usr/bin:/bin", **variables}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, cwd=folder, check=False
    )
    log = folder / "calls.jsonl"
    return done, [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
