"""`cogeval check-agent` on a model: asked with a second try, as in a run, and told what that took."""

from __future__ import annotations

import pytest

from cogeval.agents.llm import agent as llm_agent
from cogeval.agents.llm.provider import Completion, RefusedError

GOOD = '{"action": "forage", "a": "", "b": "", "signature": "", "artifact": "", "say": "", "notes": ""}'
PRICE = "price: {input: 1, output: 5}"
ENTRY = "+pool.agents.m={{kind: llm, provider: openai, base_url: 'http://localhost:1/v1', model: m, {0}}}"
QUESTIONS = 4 * 6  # seats; two decisions in each of three rounds


class Provider:
    """Answers by the number of the request, counted from 0, and whether it is a second try."""

    def __init__(self, answer) -> None:
        self.answer = answer
        self.num_calls = self.num_tries = 0

    async def complete(self, call) -> Completion:
        is_retry = len(call.messages) > 1 or "That reply was not accepted" in call.messages[-1].text
        number = self.num_tries if is_retry else self.num_calls
        self.num_tries += is_retry
        self.num_calls += not is_retry
        told = self.answer(number, is_retry)
        if isinstance(told, Exception):
            raise told
        if told == GOOD and "YOUR LEGAL ACTIONS" in call.messages[0].text:
            listed = call.messages[0].text.rpartition("YOUR LEGAL ACTIONS")[2].splitlines()
            told = GOOD if "forage" in listed else GOOD.replace("forage", "pass")
        return Completion(told, tokens_in=1000, tokens_out=100, model="m-1")

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def checked(cogeval, monkeypatch):
    """The command on a model that answers as it is told, and its provider."""

    def check(answer, *argv, settings=PRICE):
        provider = Provider(answer)
        monkeypatch.setattr(llm_agent, "connect", lambda endpoint, place: provider)
        return cogeval("check-agent", "m", "game.rounds=3", ENTRY.format(settings), *argv), provider

    return check


def test_a_model_that_answers_well_passes_and_what_it_took_is_told(checked) -> None:
    answer, provider = checked(lambda number, is_retry: GOOD)
    assert answer.code == 0, answer.out
    assert provider.num_calls == QUESTIONS
    before, passes, *_ = answer.out.splitlines()
    assert before.startswith(f"asking {QUESTIONS} questions, for about $0.")
    assert passes.startswith("m passes: 24 questions")
    assert f"{QUESTIONS} read and legal at once, 0 at the second try, 0 not at all" in answer.out
    assert "24,000 tokens in, 2,400 out; $0.036" in answer.out  # 0.024 + 0.012


def test_a_reply_that_the_second_try_mends_is_no_failure(checked) -> None:
    answer, provider = checked(
        lambda number, is_retry: GOOD if is_retry or number % 2 else "I would rather not.", "--json"
    )
    assert answer.code == 0
    assert answer.json["passed"]
    replies = answer.json["replies"]
    assert (replies["at_once"], replies["second_try"], replies["lost"]) == (12, 12, 0)
    assert replies["tokens_in"] == 36_000
    assert replies["usd"] == pytest.approx(0.054)
    assert provider.num_tries == 12


def test_a_decision_that_two_replies_lose_fails_the_check_with_the_rate(checked) -> None:
    answer, _ = checked(lambda number, is_retry: "No." if is_retry or number == 5 else GOOD)
    assert answer.code == 1
    assert "m fails: 1 of 24 decisions (4%) would fall to the fallback; the first of them:" in answer.out
    assert "The model wrote no JSON object." in answer.out
    assert "where  seed 5083614927310864257, phase 1, seat 1" in answer.out
    assert "23 read and legal at once, 0 at the second try, 1 not at all (4%)" in answer.out
    assert "it wrote 'No.'" in " ".join(answer.out.split())


def test_a_model_that_never_says_anything_useful_is_not_asked_to_the_end(checked) -> None:
    answer, provider = checked(lambda number, is_retry: "No.", "--episodes", "9", "--json")
    assert answer.code == 1
    assert answer.json["failure"]["kind"] == "no reply"
    assert answer.json["replies"]["lost"] == provider.num_calls == 8


def test_a_service_that_refuses_ends_the_check_at_once(checked) -> None:
    answer, provider = checked(lambda number, is_retry: RefusedError("the service answered 400: no"))
    assert answer.code == 1
    assert provider.num_calls == 4  # those of one phase
    assert "The model's service did not answer, or refused." in answer.out
    assert "raised in" not in answer.out


def test_the_cap_holds_in_a_check_and_what_was_spent_is_told(checked) -> None:
    answer, provider = checked(lambda number, is_retry: GOOD, "limits.spend_usd=0.01")
    assert answer.code == 3
    assert "spent $0.0" in answer.err
    assert "tokens in" in answer.out
    assert provider.num_calls < QUESTIONS


@pytest.mark.parametrize(
    ("settings", "said"),
    [("price: {input: 0, output: 0}", "asking 24 questions; free"), ("max_tokens: 9", "; no price is known")],
)
def test_what_it_will_cost_is_said_as_far_as_it_is_known(checked, settings, said) -> None:
    assert said in checked(lambda number, is_retry: GOOD, settings=settings)[0].out


def test_an_agent_whose_loop_stands_still_counts_as_hanging(cogeval, tmp_path, monkeypatch) -> None:
    (tmp_path / "standing_still.py").write_text(
        "import threading\n\nRELEASED = threading.Event()\n\n\nclass Still:\n"
        "    async def decide(self, request):\n        RELEASED.wait(60)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    answer = cogeval(
        "check-agent", "--target", "standing_still.Still", "game.rounds=3", "--limit", "0.2", "--json",
        "+pool.agents.Still.is_model=true",
    )  # fmt: skip
    __import__("standing_still").RELEASED.set()
    assert answer.code == 1
    assert answer.json["failure"]["kind"] == "late"
