"""The command line: verbs, flags, messages and exit codes.

Invariant: one failure is one line on stderr that names the way out, with exit code 2 for the user's
input and 1 for ours. This module is read by whatever Python runs it, so its syntax stays old and
nothing is imported before the version is checked. The only package beside `cogeval.config` that
imports hydra.
"""

import sys

OLDEST_PYTHON = (3, 11)
TOO_NEW_PYTHON = (3, 14)  # Hydra 1.3 does not run on it


def wrong_python(version):  # type: ignore[no-untyped-def]  # old Pythons read this line
    """Says what is wrong with a Python version; None when it will do.

    Args:
        version: as in ``sys.version_info[:3]``.
    """
    if OLDEST_PYTHON <= tuple(version[:2]) < TOO_NEW_PYTHON:
        return None
    return (
        "cogeval: cogeval needs Python 3.11 to 3.13, this is %s (%s); install one of those and make the "  # noqa: UP031 - as old
        "environment anew with it" % (".".join(str(n) for n in version[:3]), sys.executable)
    )


def main(argv=None):  # type: ignore[no-untyped-def]  # old Pythons read this line
    """Runs one command.

    Args:
        argv: the arguments after the program's name; None: those of this process.

    Returns:
        The exit code: 0 fine, 1 our failure, 2 wrong input, 3 paused at its spending cap, 130 interrupted,
        141 nobody reads on.
    """
    message = wrong_python(sys.version_info)  # type: ignore[no-untyped-call]  # as above
    if message:
        sys.stderr.write(message + "\n")
        return 2
    from cogeval.cli.app import run_command

    return run_command(sys.argv[1:] if argv is None else list(argv))
