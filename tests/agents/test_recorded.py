"""The agent that answers from a journal: what was recorded, faults included, and nothing else."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable

import msgspec
import pytest

from cogeval.agents.recorded import (
    ModelText,
    ProgramLine,
    RecordedAgent,
    is_taken_on_trust,
    readers,
    recorded_seat,
)
from cogeval.core.agent import Agent, Reply, Request, Seated, Usage
from cogeval.core.clock import MonotonicClock, ThinkTimer
from cogeval.core.episode import Fallback, play
from cogeval.core.game import AnyGame, Decision
from cogeval.core.record import Attempt, Episode
from cogeval.core.rng import Stream, stream
from cogeval.core.seat import REPLY_CHARS, Deadlines
from cogeval.errors import RecordedFaultError
from cogeval.games import make_game


class Noise:
    """Every fault there is, from a source that nobody seeds."""

    def __init__(self, game: AnyGame) -> None:
        self.game = game

    async def decide(self, request: Request) -> Reply:
        kind = random.choice(("fine", "fine", "timeout", "exception", "unreadable", "payload"))
        if kind == "timeout":
            await asyncio.sleep(3600)
        if kind == "exception":
            raise ValueError("so much noise")
        if kind == "unreadable":
            return Reply(text="mumble")
        if kind == "payload":
            return Reply(payload={"slot": 9}, usage=Usage(5, 4, 3, 2.0), text="9")
        return Reply(request.decision.legal.sample(stream(random.getrandbits(32), "noise")), queue_s=0.5)


def noisy(seat: int, rng: Stream) -> Agent:
    return Noise(make_game("cogz"))


def bare(attempt: Attempt) -> Attempt:
    """Without what a fault of an agent that answers from a journal does not say again."""
    return msgspec.structs.replace(
        attempt, think_s=0.0, queue_s=0.0, usage=None, text=None, model=None, finish_reason=None
    )


def played(seats: list[Seated], seed: int, on_fault: str) -> Episode:
    fallback, deadlines = Fallback(on_fault), Deadlines(decision_s=0.01, retry_s=0.01)
    return asyncio.run(play(make_game("cogz"), seed, seats, fallback=fallback, deadlines=deadlines))


@pytest.mark.parametrize("on_fault", ["baseline", "pass", "forfeit"])
def test_an_episode_comes_out_the_same_from_its_attempts_alone(on_fault: str) -> None:
    for seed in range(3):
        first = played([Seated("noise", noisy, deterministic=False)] * 2, seed, on_fault)
        again = played([recorded_seat("noise", first.attempts)] * 2, seed, on_fault)
        assert again.digest == first.digest
        assert [*map(bare, again.attempts)] == [*map(bare, first.attempts)]
        assert (again.ranks, again.forfeited) == (first.ranks, first.forfeited)
        fine = [(a.usage, a.text, a.think_s, a.queue_s) for a in first.attempts if a.accepted]
        assert [(a.usage, a.text, a.think_s, a.queue_s) for a in again.attempts if a.accepted] == fine


def _request(kind: str) -> Request:
    return Request(None, Decision(0, kind, None, None), ThinkTimer(MonotonicClock(), None))


def _asked(agent: RecordedAgent, kind: str) -> Reply | Awaitable[Reply]:
    return agent.decide(_request(kind))


def test_a_journal_that_does_not_fit_is_a_fault_that_says_so() -> None:
    said = Attempt(0, 0, 0, "lab", "agent", True, "brew", None, None, 0.0, 0.0, action_text='"brew"')
    agent = RecordedAgent([said])
    with pytest.raises(RecordedFaultError, match="expected a recorded decision of kind market, got lab"):
        _asked(agent, "market")
    with pytest.raises(RecordedFaultError, match="the journal has none"):
        _asked(agent, "lab")
    assert _asked(RecordedAgent([said]), "lab") == Reply("brew", think_s=0.0)


def test_an_agent_cannot_invent_a_kind_of_fault() -> None:
    class Sly:
        def decide(self, request: Request) -> Reply:
            raise RecordedFaultError("bad luck")

    def sly(seat: int, rng: Stream) -> Agent:
        return Sly()

    episode = played([Seated("sly", sly, deterministic=True)] * 2, 0, "baseline")
    assert {a.fault for a in episode.attempts} == {"exception", None}


def _said(text: str | None, fault: str | None = None, action: object = "brew") -> Attempt:
    detail = None if fault is None else "as it was"
    return Attempt(0, 0, 0, "lab", "agent", fault is None, action, fault, detail, 0.0, 0.0, text=text)


def test_a_models_text_is_read_again_and_not_what_was_made_of_it() -> None:
    agent = RecordedAgent([_said('Well: {"tile": "RB"} or not'), _said("nothing", "unreadable")], ModelText())
    first, second = _asked(agent, "lab"), _asked(agent, "lab")
    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    assert (first.action, first.payload) == (None, {"tile": "RB"})
    assert (second.action, second.payload, second.text) == (None, None, "nothing")


def test_a_programs_line_is_read_again_unless_it_was_cut_or_was_no_utf8() -> None:
    line = ProgramLine(make_game("cogz"))
    answer = _said('{"type": "action", "reply": {"a": 1}, "model": "p"}')
    told = _asked(RecordedAgent([answer], line), "lab")
    assert isinstance(told, Reply)
    assert (told.payload, told.model) == ({"a": 1}, "p")
    long = _said("x" * REPLY_CHARS)
    assert _asked(RecordedAgent([long], line), "lab") == Reply("brew", text=long.text, think_s=0.0)
    garbled = _said('{"type": "action", "reply": {"a": "\ufffd"}}', "unreadable", None)
    assert is_taken_on_trust(garbled, line)
    with pytest.raises(RecordedFaultError) as caught:
        _asked(RecordedAgent([garbled], line), "lab")
    assert (caught.value.fault, caught.value.detail) == ("unreadable", "as it was")


def test_a_text_that_is_gone_from_the_journal_is_a_fault_and_not_trusted() -> None:
    for said in (_said(None), msgspec.structs.replace(_said(None, "unreadable", None), usage=Usage(1))):
        assert not is_taken_on_trust(said, ModelText())
        with pytest.raises(RecordedFaultError) as caught:
            _asked(RecordedAgent([said], ModelText()), "lab")
        assert caught.value.detail == "expected the text of a recorded reply, got none"


def test_models_and_programs_have_readers_and_nobody_else() -> None:
    kinds = ("llm", "process", "python", "random", "baseline")
    found = readers([{"name": f"my_{kind}", "kind": kind} for kind in kinds], make_game("cogz"))
    assert set(found) == {"my_llm", "my_process"}
