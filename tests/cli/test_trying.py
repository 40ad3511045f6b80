"""`cogeval try`: what one seat is asked and answers, as it happens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cogeval.cli.completion import candidates
from cogeval.core.episode import play
from cogeval.core.quota import BudgetSpentError
from cogeval.core.record import Attempt

COMMAND = [sys.executable, "-c", "import sys; from cogeval.cli import main; sys.exit(main(sys.argv[1:]))"]

CLASSES = '''
import asyncio

from cogeval.core.agent import Reply, Usage
from cogeval.core.quota import BudgetSpentError


class Last:
    def __init__(self, seat, back=1):
        self.back = back

    def decide(self, request):
        return Reply(list(request.decision.legal)[-self.back])


class Rude:
    """Answers with markup and codes that steer a terminal, and is no good at that."""

    async def decide(self, request):
        usage = Usage(tokens_in=10, tokens_out=2, tokens_cached=4, cost_usd=0.01)
        text = "[bold red]fly[/]" + chr(27) + "[31m :smile:"
        return Reply(payload={"action": "fly"}, text=text, usage=usage, model="m[1]", finish_reason="stop")


class Broke:
    """Asks for money that is not there."""

    async def decide(self, request):
        raise BudgetSpentError("spent $1.00 of $1.00")


class Asleep:
    async def decide(self, request):
        print("asleep", flush=True)
        await asyncio.sleep(600)


class Busy:
    def decide(self, request):
        print("busy", flush=True)
        while True:
            pass
'''


@pytest.fixture
def tried(cogeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The command `try`, with the classes beside it."""
    (tmp_path / "tried_here.py").write_text(CLASSES)
    monkeypatch.delitem(sys.modules, "tried_here", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    yield lambda *argv: cogeval("try", *argv)
    sys.modules.pop("tried_here", None)


def lines(answer: Any) -> list[dict[str, Any]]:
    assert answer.code == 0, answer.err
    return [json.loads(line) for line in answer.out.splitlines()]


def test_the_transcript_has_prompt_action_events_and_result(tried) -> None:
    answer = tried("quack", "game.rounds=3", "--seat", "1")
    assert (answer.code, answer.err) == (0, "")
    said = answer.out.splitlines()
    assert said[0].endswith("seed 0: quack in seat 1, assayer in seats 0, 2, 3")
    assert [line for line in said if line.startswith("phase ")] == [
        f"phase {i}, {kind}" for i, kind in enumerate(["lab", "market"] * 3)
    ]
    assert said.count("prompt") == 6
    assert sum(line.startswith("action  {") for line in said) == 6
    assert any(line.startswith("event   act round=2") for line in said)
    assert "result (complete)" in said
    assert said[-1].startswith("quack: 6 decisions, 0 faults, ")


def test_the_system_text_is_shown_once_and_only_when_asked_for(tried) -> None:
    assert "system text: " in tried("quack", "--decisions", "2").out
    whole = tried("quack", "--decisions", "2", "--prompt").out
    assert whole.splitlines().count("system text") == 1
    (asked, again) = [e for e in lines(tried("quack", "--decisions", "2", "--json")) if e["event"] == "asked"]
    assert asked["system"].splitlines()[0] in whole
    assert "system" not in again


def test_what_an_agent_writes_shows_literally(tried) -> None:
    answer = tried("--target", "tried_here.Rude", "--decisions", "1")
    assert answer.code == 0
    assert "  [bold red]fly[/]\\x1b[31m :smile:\n" in answer.out
    assert "\x1b" not in answer.out


def test_faults_hints_retries_fallbacks_and_what_they_cost_are_shown(tried) -> None:
    said = tried("--target", "tried_here.Rude", "--decisions", "1").out
    assert said.count("fault   unreadable: 'fly' is no lab action") == 2
    assert said.count("that is its hint: it is asked once more") == 1
    assert "10 tokens in (4 cached), 2 out, $0.0100; m[1]; finished by stop" in said
    assert "fallback (baseline)  {" in said
    assert said.endswith("20 + 4 tokens, $0.0200\n")
    assert "Rude: 1 decision, 2 faults" in said


def test_json_lines_tell_what_the_episode_records(tried, monkeypatch: pytest.MonkeyPatch) -> None:
    recorded: list[Any] = []

    async def kept(*args: Any, **options: Any) -> Any:
        recorded.append(await play(*args, **options))
        return recorded[0]

    monkeypatch.setattr("cogeval.cli.trying.play", kept)
    told = lines(tried("--target", "tried_here.Rude", "game.rounds=3", "--seat", "3", "--json"))
    assert [t["event"] for t in told[:4]] == ["started", "asked", "answered", "answered"]
    assert told[0]["agents"] == ["assayer"] * 3 + ["Rude"]
    attempts: list[Attempt] = [a for a in recorded[0].attempts if a.seat == 3]
    answered = [t for t in told if t["event"] == "answered"]
    assert [(t["phase"], t["attempt"], t["fault"], t["text"], t["source"]) for t in answered] == [
        (a.phase, a.attempt, a.fault, a.text, a.source) for a in attempts
    ]
    assert answered[0]["usage"]["tokens_cached"] == 4
    end = told[-1]
    assert (end["event"], end["complete"], end["results"]["digest"]) == ("ended", True, recorded[0].digest)
    assert (end["decisions"], end["faults"]) == (6, 12)
    assert [s["agent"] for s in end["results"]["seats"]] == told[0]["agents"]


@pytest.mark.parametrize("against", ["random", "quack"])
def test_the_others_can_be_chosen_and_the_seed_too(tried, against: str) -> None:
    told = lines(tried("assayer", "--against", against, "--seed", "-7", "game.rounds=3", "--json"))
    assert told[0]["agents"] == ["assayer", *[against] * 3]
    assert told[0]["seed"] == -7
    assert lines(tried("assayer", "seed=5", "--decisions", "1", "--json"))[0]["seed"] == 5


def test_a_class_takes_its_parameters_from_the_command_line(tried) -> None:
    one, two = (
        lines(
            tried("--target", "tried_here.Last", f"+pool.agents.Last.back={n}", "--decisions", "1", "--json")
        )
        for n in (1, 2)
    )
    assert one[2]["action"]["action"] == "pass"
    assert two[2]["action"]["action"] == "transmute"


def test_when_the_money_is_spent_it_says_so_and_what_was_seen_stays(tried) -> None:
    answer = tried("--target", "tried_here.Broke", "--json")
    assert (answer.code, answer.err) == (BudgetSpentError.exit_code, "cogeval: spent $1.00 of $1.00\n")
    assert [json.loads(line)["event"] for line in answer.out.splitlines()] == ["started", "asked", "ended"]


def test_it_stops_after_so_many_decisions_of_its_seat(tried) -> None:
    told = lines(tried("greedy_total", "game=cogz", "--seat", "1", "--decisions", "2", "--json"))
    assert [t["phase"] for t in told if t["event"] == "asked"] == [1, 3]
    assert (told[-1]["complete"], told[-1]["results"], told[-1]["decisions"]) == (False, None, 2)


def test_a_broken_neighbour_in_the_pool_is_in_nobodys_way(tried) -> None:
    assert tried("quack", "+pool.agents.broken._target_=no_such.Thing", "--decisions", "1").code == 0


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "expected one AGENT, got none"),
        (("quack", "assayer"), "expected one AGENT, got quack assayer"),
        (("quack", "--target", "a.B"), "expected an AGENT of the pool or --target, got quack and"),
        (("quak",), "unknown agent of the pool 'quak'; known, closest first: quack"),
        (("quack", "--against", "x"), "for --against: 'x'"),
        (("quack", "--seat", "4"), "--seat: expected a whole number from 0 to 3, got '4'"),
        (("quack", "--seed", "x"), "--seed: expected a whole number from -9223372036854775808 to"),
        (("quack", "--decisions", "0"), "--decisions: expected a whole number of at least 1, got '0'"),
        (("--target", "x;y"), "--target: expected my_module.MyAgent, got 'x;y'"),
        (("--target", "no_such.Thing"), "cannot be imported"),
    ],
)
def test_wrong_input_is_named(tried, argv: tuple[str, ...], message: str) -> None:
    answer = tried(*argv)
    assert (answer.code, answer.out) == (2, "")
    assert message in answer.err


