"""One seat of one episode: asks its agent, judges the reply, and retries once with a hint.

Invariant: nothing that an agent does, raises or returns leaves this module as an exception; it
becomes an attempt with a fault. Only think time is charged. Must not know the other seats.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

import msgspec

from cogeval.core.agent import Agent, Reply, Request, Scripted, Seated
from cogeval.core.clock import Clock, ThinkTimer
from cogeval.core.game import AnyGame, Decision, Seat, SeatResult
from cogeval.core.quota import QuotaError
from cogeval.core.record import FAULTS, ActionCodec, Attempt
from cogeval.core.replies import DETAIL_CHARS, describe, malformed, too_late
from cogeval.core.rng import Stream, stream
from cogeval.core.threads import in_thread
from cogeval.errors import ActionError, HostError, RecordedFaultError

REPLY_CHARS = 1_000_000  # of a reply's text that are kept
_NAME_CHARS = 200  # of a model's name and a finish reason that are kept
_ACTION_CHARS = 65_536  # of an action as JSON; a longer one is no action
_RETRIED = ("unreadable", "illegal")  # faults that a hint can help
_STDERR_CHARS = 65_536  # of what an agent's process wrote to stderr that are kept
_CLOSE_S = 2.0  # that an agent may take to put its things away, or to say what was written to stderr
_WAKE_S = 0.001  # least wait before a deadline is looked at again: a queued seat keeps its rest of time


class Deadlines(msgspec.Struct, frozen=True):
    """Time limits of an episode, in seconds."""

    decision_s: float = 60.0  # think time of a first attempt
    retry_s: float = 30.0  # think time of the retry
    episode_timeout_s: float = 1800.0
    play_fraction: float = 0.6  # of episode_timeout_s after which the episode is ended between phases
    min_batch_spacing_s: float = 0.0  # least time between two batches of model calls in one episode


class _Verdict(msgspec.Struct, frozen=True, gc=False):
    """A reply, judged."""

    action: Any
    fault: str | None
    detail: str | None
    action_text: str | None = None
    stderr: str | None = None


def _failure(error: BaseException) -> _Verdict:
    """Blames the agent; but Ctrl-C, which only the main thread ever gets, is the user's."""
    if isinstance(error, KeyboardInterrupt) and threading.current_thread() is threading.main_thread():
        raise error
    if isinstance(error, RecordedFaultError) and error.fault in FAULTS:
        return _Verdict(None, error.fault, error.detail)
    return _Verdict(None, "exception", describe(error))


def _cut(text: str | None, most: int) -> str | None:
    return text if text is None or len(text) <= most else text[:most]


def agent_stream(seed: int, seat: Seat, replicate: int = 0) -> Stream:
    """The random stream of one seat's agent; replicates of an episode differ in it."""
    return stream(seed, "agent", seat, replicate) if replicate else stream(seed, "agent", seat)


def request_stream(seed: int, seat: Seat, replicate: int = 0) -> Stream:
    """Where `Request.seed` comes from: another stream than the agent's own, which it draws from itself."""
    return stream(seed, "request", seat, replicate)


def _heard_out(task: asyncio.Task[Any]) -> None:
    """Hears how a question ended that nobody waits for any more, or asyncio would complain of it."""
    if not task.cancelled():
        task.exception()


