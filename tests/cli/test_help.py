from __future__ import annotations

import subprocess
import sys

import pytest

from cogeval import __version__
from cogeval.cli import wrong_python
from cogeval.cli.verbs import VERBS

HEAVY = ("ray", "mlflow", "pyarrow", "numpy", "hydra", "omegaconf", "scipy", "matplotlib", "rich", "msgspec")


def imported_by(*argv: str) -> tuple[set[str], str]:
    """The heavy packages that a fresh process imports for a command, and what it prints."""
    code = (
        "import sys; from cogeval.cli import main; code = main(sys.argv[1:]); "
        f"print(*[m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, check=True)
    return set(done.stderr.split()), done.stdout


@pytest.mark.parametrize("argv", [(), ("--help",), ("run", "--help"), ("resume", "x", "-h"), ("--version",)])
def test_help_imports_nothing_heavy(argv: tuple[str, ...]) -> None:
    heavy, out = imported_by(*argv)
    assert not heavy
    assert out


def test_help_names_every_verb_with_one_line_and_four_examples(cogeval) -> None:
    text = cogeval("--help").out
    for verb in VERBS.values():
        assert f"  {verb.name:<11} {verb.line}\n" in text
    assert (
        len([line for line in text.splitlines() if line.startswith("  cogeval ") and "VERB" not in line]) == 4
    )


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_its_flags_within_80_columns(cogeval, verb: str) -> None:
    answer = cogeval(verb, "--help")
    assert answer.code == 0
    assert answer.out == cogeval("help", verb).out
    assert f"usage: cogeval {verb}" in answer.out
    for flag in VERBS[verb].flags:
        assert flag.names[0] in answer.out
    assert not [line for line in answer.out.splitlines() if len(line) > 80]


def test_version_is_that_of_the_package(cogeval) -> None:
    assert cogeval("--version").out == f"cogeval {__version__}\n"
    assert cogeval("version").out.startswith(f"cogeval {__version__}\npython ")


@pytest.mark.parametrize(
    ("version", "fine"), [((3, 9, 18), False), ((3, 11, 0), True), ((3, 13, 2), True), ((3, 14, 0), False)]
)
def test_a_python_that_cannot_run_it_is_named(version: tuple[int, ...], fine: bool) -> None:
    message = wrong_python(version)
    if fine:
        assert message is None
    else:
        assert "needs Python 3.11 to 3.13, this is " + ".".join(map(str, version)) in message
        assert "\n" not in message


def test_the_python_check_itself_is_readable_for_old_pythons() -> None:
    import ast
    from pathlib import Path

    import cogeval
    import cogeval.cli

    for module in (cogeval, cogeval.cli):
        assert module.__file__ is not None
        ast.parse(Path(module.__file__).read_text(encoding="utf-8"), feature_version=(3, 4))
