"""Runs a Python agent at the far end of the protocol: `python -m cogeval.agents.process.runner`.

The agent is made, asked and closed as it would be inside a worker, with its own stream in the same state,
so that a deterministic one decides the same in both places. What it prints goes to stderr.

Invariant: one process, one agent at a time; what the agent raises is told, not died of. Unpickles what the
worker sends (a decision, a stream), which is what started it.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import inspect
import os
import pickle
import sys
import traceback
from typing import Any, BinaryIO, Final

import msgspec

from cogeval.agents.locating import locate
from cogeval.agents.python import seat_agent
from cogeval.core.agent import Agent, Reply, Request
from cogeval.core.clock import MonotonicClock, ThinkTimer
from cogeval.core.game import AnyGame, SeatResult
from cogeval.games import make_game

_FRAMES: Final = -12  # of a traceback, the innermost


class Runner:
    """One agent and its event loop.

    Args:
        hello: the message that opened the episode.
        loop: where an asynchronous agent runs.
    """

    def __init__(self, hello: dict[str, Any], loop: asyncio.AbstractEventLoop) -> None:
        setup = hello["python"]
        self._loop = loop
        self._game: AnyGame = make_game(hello["game"], **hello["parameters"])
        self._outcome: SeatResult | None = None
        rng = unpacked(setup["stream"])
        self._agent: Agent = seat_agent(
            locate(setup["target"]), self._game, hello["seat"], rng, setup["parameters"]
        )
        resume = getattr(self._agent, "resume", None)
        if hello.get("resumed") and callable(resume):
            read = self._game.observation_from_wire
            resume([(read(entry["observation"]), entry["answer"]) for entry in hello["history"]])

    def decide(self, message: dict[str, Any]) -> dict[str, Any]:
        """Answers one observation."""
        timer = ThinkTimer(MonotonicClock(), message["budget_s"])
        request = Request(
            self._game.observation_from_wire(message["observation"]),
            unpacked(message["decision"]),
            timer,
            message.get("hint"),
            message["budget_s"],
            base64.b64decode(message.get("memory", "")),
            message.get("seed"),
        )
        reply: Any = self._agent.decide(request)
        if inspect.isawaitable(reply):
            reply = self._loop.run_until_complete(_awaited(reply))
        if not isinstance(reply, Reply):
            return {"type": "unreadable", "detail": f"expected a Reply, got {type(reply).__name__}"}
        answer: dict[str, Any] = {"type": "action"}
        if reply.action is not None:
            answer["action"] = self._game.action_to_wire(reply.action)
        elif reply.payload is not None:
            answer["reply"] = dict(reply.payload)
        for name in ("text", "model", "finish_reason", "usage", "memory"):
            if (value := getattr(reply, name)) is not None:
                answer[name] = value
        return answer

    def result(self, message: dict[str, Any]) -> None:
        """Keeps the outcome for the end."""
        fields = {name: message[name] for name in SeatResult.__struct_fields__}
        self._outcome = msgspec.convert(fields, SeatResult)

    def close(self) -> None:
        """Tells the agent that the episode is over."""
        closing = getattr(self._agent, "close", None)
        if closing is not None:
            with contextlib.suppress(Exception, SystemExit):
                self._loop.run_until_complete(closing(self._outcome))


async def _awaited(reply: Any) -> object:
    return await reply


def unpacked(text: str) -> Any:
    """A value that the worker packed."""
    return pickle.loads(base64.b64decode(text))  # noqa: S301 - from the worker, which started this process


def fault(error: BaseException) -> dict[str, Any]:
    """What is said of an error of the agent's; stderr gets the traceback."""
    try:
        traceback.print_exception(error, limit=_FRAMES)
        return {"type": "fault", "detail": f"{type(error).__name__}: {error}"}
    except Exception:  # noqa: BLE001 - the error's own words may fail
        return {"type": "fault", "detail": type(error).__name__}


def serve(lines: BinaryIO, out: BinaryIO) -> None:
    """Speaks the protocol until the input ends or the agent cannot be made.

    Args:
        lines: messages, one a line.
        out: answers, one a line.
    """
    loop = asyncio.new_event_loop()
    runner: Runner | None = None

    def answer(message: dict[str, Any]) -> None:
        out.write(msgspec.json.encode(message) + b"\n")
        out.flush()

    for line in lines:
        message = msgspec.json.decode(line)
        kind = message["type"]
        try:
            if kind == "hello":
                runner = Runner(message, loop)
                answer({"type": "ready", "reuse": True})
            elif runner is not None and kind == "observation":
                answer(runner.decide(message))
            elif runner is not None and kind == "result":
                runner.result(message)
            elif runner is not None and kind == "bye":
                runner.close()
                runner = None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - told, not died of
            answer(fault(error))
    loop.close()


def main() -> None:
    """Serves stdin and stdout, and turns what the agent prints to stderr."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with os.fdopen(os.dup(0), "rb") as lines, out:
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)  # an agent that reads from its terminal reads nothing, not our messages
        os.close(nothing)
        with contextlib.suppress(BrokenPipeError):
            serve(lines, out)
    sys.stdout.flush()


if __name__ == "__main__":
    main()
