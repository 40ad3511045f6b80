"""`cogeval check-agent`: what is wrong with an agent, where, and how to mend it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cogeval.cli.mending import MODEL, PLACED, PROGRAM, PYTHON
from cogeval.testing.agent_checks import FAILURES

CLASSES = '''
import asyncio
import itertools
import threading

from cogeval.core.agent import Reply

CALLS = itertools.count()
RELEASED = threading.Event()  # by the test, when it is over


class Fine:
    async def decide(self, request):
        return Reply(request.decision.default)


class Remembers(Fine):
    """Keeps a connection in the loop of its first decision, and is told of its end."""

    loop, closed = None, 0

    async def decide(self, request):
        here = asyncio.get_running_loop()
        assert Remembers.loop in (None, here)
        Remembers.loop = here
        return Reply(request.decision.default)

    async def close(self, outcome):
        Remembers.closed += 1


class Unborn:
    def __init__(self):
        raise OSError("no weights")

    def decide(self, request):
        pass


class Raises:
    def decide(self, request):
        return request.hint.upper()  # the hint is None


class Bare:
    def decide(self, request):
        return request.decision.default


class Chatty:
    def decide(self, request):
        return Reply(text="I would rather not.")


class Garbled:
    def decide(self, request):
        return Reply(payload={"action": "[red]fly[/]"})


class Unlawful:
    def decide(self, request):
        legal = request.decision.legal
        return Reply(type(request.decision.default)("sell", 0, 0))


class Moody:
    def decide(self, request):
        legal = list(request.decision.legal)
        return Reply(legal[next(CALLS) % len(legal)])


class Hangs:
    def decide(self, request):
        RELEASED.wait(60)
'''


@pytest.fixture
def check(cogeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command `check-agent`, on a class of those above."""
    (tmp_path / "checked_here.py").write_text(CLASSES)
    monkeypatch.delitem(sys.modules, "checked_here", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    yield lambda name, *argv: cogeval(
        "check-agent", "--target", f"checked_here.{name}", "game.rounds=3", *argv
    )
    module = sys.modules.pop("checked_here", None)
    if module is not None:
        module.RELEASED.set()


def test_a_sound_agent_passes_and_is_led_on(check) -> None:
    answer = check("Fine", "--episodes", "1")
    assert answer.code == 0
    assert answer.out.startswith("Fine passes: 24 questions, 1 random episode of cogchemists, every seat\n")
    assert "cogeval try --target checked_here.Fine game.rounds=3\n" in answer.out


def test_an_agent_of_the_pool_is_held_to_what_it_declares(cogeval) -> None:
    answer = cogeval("check-agent", "quack", "game.rounds=3")
    assert answer.code == 0
    assert "the same twice" in answer.out
    assert "144 questions, 3 random episodes" in answer.out


@pytest.mark.parametrize(
    ("name", "kind", "found"),
    [
        ("Unborn", "constructor", "expected an agent, got OSError: no weights"),
        ("Raises", "exception", "expected a Reply, got AttributeError"),
        ("Bare", "no reply", "expected a Reply, got Action"),
        ("Chatty", "no reply", "got neither; it wrote 'I would rather not.'"),
        ("Garbled", "unreadable", "cannot be read"),
        ("Unlawful", "illegal", "expected a legal action"),
        ("Moody", "not repeatable", "declared deterministic"),
        ("Hangs", "late", "expected a reply within 0.2 s, got none"),
    ],
)
def test_each_failure_is_named_placed_and_explained(check, name: str, kind: str, found: str) -> None:
    options = [f"+pool.agents.{name}.deterministic=true"] if name == "Moody" else []
    options += ["--limit", "0.2"] if name == "Hangs" else []
    answer = check(name, "--json", *options)
    assert answer.code == 1
    told = answer.json
    failure = told["failure"]
    assert (told["passed"], failure["kind"]) == (False, kind)
    assert failure["place"].startswith("seed 0, phase 0, seat 0")
    assert found in failure["found"]
    assert (failure["what"], failure["mend"]) == PYTHON[kind]


def test_the_failing_line_of_the_users_own_code_is_shown(check) -> None:
    said = check("Raises").out
    assert said.startswith("Raises fails at question 1\ndecide() raised an exception.\n")
    assert "checked_here.py, line " in said
    assert "return request.hint.upper()" in said


def test_debug_shows_the_traceback_and_keeps_the_answer(check) -> None:
    answer = check("Raises", "--debug")
    assert "Traceback (most recent call last)" in answer.err
    assert (answer.code, answer.out) == (1, check("Raises").out)


def test_what_an_agent_writes_is_no_markup(check) -> None:
    assert "{'action': '[red]fly[/]'} cannot be read" in " ".join(check("Garbled").out.split())


@pytest.mark.parametrize("words", [PYTHON, PLACED, PROGRAM, MODEL])
def test_every_kind_of_failure_has_its_explanation(words) -> None:
    assert set(words) == set(FAILURES)


def test_a_placed_class_that_cannot_be_made_is_said_to_be_so(check) -> None:
    placed = "+pool.agents.{}.placement=process"
    answer = check("Unborn", placed.format("Unborn"), "--json")
    failure = answer.json["failure"]
    assert failure["kind"] == "constructor"
    assert failure["found"] == "expected an agent, got none: the agent could not be made: OSError: no weights"
    assert 'raise OSError("no weights")' in failure["stderr"]
    assert "timer.queued" not in PLACED["late"][1]
    said = check("Raises", placed.format("Raises")).out
    assert "decide() raised an exception, or its process ended.\n" in said
    assert "stderr\n  Traceback (most recent call last):\n" in said
    assert "return request.hint.upper()" in said


PROGRAM_LINES = {
    "stops": ("constructor", 'echo "no model" >&2; exit 9'),
    "answers_nothing": ("late", 'read; echo "{\\"type\\": \\"ready\\"}"; read; echo "hm" >&2; sleep 60'),
    "ends": ("exception", 'read; echo "{\\"type\\": \\"ready\\"}"; read; echo "hm" >&2; exit 1'),
    "babbles": (
        "no reply",
        'read; echo "{\\"type\\": \\"ready\\"}"; read; echo "hm" >&2; echo "well"; sleep 60',
    ),
}


@pytest.mark.parametrize("name", PROGRAM_LINES)
def test_a_program_is_advised_as_a_program_and_its_stderr_is_shown(cogeval, name: str) -> None:
    kind, script = PROGRAM_LINES[name]
    entry = f"+pool.agents.tried={{kind: process, command: [bash, -c, '{script}']}}"
    answer = cogeval("check-agent", "tried", "game.rounds=3", "--limit", "0.3", "--json", entry)
    failure = answer.json["failure"]
    assert failure["kind"] == kind
    assert (failure["what"], failure["mend"]) == PROGRAM[kind]
    assert failure["stderr"] == ("no model\n" if kind == "constructor" else "hm\n")
    assert "decide()" not in failure["what"]
    assert "request." not in failure["mend"]


def test_one_loop_serves_all_decisions_and_every_agent_is_closed(check) -> None:
    assert check("Remembers", "--episodes", "2").code == 0
    assert sys.modules["checked_here"].Remembers.closed == 2 * 4


def test_wrong_limits_are_named(check) -> None:
    for limit in ("0", "nan", "soon"):
        answer = check("Fine", "--limit", limit)
        assert (answer.code, answer.err) == (
            2,
            f"cogeval: --limit: expected seconds above 0, got '{limit}'\n",
        )


def test_it_needs_no_extra_package(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "sys.modules.update(dict.fromkeys(['pytest', 'hypothesis', 'ray', 'anthropic', 'openai']))\n"
        "from cogeval.cli import main\n"
        "sys.exit(main(['check-agent', 'quack', 'game.rounds=3', '--episodes', '1']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
