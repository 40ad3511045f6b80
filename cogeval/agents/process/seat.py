"""A seat whose agent is a process: speaks the protocol of docs/agent-protocol.md with it.

Invariant: a process that has failed or was given up is never asked again; the next decision starts
another, which is told its own history. Starting is never think time. Must not know the episode's seed.
"""

from __future__ import annotations

import asyncio
import base64
import pickle
from collections.abc import Coroutine, Mapping
from typing import Any, Final

import msgspec

from cogeval.agents.process.child import Child, ProcessError
from cogeval.agents.process.launch import Launch
from cogeval.core.agent import Agent, AgentFactory, Reply, Request, Resources, Usage
from cogeval.core.game import AnyGame, Decision, Json, Seat, SeatResult
from cogeval.core.rng import Stream

PROTOCOL: Final = 1
MOST_LISTED: Final = 512  # legal actions that an observation lists; more are not sent
_MOST_STARTS: Final = 3  # in a row that may fail before the seat is given up
_SILENT_S: Final = 60.0  # that a decision without a budget may take
_BYE_S: Final = 0.5  # to exit after the last message
_LAST_S: Final = 0.5  # for the last messages to be taken
_MOST_IDLE: Final = 64  # processes that are kept for another episode


class Setup(msgspec.Struct, frozen=True):
    """What the runner of a Python agent is told beside the protocol."""

    target: str
    parameters: Mapping[str, Json]


class ProcessAgent(msgspec.Struct, frozen=True):
    """A factory of agents in processes."""

    launch: Launch
    game: AnyGame
    setup: Setup | None = None  # of a Python agent
    idle: list[Child] | None = None  # processes that wait for another episode; None: not shared

    def bind(self, resources: Resources) -> AgentFactory:  # noqa: ARG002 - shares processes, nothing else
        """The same, with processes that are kept between episodes if they may be."""
        return msgspec.structs.replace(self, idle=[]) if self.launch.reuse else self

    def __call__(self, seat: Seat, rng: Stream) -> Agent:
        """The agent of one seat; its process is started at the first decision."""
        return ProcessSeat(self, seat, rng)


