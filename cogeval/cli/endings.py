"""How a stretch of playing says that it was ended: the reason, and what to type, each once.

Invariant: whoever reads only the last line of a run that exists knows why it ended and how to go on.
"""

from __future__ import annotations

from typing import Final

from cogeval.cli.app import one_line
from cogeval.errors import RunError
from cogeval.store.roots import MANIFEST, check_there
from cogeval.store.run import RunDir

_TO_FILL: Final = "`cogeval resume`"  # how those say it who do not know how the run is called


class Failed(RunError):  # noqa: N818 - says what is, as the messages do
    """A stretch of playing ended before its end; among warnings, its line is known by its first word.

    Args:
        why: the reason, and the command that goes on, in one line.
    """

    def __init__(self, why: str) -> None:
        super().__init__(f"failed: {why}")
        self.why = why


class Interrupted(KeyboardInterrupt):
    """A stretch of playing was interrupted where no outcome could be waited for; says what to type."""


def failed(error: Exception, run: RunDir, command: str, where: str) -> RunError | None:
    """The error to raise for one that ended a stretch of playing.

    Args:
        error: as it was raised.
        run: the run.
        command: that goes on with it.
        where: to give that command, as `elsewhere` says it.

    Returns:
        Of another exit code than a failure's: the same error, with the command. None: it is nothing that
        the run could say anything of.
    """
    if is_gone(run):
        there = run.place.where()
        return Failed(
            f"the run's directory {there!r} is not there any more: it, or the working directory, was removed "
            f"or moved while the run was played; put it back, then {command}{where}, or begin the run anew"
        )
    if not isinstance(error, RunError):
        return None
    if error.exit_code != Failed.exit_code:
        error.add_note(f"to go on: {command}{where}")
        return error
    why = one_line(error)
    if _TO_FILL in why:
        return Failed(why.replace(_TO_FILL, f"`{command}`") + where)
    return Failed(f"{why}; to go on: {command}{where}")


def is_gone(run: RunDir) -> bool:
    """Whether a run that was there, in a directory, is there no more."""
    try:
        check_there(run.place, MANIFEST)
    except RunError:
        return True
    except OSError:  # it cannot be looked at, which is another trouble
        return False
    return False