@pytest.mark.parametrize(
    ("name", "deterministic"), [("Asleep", "false"), ("Busy", "true"), ("Busy", "false")]
)
def test_ctrl_c_stops_an_agent_that_does_not_answer(
    tried, tmp_path: Path, name: str, deterministic: str
) -> None:
    argv = ["try", "--target", f"tried_here.{name}", f"+pool.agents.{name}.deterministic={deterministic}"]
    code = "import sys; from cogeval.cli import main; sys.exit(main(sys.argv[1:]))"
    child = subprocess.Popen(
        [sys.executable, "-c", code, *argv], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    assert child.stdout is not None
    while child.stdout.readline().strip() not in ("asleep", "busy"):
        assert child.poll() is None
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=20)
    assert (child.returncode, err) == (130, "cogeval: interrupted\n")
    assert "stopped before the end" in out


def test_a_reader_that_goes_away_ends_it_quietly(tried, tmp_path: Path) -> None:
    code = "import sys; from cogeval.cli import main; sys.exit(main(sys.argv[1:]))"
    child = subprocess.Popen(
        [sys.executable, "-c", code, "try", "quack"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.readline()
    child.stdout.close()
    assert child.stderr.read() == b""
    assert child.wait(timeout=20) == 141
    child.stderr.close()


def test_agents_of_the_pool_are_completed() -> None:
    assert candidates("cogeval try qu", "bash") == ["quack"]
    assert candidates("cogeval check-agent game=cogz loo", "bash") == ["lookahead"]
    assert candidates("cogeval try quack --against as", "bash") == ["assayer"]
    assert candidates("cogeval try quack game=cogc", "bash") == ["game=cogchemists"]