class ProcessSeat:
    """The agent of one seat.

    Args:
        made_by: what to start, and for which game.
        seat: index of the seat.
        rng: the agent's own stream.
    """

    def __init__(self, made_by: ProcessAgent, seat: Seat, rng: Stream) -> None:
        self._made_by = made_by
        self._game = made_by.game
        self._child: Child | None = None
        self._given_up: list[Child] = []  # killed, and not yet known to have ended
        self._history: list[dict[str, Any]] = []
        self._num_failed_starts = 0
        self._last_failure = ""
        self._hello: dict[str, Any] = {
            "type": "hello",
            "protocol": PROTOCOL,
            "game": self._game.spec.name,
            "version": self._game.spec.version,
            "seat": seat,
            "seats": self._game.seats,
            "parameters": dict(self._game.parameters),
        }
        if made_by.setup is None:
            self._hello["random"] = rng.word() >> 11  # 53 bits: exact in every language's numbers
        else:
            self._hello["python"] = {**msgspec.to_builtins(made_by.setup), "stream": packed(rng)}

    async def decide(self, request: Request) -> Reply:
        """Asks the process, which is started if there is none."""
        child = self._child
        if child is None:
            with request.timer.queued():
                child = await self._started()
        elif child.has_spoken:
            await self._failed(child, "wrote a line that it was not asked for")
        observation = self._observation(request)
        entry = {"kind": request.decision.kind, "observation": observation["observation"], "answer": None}
        line = msgspec.json.encode(observation)
        self._history.append(entry)
        try:
            async with asyncio.timeout(_SILENT_S if request.budget_s is None else None):
                await child.write(line)
                answer = await child.read_line()
        except TimeoutError:
            await self._failed(child, f"said nothing for {_SILENT_S:g} s")
        except ProcessError as error:
            await self._failed(child, str(error))
        except asyncio.CancelledError:  # its time is over
            self._give_up(child)
            raise
        return self._reply(answer, entry)

    async def close(self, outcome: SeatResult | None) -> None:
        """Tells the process how the episode came out, and waits until no process is left."""
        child, self._child = self._child, None
        waits: list[Coroutine[Any, Any, object]] = [each.ended(0.0) for each in self._given_up]
        if child is not None:
            waits.append(self._part(child, outcome))
        await asyncio.gather(*waits)

    async def _part(self, child: Child, outcome: SeatResult | None) -> None:
        patience_s = 0.0
        try:
            async with asyncio.timeout(_LAST_S):
                if outcome is not None:
                    result = {"type": "result", **msgspec.to_builtins(outcome)}
                    await child.write(msgspec.json.encode(result))
                await child.write(b'{"type":"bye"}')
            idle = self._made_by.idle
            if idle is not None and child.can_reuse and outcome is not None and len(idle) < _MOST_IDLE:
                idle.append(child)
                return
            child.end_input()
            patience_s = _BYE_S
        except (ProcessError, TimeoutError):
            pass  # it does not listen: no more words are made
        finally:
            if not self._is_idle(child):
                await child.ended(patience_s)

    def _is_idle(self, child: Child) -> bool:
        return self._made_by.idle is not None and child in self._made_by.idle

    async def _started(self) -> Child:
        """A process that has answered `hello`: a kept one, or a fresh one."""
        idle = self._made_by.idle
        while idle:
            child = idle.pop()
            child.begin_episode()
            if not child.has_spoken and await self._greet(child) is None:
                return child
        if self._num_failed_starts >= _MOST_STARTS:
            raise ProcessError(f"failed to start {_MOST_STARTS} times in a row: {self._last_failure}")
        self._num_failed_starts += 1
        child = Child(self._made_by.launch)
        what = await self._greet(child)
        if what is not None:
            ending = await child.ended()
            self._last_failure = f"{what}; {ending}"
            raise ProcessError(self._last_failure)
        self._num_failed_starts = 0
        return child

    async def _greet(self, child: Child) -> str | None:
        """Says hello; gives what is wrong with the answer, None when nothing is."""
        hello = self._hello
        if self._history:
            hello = {**hello, "resumed": True, "history": self._history}
        start_s = self._made_by.launch.bounds.start_s
        try:
            async with asyncio.timeout(start_s):
                await child.write(msgspec.json.encode(hello))
                line = await child.read_line()
        except TimeoutError:
            self._give_up(child)
            return f"gave no answer to hello within {start_s:g} s"
        except ProcessError as error:
            self._given_up.append(child)
            return f"{error} before it answered hello"
        except asyncio.CancelledError:
            self._give_up(child)
            raise
        ready = _object(line)
        if ready is None or ready.get("type") != "ready":
            self._give_up(child)
            if ready is not None and ready.get("type") == "fault":
                return f"could not start: {ready.get('detail')}"
            said = line[:80].decode("utf-8", "replace")
            return f'expected {{"type": "ready"}} in answer to hello, got {said!r}'
        child.can_reuse = ready.get("reuse") is True
        self._child = child
        return None

    def _observation(self, request: Request) -> dict[str, Any]:
        decision, setup = request.decision, self._made_by.setup
        message: dict[str, Any] = {
            "type": "observation",
            "kind": decision.kind,
            "observation": self._game.observation_to_wire(request.observation),
            "budget_s": request.budget_s,
        }
        if setup is None:
            message["default"] = self._game.action_to_wire(decision.default)
            legal = self._listed(decision)
            if legal is not None:
                message["legal"] = legal
        else:
            message["decision"] = packed(decision)
        if request.hint is not None:
            message["hint"] = request.hint
        return message

    def _listed(self, decision: Decision[Any]) -> list[Json] | None:
        """The legal actions as JSON; None when they cannot be listed or are too many."""
        try:
            if len(decision.legal) > MOST_LISTED:
                return None
            return [self._game.action_to_wire(action) for action in decision.legal]
        except TypeError:
            return None

    def _reply(self, line: bytes, entry: dict[str, Any]) -> Reply:
        """Reads an answer; one that cannot be read is handed on as text, for the seat to judge."""
        message = _object(line) or {}
        # A program's line is its reply as received; a Python agent says itself what text it got.
        line_text = line.decode("utf-8", "replace") if self._made_by.setup is None else None
        if message.get("type") == "fault":
            raise ProcessError(str(message.get("detail")))
        if message.get("type") != "action":
            return Reply(text=line_text)
        entry["answer"] = {key: message[key] for key in ("action", "reply") if key in message}
        said: dict[str, Any] = {key: message.get(key) for key in ("text", "model", "finish_reason")}
        if line_text is not None:
            said["text"] = line_text
        try:
            if "usage" in message:
                said["usage"] = msgspec.convert(message["usage"], Usage)
            if "action" in message:
                return Reply(self._game.action_from_wire(message["action"]), **said)
        except Exception:  # noqa: BLE001 - whatever the game's reader raises on what is no action
            return Reply(text=said["text"])
        payload = message.get("reply")
        return Reply(payload=payload if isinstance(payload, dict) else None, **said)

    async def _failed(self, child: Child, what: str) -> None:
        """Raises the fault, with how the process ended."""
        self._given_up.append(child)
        self._child = None
        ending = await child.ended()
        raise ProcessError(f"{what}; {ending}")

    def _give_up(self, child: Child) -> None:
        child.kill()
        self._given_up.append(child)
        self._child = None


def packed(value: object) -> str:
    """A value of ours for the runner of a Python agent; nothing that it sends comes back this way."""
    return base64.b64encode(pickle.dumps(value, protocol=5)).decode("ascii")


def _object(line: bytes) -> dict[str, Any] | None:
    """A line as a JSON object; None when it is none."""
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
