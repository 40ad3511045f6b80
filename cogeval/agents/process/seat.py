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
from cogeval.agents.process.reading import fault_of, json_object, read_answer, retold
from cogeval.core.agent import Agent, AgentFactory, Reply, Request, Resources
from cogeval.core.game import AnyGame, Decision, Json, Seat, SeatResult
from cogeval.core.replies import describe
from cogeval.core.rng import Stream
from cogeval.errors import HostError, UnmadeError

PROTOCOL: Final = 1
MOST_LISTED: Final = 512  # legal actions that an observation lists; more are not sent
_MOST_STARTS: Final = 3  # in a row that may fail before the seat is given up
_SILENT_S: Final = 60.0  # that a decision without a budget may take
_BYE_S: Final = 0.5  # to exit after the last message
_LAST_S: Final = 0.5  # for the last messages to be taken
_KEPT_S: Final = 2.0  # for kept processes to answer `hello`, all that are tried together
_STDERR_CHARS: Final = 65_536  # that are kept of an episode's stderr
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

    async def release(self) -> None:
        """Ends the processes that were kept."""
        while self.idle:
            await self.idle.pop().ended(0.0)

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
        self._given_up: list[Child] = []  # never asked again, nor yet known to have ended
        self._history: list[dict[str, Any]] = []
        self._num_failed_starts = 0
        self._last_failure = ""
        self._stderr_left = _STDERR_CHARS
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

    async def fault_stderr(self) -> str:
        """What its processes have written to stderr since this was last asked, 64 kB an episode at most."""
        await asyncio.gather(*(child.ended(0.0) for child in self._given_up))
        children = self._given_up if self._child is None else [*self._given_up, self._child]
        said = "".join([await child.said() for child in children])
        said = said[max(0, len(said) - self._stderr_left) :]
        self._stderr_left -= len(said)
        return said

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
        idle, now = self._made_by.idle, asyncio.get_running_loop().time
        until = now() + _KEPT_S
        while idle and (left_s := until - now()) > 0:
            child = idle.pop()
            if await self._greet(child, left_s, is_kept=True) is None:
                return child
        if self._num_failed_starts >= _MOST_STARTS:
            raise UnmadeError(f"{self._unmade} {_MOST_STARTS} times in a row: {self._last_failure}")
        self._num_failed_starts += 1
        self._last_failure = "was given up as it started"
        try:
            child = Child(self._made_by.launch)
            what = await self._greet(child, self._made_by.launch.bounds.start_s)
        except Exception as error:
            self._last_failure = describe(error)
            raise
        if what is not None:
            self._last_failure = what
            raise UnmadeError(f"{self._unmade}: {self._last_failure}")
        self._num_failed_starts = 0
        return child

    @property
    def _unmade(self) -> str:
        what = "program could not be started" if self._made_by.setup is None else "agent could not be made"
        return f"the {what}"

    async def _greet(self, child: Child, start_s: float, *, is_kept: bool = False) -> str | None:
        """Says hello; gives what is wrong with the answer, None when nothing is: then the process is ours.

        One that is not is killed and waited for at the end of the episode, whatever happens meanwhile.
        """
        self._given_up.append(child)
        try:
            what = await self._answered(child, start_s, is_kept=is_kept)
            if what is None:
                self._given_up.remove(child)
                self._child = child
            return what
        finally:
            if self._child is not child:
                child.kill()

    async def _answered(self, child: Child, start_s: float, *, is_kept: bool) -> str | None:
        """What is wrong with a process's answer to hello."""
        if is_kept and child.has_spoken:
            return "wrote a line that it was not asked for"
        hello = self._hello
        if self._history:
            hello = {**hello, "resumed": True, "history": self._history}
        try:
            async with asyncio.timeout(start_s):
                if is_kept:
                    await child.begin_episode()
                await child.write(msgspec.json.encode(hello))
                line = await child.read_line()
        except TimeoutError:
            return f"gave no answer to hello within {start_s:g} s; {await child.ended(0.0)}"
        except ProcessError as error:
            ending = await child.ended()
            if ending.is_ours:
                raise HostError(f"a process for an agent {ending}") from None
            return str(ending) if ending.unstarted else f"{error} before it answered hello; {ending}"
        ready = json_object(line)
        if ready is None or ready.get("type") != "ready":
            child.kill()
            ending = await child.ended()
            if ready is not None and ready.get("type") == "fault":
                return self._scrubbed(fault_of(ready))
            said = self._scrubbed(line.decode("utf-8", "replace"))[:80]
            return f'expected {{"type": "ready"}} in answer to hello, got {said!r}; {ending}'
        child.can_reuse = ready.get("reuse") is True
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
            message["seed"] = request.seed
            if request.memory:
                message["memory"] = base64.b64encode(request.memory).decode("ascii")
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
        """Reads an answer, and keeps it for a process that takes over."""
        said = json_object(line) or {}
        try:
            message = self._made_by.launch.cleaned(said)
            is_clean = message is said or message == said
            text = line if is_clean else msgspec.json.encode(message)  # a secret may be written in many ways
        except RecursionError:  # so deep that nobody can tell what is in it
            message, text = {}, line
        entry["answer"] = retold(message)
        # A program's line is its reply as received; a Python agent says itself what text it got.
        line_text = None
        if self._made_by.setup is None:
            line_text = self._scrubbed(text.decode("utf-8", "replace"))
        return read_answer(self._game, message, line_text)

    def _scrubbed(self, text: str) -> str:
        return self._made_by.launch.scrubbed(text)

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