class SeatPlay:
    """One seat and its agent.

    Args:
        game: rules and parameters.
        seed: the episode's seed; goes to the game's own baselines only.
        seat: index of the seat.
        seated: who sits here.
        replicate: 0-based number of the repetition of the episode.
        deadlines: time limits.
        clock: where time comes from.
        codec: action codec of the game.
        heard: told of every attempt as soon as it is judged.
    """

    __slots__ = (
        "_agent", "_born_dead", "_clock", "_codec", "_deadlines", "_draws", "_game", "_heard", "_memory",
        "_scripted", "_seat", "_seated", "_seed", "_sync",
    )  # fmt: skip

    def __init__(
        self,
        game: AnyGame,
        seed: int,
        seat: Seat,
        seated: Seated,
        replicate: int,
        deadlines: Deadlines,
        clock: Clock,
        codec: ActionCodec,
        heard: Callable[[Attempt], None] | None = None,
    ) -> None:
        self._game = game
        self._seed = seed
        self._seat = seat
        self._seated = seated
        self._deadlines = deadlines
        self._clock = clock
        self._codec = codec
        self._heard = heard
        self._scripted = seated.agent.name if isinstance(seated.agent, Scripted) else None
        self._agent: Agent | None = None
        self._born_dead: _Verdict | None = None
        self._sync = seated.deterministic
        self._memory = b""
        if not isinstance(seated.agent, Scripted):
            self._draws = request_stream(seed, seat, replicate)
            try:
                self._agent = seated.agent(seat, agent_stream(seed, seat, replicate))
                self._sync = seated.deterministic and not inspect.iscoroutinefunction(self._agent.decide)
            except BaseException as error:  # noqa: BLE001 - an agent's failure costs its own seat only
                verdict = _failure(error)
                what = f"the agent could not be made: {verdict.detail}"[:DETAIL_CHARS]
                self._born_dead = msgspec.structs.replace(verdict, detail=what)

    @property
    def is_model(self) -> bool:
        """True when this seat calls a model."""
        return self._seated.is_model

    def begin(
        self, state: Any, decision: Decision[Any], phase: int
    ) -> list[Attempt] | Coroutine[Any, Any, list[Attempt]]:
        """Starts a decision.

        Args:
            state: the state that everybody decides on.
            decision: this seat's decision.
            phase: 0-based.

        Returns:
            The attempts, the last of them accepted unless the seat needs its fallback; or, for a
            seat that takes time, a coroutine that gives them.
        """
        if self._scripted is not None:
            started = self._clock.now()
            action = self._game.baseline(self._scripted, state, self._seat, self._seed)
            think_s = self._clock.now() - started
            action, text = self._codec.canonical(action)
            attempt = Attempt(
                phase, self._seat, 0, decision.kind, "agent", True, action, None, None, think_s, 0.0,
                action_text=text,
            )  # fmt: skip
            if self._heard is not None:
                self._heard(attempt)
            return [attempt]
        if self._born_dead is not None:
            return [self._attempt(decision, phase, 0, self._born_dead, None, 0.0, 0.0)]
        if self._sync:
            return self._decide_now(state, decision, phase)
        return self._decide(state, decision, phase)

    @property
    def wants_closing(self) -> bool:
        """True when the agent is told of its episode's end."""
        return hasattr(self._agent, "close")

    async def close(self, outcome: SeatResult | None) -> None:
        """Tells the agent that its episode is over; what it does about it cannot hurt or hold the others."""
        closing = getattr(self._agent, "close", None)
        if closing is None:
            return
        with contextlib.suppress(Exception, SystemExit, GeneratorExit):
            await asyncio.wait_for(closing(outcome), _CLOSE_S)

    def _decide_now(
        self, state: Any, decision: Decision[Any], phase: int
    ) -> list[Attempt] | Coroutine[Any, Any, list[Attempt]]:
        """A deterministic plain function: called here, timed, never timed out."""
        assert self._agent is not None
        attempts: list[Attempt] = []
        observation, hint = self._game.observe(state, self._seat), None
        for number in (0, 1):
            timer = ThinkTimer(self._clock, None)
            reply: object = None
            verdict = None
            try:
                reply = self._agent.decide(self._request(observation, decision, timer, hint, None))
            except BaseException as error:  # noqa: BLE001 - nothing is awaited here: it is the agent's own
                verdict = _failure(error)
            queue_s, think_s = timer.queue_s, timer.think_s
            if verdict is None:
                if not isinstance(reply, Reply) and inspect.isawaitable(reply):
                    self._sync = False
                    return self._decide(state, decision, phase, reply)
                verdict = self._judge(state, reply)
            attempts.append(self._attempt(decision, phase, number, verdict, reply, think_s, queue_s))
            if verdict.fault not in _RETRIED:
                break
            hint = verdict.detail
        return attempts

    async def _decide(
        self, state: Any, decision: Decision[Any], phase: int, begun: Awaitable[Any] | None = None
    ) -> list[Attempt]:
        """An agent that takes time: asked in a task of its own and given up at its deadline."""
        attempts: list[Attempt] = []
        observation, hint = self._game.observe(state, self._seat), None
        for number, limit_s in enumerate((self._deadlines.decision_s, self._deadlines.retry_s)):
            budget_s = None if self._seated.deterministic else limit_s
            timer = ThinkTimer(self._clock, budget_s)
            if begun is None:
                request = self._request(observation, decision, timer, hint, budget_s)
            else:  # it was asked already
                request = Request(observation, decision, timer, hint, budget_s)
            reply, verdict = await self._ask(request, begun)
            think_s, queue_s = timer.think_s, timer.queue_s
            begun = None
            if verdict is None:
                verdict = self._judge(state, reply)
            if verdict.fault is not None and (stderr := await self._stderr()):
                verdict = msgspec.structs.replace(verdict, stderr=stderr)
            attempts.append(self._attempt(decision, phase, number, verdict, reply, think_s, queue_s))
            if verdict.fault not in _RETRIED:
                break
            hint = verdict.detail
        return attempts

    def _request(
        self,
        observation: Any,
        decision: Decision[Any],
        timer: ThinkTimer,
        hint: str | None,
        budget_s: float | None,
    ) -> Request:
        return Request(observation, decision, timer, hint, budget_s, self._memory, self._draws.word())

    async def _ask(self, request: Request, begun: Awaitable[Any] | None) -> tuple[object, _Verdict | None]:
        """Waits for one reply; a verdict is given when there is none to judge."""
        task = asyncio.ensure_future(self._call(request, begun))
        try:
            while not (is_done := task.done()) or request.budget_s is not None:
                left_s = self._left_s(request.timer)
                # A reply that comes too late is none: an agent that never awaits is done when it is seen.
                if left_s is not None and left_s <= 0:
                    return None, self._timeout(request)
                if is_done:
                    break
                # A wait that is not thinking only moves the deadline back, so waking at the earliest
                # possible one and looking again is exact.
                await asyncio.wait({task}, timeout=None if left_s is None else max(left_s, _WAKE_S))
            if task.cancelled():
                return None, _failure(asyncio.CancelledError("the agent cancelled itself"))
            return task.result()
        finally:
            task.cancel()  # no-op when done; an agent that ignores it is left behind, not waited for
            task.add_done_callback(_heard_out)

    async def _stderr(self) -> str | None:
        """What the agent's process wrote to stderr before this fault; None: it has none, or does not say."""
        asking = getattr(self._agent, "fault_stderr", None)
        if asking is not None:
            with contextlib.suppress(Exception, SystemExit, GeneratorExit):
                said = await asyncio.wait_for(asking(), _CLOSE_S)
                return said[-_STDERR_CHARS:] if isinstance(said, str) else None
        return None

    def _left_s(self, timer: ThinkTimer) -> float | None:
        """Seconds until the decision is given up; None: never.

        Waits are not charged to the seat, but one that never ends must not hold the episode for ever.
        """
        remaining_s = timer.remaining_s()
        if remaining_s is None:
            return None
        return min(remaining_s, self._deadlines.episode_timeout_s - timer.think_s - timer.queue_s)

    def _timeout(self, request: Request) -> _Verdict:
        assert request.budget_s is not None
        if request.timer.think_s >= request.budget_s:
            return _Verdict(None, "timeout", too_late(request.budget_s))
        limit_s = self._deadlines.episode_timeout_s
        return _Verdict(None, "timeout", too_late(limit_s, with_waits=True))

    async def _call(self, request: Request, begun: Awaitable[Any] | None) -> tuple[object, _Verdict | None]:
        assert self._agent is not None
        try:
            if begun is not None:
                return await begun, None
            if inspect.iscoroutinefunction(self._agent.decide):
                return await self._agent.decide(request), None
            reply, verdict = await in_thread(self._agent.decide, request, _failure)
            if verdict is None and not isinstance(reply, Reply) and inspect.isawaitable(reply):
                reply = await reply
            return reply, verdict
        except (asyncio.CancelledError, QuotaError, HostError):  # money and machine are not the seat's
            raise
        except BaseException as error:  # noqa: BLE001 - an agent's failure costs its own seat only
            return None, _failure(error)

    def _judge(self, state: Any, reply: object) -> _Verdict:
        """Reads a reply as a legal action, or says why it is none."""
        if not isinstance(reply, Reply):
            return _Verdict(None, "unreadable", f"expected a Reply, got {type(reply).__name__}")
        if wrong := malformed(reply):
            return _Verdict(None, "unreadable", wrong)
        try:
            action = reply.action
            if action is None:
                if not isinstance(reply.payload, Mapping):
                    return _Verdict(
                        None, "unreadable", "expected an action or a JSON object as the reply, got neither"
                    )
                action = self._game.parse_reply(state, self._seat, reply.payload)
            action, text = self._codec.canonical(action)
            if len(text) > _ACTION_CHARS:
                what = (
                    f"expected an action of at most {_ACTION_CHARS:,} characters as JSON, got {len(text):,}"
                )
                return _Verdict(None, "unreadable", what)
            reason = self._game.why_illegal(state, self._seat, action)
            if reason is not None:
                why = self._game.explain_illegal(state, self._seat, action, reason)
                return _Verdict(action, "illegal", why[:DETAIL_CHARS], text)
        except ActionError as error:
            return _Verdict(None, "unreadable", error.hint[:DETAIL_CHARS])
        except BaseException as error:  # noqa: BLE001 - an ill-typed action may break its reader in any way
            what = f"expected an action of {self._game.spec.name}, got {type(reply.action).__name__}"
            return _Verdict(None, "unreadable", f"{what}: {describe(error)}"[:DETAIL_CHARS])
        if reply.memory is not None:  # of an accepted reply: a retry starts from where the first try did
            self._memory = reply.memory
        return _Verdict(action, None, None, text)

    def _attempt(
        self,
        decision: Decision[Any],
        phase: int,
        number: int,
        verdict: _Verdict,
        reply: object,
        think_s: float,
        queue_s: float,
    ) -> Attempt:
        if not isinstance(reply, Reply) or (verdict.fault == "unreadable" and malformed(reply)):
            reply = _NO_REPLY
        attempt = Attempt(
            phase, self._seat, number, decision.kind, "agent", verdict.fault is None, verdict.action,
            verdict.fault, verdict.detail, think_s if reply.think_s is None else reply.think_s,
            queue_s + reply.queue_s, reply.usage, _cut(reply.text, REPLY_CHARS),
            _cut(reply.model, _NAME_CHARS), _cut(reply.finish_reason, _NAME_CHARS),
            verdict.action_text, verdict.stderr,
        )  # fmt: skip
        if self._heard is not None:
            self._heard(attempt)
        return attempt


_NO_REPLY = Reply()
