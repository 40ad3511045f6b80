"""Dispatch: the verb's function is found and called, and what it raises becomes one line and a code.

Invariant: the one place where an exception meets the user. Stdlib only until a verb runs.
"""

from __future__ import annotations

import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from cogeval import __version__
from cogeval.cli.arguments import read_arguments
from cogeval.cli.program import standing_in, typed
from cogeval.cli.verbs import SHELL_COMPLETION, VERBS, help_text, verb_help
from cogeval.errors import InputError, RunError, unknown_name

PAUSED = 3  # the spending cap is reached
INTERRUPTED = 130  # what a shell gives for SIGINT
NOBODY_READS = 141  # and for SIGPIPE


def run_command(argv: Sequence[str]) -> int:
    """Runs one command and reports its failure.

    Returns:
        The exit code.
    """
    debug = "--debug" in argv
    try:
        code = _dispatch(argv)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Nobody reads on (`| head`): leave nothing in the buffer for the interpreter to fail on.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return NOBODY_READS
    except KeyboardInterrupt as error:
        if debug:
            traceback.print_exc()
        complain(one_line(error) or "interrupted")
        return INTERRUPTED
    except RunError as error:
        if debug:
            traceback.print_exc()
        complain(one_line(error))
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the last place: whatever it is, the user gets one line
        if debug:
            traceback.print_exc()
        way_out = "" if debug else "; run again with --debug for the traceback"
        complain(f"internal error: {type(error).__name__}: {one_line(error)}{way_out}")
        return 1


def complain(message: str) -> None:
    """Writes one line on stderr; the commands that it names are as one must type them here."""
    sys.stderr.write(f"cogeval: {typed(message)}\n")
    sys.stderr.flush()


def one_line(error: BaseException) -> str:
    """The message and its notes in one line, with nothing in it that could steer a terminal."""
    parts = [str(error), *getattr(error, "__notes__", ())]
    text = "; ".join(" ".join(part.split()) for part in parts if part.strip())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def _dispatch(argv: Sequence[str]) -> int:
    words = [word for word in argv if word != "--debug"]
    first = words[0] if words else "--help"
    if first in ("--help", "-h", "help"):
        named = words[1] if first == "help" and len(words) > 1 else None
        sys.stdout.write(verb_help(_verb(named)) if named else help_text())
        return 0
    if first in ("--version", "-V"):
        sys.stdout.write(f"cogeval {__version__}\n")
        return 0
    if first.partition("=")[0] in SHELL_COMPLETION.names:
        return int(_function("cogeval.cli.completion:shell_completion")(words))
    verb = _verb(first)
    rest = [*(["--debug"] if "--debug" in argv else []), *words[1:]]
    ended = rest.index("--") if "--" in rest else len(rest)
    if {"--help", "-h"} & set(rest[:ended]):
        sys.stdout.write(verb_help(verb))
        return 0
    arguments = read_arguments(verb, rest)
    _check_standing()
    return int(_function(verb.target)(arguments))


def _check_standing() -> None:
    if standing_in() is not None:
        return
    named = os.environ.get("PWD", "")
    where = "" if not named or os.path.exists(named) else f" {named!r}"  # noqa: PTH110 - no Path of nothing
    raise InputError(
        f"the working directory{where} does not exist any more; go to one that does, for example with `cd`"
    )


def _verb(name: str) -> Any:
    if name in VERBS:
        return VERBS[name]
    if name.startswith("-"):
        raise InputError(f"expected a verb first, got the flag {name!r}; for example cogeval run {name}")
    if "=" in name:
        raise InputError(f"expected a verb first, got {name!r}; for example cogeval run {name}")
    raise unknown_name("verb", name, VERBS)


def _function(target: str) -> Any:
    module, _, name = target.partition(":")
    return getattr(importlib.import_module(module), name)
