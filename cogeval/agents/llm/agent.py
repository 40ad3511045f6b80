"""A model in a seat: asks in the game's words, waits its turn, and reads the reply.

Invariants: every request has a lease, and every lease is settled once, whatever happens; what may be on
the bill is booked at no less; waiting for a lease and between tries is not think time; nothing leaves here
with a key in it. Must not know any SDK.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from cogeval.agents.llm.connecting import check_connectable, connect
from cogeval.agents.llm.prices import cost_usd, price_of
from cogeval.agents.llm.prompts import PromptText
from cogeval.agents.llm.provider import (
    Call,
    Completion,
    Endpoint,
    Message,
    Provider,
    RefusedError,
    RetryableError,
)
from cogeval.agents.llm.reading import first_object
from cogeval.agents.llm.secrets import scrub
from cogeval.agents.llm.standing import Standing, told
from cogeval.core.agent import Price, Reply, Request, Resources, Usage
from cogeval.core.clock import ThinkTimer
from cogeval.core.game import AnyGame, Json, Seat, SeatResult
from cogeval.core.quota import Quota, ServiceRefusedError
from cogeval.core.rng import Stream

_FIRST_WAIT_S: Final = 1.0  # of the back-off, doubled each time
_LONGEST_WAIT_S: Final = 60.0
_LONGEST_ASKED_S: Final = 300.0  # that a service is waited for; one that asks for a day is asked again
_SPREAD_S: Final = 1.0  # over which seats that a service sent away come back
_CHARS_PER_TOKEN: Final = 4
_QUOTED_CHARS: Final = 8_000  # of a rejected reply that the model is shown again
_ERROR_CHARS: Final = 300  # of a failure's description that are kept
_CUT_OFF: Final = ("max_tokens", "length", "model_context_window_exceeded")
_log = logging.getLogger("cogeval.agents.llm")


class LlmSeat(msgspec.Struct, frozen=True):
    """A factory of model agents; a value that pickles."""

    place: str  # in the configuration, for messages
    game: AnyGame
    endpoint: Endpoint
    model: str
    account: str  # whose limits its requests count for
    prompt: PromptText
    json_style: str
    max_tokens: int  # of one reply
    sampling: Mapping[str, Json]  # fields of the request's body
    max_retries: int
    price: Price | None = None  # the pool's own
    listed_price: Price | None = None  # of the list that comes with cogeval

    def price_in(self, prices: Mapping[str, Price]) -> Price | None:
        """What the model costs in a run with these prices; None: nobody knows."""
        return self.price or price_of(self.model, prices) or self.listed_price

    def check_connectable(self) -> None:
        """Finds out, without a connection, whether this process could open one.

        Raises:
            InputError: when the SDK is not installed or the key not set.
        """
        check_connectable(self.endpoint, self.place)

    def bind(self, resources: Resources) -> BoundSeat:
        """Opens the connection that all its agents of this process share.

        Raises:
            InputError: when the SDK is not installed or the key not set.
        """
        price = self.price_in(resources.prices)
        if price is None:
            _log.warning("%s: no price is known for %s, so its cost counts as 0", self.place, self.model)
        return BoundSeat(self, connect(self.endpoint, self.place), resources.quota, price)

    def __call__(self, seat: Seat, rng: Stream) -> LlmAgent:  # noqa: ARG002 - the observation says which seat
        """Makes an agent with a connection of its own and no limits; a run binds the factory first."""
        return LlmAgent(self.bind(Resources()), rng, owns_connection=True)


class BoundSeat(msgspec.Struct, frozen=True):
    """The same factory, connected."""

    made: LlmSeat
    provider: Provider
    quota: Quota
    price: Price | None = None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    standing: Standing = msgspec.field(default_factory=Standing)

    def __call__(self, seat: Seat, rng: Stream) -> LlmAgent:  # noqa: ARG002 - the observation says which seat
        """Makes the agent of one seat."""
        return LlmAgent(self, rng)

    async def release(self) -> None:
        """Closes the connection."""
        await self.provider.close()


class LlmAgent:
    """Decides by asking a model.

    Args:
        bound: what it shares with the others.
        rng: its own stream; spreads its waits.
        owns_connection: True: nobody else uses it, and it is closed with the episode.
    """

    __slots__ = ("_bound", "_last", "_made", "_owns_connection", "_rng")

    def __init__(self, bound: BoundSeat, rng: Stream, *, owns_connection: bool = False) -> None:
        self._bound = bound
        self._owns_connection = owns_connection
        self._made = bound.made
        self._rng = rng
        self._last: Completion | None = None  # the reply that a hint is about

    async def decide(self, request: Request) -> Reply:
        """Asks the model; a reply without a JSON object is left for the episode to judge.

        Raises:
            RefusedError: the service does not answer this request, or gave no answer in all the tries.
            ServiceRefusedError: it has refused all of the first requests: that is no fault of the model's.
        """
        completion = self._last = await self._answer(self._call(request), request.timer)
        usage = self._usage(completion)
        return Reply(
            payload=first_object(completion.text),
            usage=usage,
            text=completion.text,
            model=completion.model,
            finish_reason=completion.finish_reason,
        )

    async def close(self, outcome: SeatResult | None) -> None:  # noqa: ARG002 - a model is not told
        """Puts the connection away at the end of the episode, if it is its own."""
        if self._owns_connection:
            await self._bound.provider.close()

    def _call(self, request: Request) -> Call:
        made = self._made
        text = made.prompt.around(made.game.prompt(request.observation))
        return Call(
            model=made.model,
            system=text.system,
            messages=self._conversation(text.user, request.hint),
            schema=made.game.reply_schema(request.decision),
            json_style=made.json_style,
            max_tokens=made.max_tokens,
            sampling=made.sampling,
        )

    def _conversation(self, user: str, hint: str | None) -> tuple[Message, ...]:
        """The question; after a reply that was no good, also that reply and what was wrong with it."""
        if hint is None or self._last is None:
            return (Message("user", user),)
        wrong = f"That reply was not accepted: {hint}"
        if self._last.finish_reason in _CUT_OFF:
            wrong += f"\nIt was cut off after {self._made.max_tokens} tokens: write less."
        wrong += "\nReply again, with one JSON object and nothing else."
        said = self._last.text[:_QUOTED_CHARS].strip()
        if not said:  # no service takes an empty turn
            return (Message("user", f"{user}\n\n{wrong}"),)
        return (Message("user", user), Message("assistant", said), Message("user", wrong))

    async def _answer(self, call: Call, timer: ThinkTimer) -> Completion:
        """Asks until there is an answer, with waits that grow."""
        tries = self._made.max_retries + 1
        for number in range(tries):
            outcome = await self._ask_once(call, timer, number)
            if isinstance(outcome, Completion):
                return outcome
            if number + 1 < tries:
                with timer.queued():
                    await self._bound.sleep(outcome.wait_s or 0.0)
        raise RefusedError(f"gave up after {tries} requests: {outcome}")

    async def _ask_once(self, call: Call, timer: ThinkTimer, number: int) -> Completion | RetryableError:
        """Makes one request under a lease; a failure says how long to wait before the next one."""
        quota = self._bound.quota
        with timer.queued():
            lease = await quota.lease(self._made.account, _tokens_of(call))
        call = msgspec.structs.replace(call, timeout_s=timer.remaining_s())
        # Until it is known better: the service works on a call that was given up or broke off, and is paid.
        tokens, dollars = lease.tokens, cost_usd(self._bound.price, _most_of(call))
        try:
            completion = self._clean(await self._bound.provider.complete(call))
            usage = self._usage(completion)
            counted = usage.tokens_in + usage.tokens_out
            if counted > 0:  # a service that counts nothing is not believed to be free
                tokens, dollars = counted, usage.cost_usd
            self._bound.standing.answered()
            return completion
        except RetryableError as error:
            if not error.may_cost:
                tokens, dollars = 0, 0.0
            wait_s = self._wait_s(number, error.wait_s)
            if error.is_limit:  # said before the lease goes back, or whoever waits for it slips through
                with timer.queued():
                    await quota.penalize(self._made.account, wait_s)
            return RetryableError(self._told(str(error)), wait_s, is_limit=error.is_limit)
        except RefusedError as error:
            if not error.may_cost:
                tokens, dollars = 0, 0.0
            said = self._told(str(error))
            if self._bound.standing.refused(error.status):
                made = self._made
                why = told(made.place, made.endpoint, made.model, error.status, said)
                raise ServiceRefusedError(self._scrubbed(why)) from None
            raise RefusedError(said, may_cost=error.may_cost, status=error.status) from None
        except Exception as error:  # noqa: BLE001 - whatever an SDK raises may quote a key
            raise RefusedError(self._told(f"{type(error).__name__}: {error}"), may_cost=True) from None
        finally:
            with timer.queued():
                await asyncio.shield(quota.settle(lease, tokens=tokens, cost_usd=dollars))

    def _wait_s(self, number: int, asked_s: float | None) -> float:
        """Seconds until the next try: what the service asked for, or growing, never all at once."""
        if asked_s is not None:
            return min(asked_s, _LONGEST_ASKED_S) + self._rng.unit() * _SPREAD_S
        longest_s = min(_LONGEST_WAIT_S, _FIRST_WAIT_S * 2.0 ** min(number, 16))
        return longest_s * (0.5 + 0.5 * self._rng.unit())

    def _usage(self, completion: Completion) -> Usage:
        usage = Usage(completion.tokens_in, completion.tokens_out, completion.tokens_cached)
        return msgspec.structs.replace(usage, cost_usd=cost_usd(self._bound.price, usage))

    def _clean(self, completion: Completion) -> Completion:
        """Without keys, which a server could send back, and lone surrogates, which no store takes."""
        return msgspec.structs.replace(
            completion,
            text=self._scrubbed(completion.text),
            model=None if completion.model is None else self._scrubbed(completion.model),
            finish_reason=None
            if completion.finish_reason is None
            else self._scrubbed(completion.finish_reason),
        )

    def _told(self, what: str) -> str:
        """A failure for people; shortened last, so that no piece of a key is left at the cut."""
        return " ".join(self._scrubbed(what).split())[:_ERROR_CHARS]

    def _scrubbed(self, text: str) -> str:
        variable = self._made.endpoint.api_key_env
        return scrub(text.encode("utf-8", "replace").decode(), () if variable is None else (variable,))


def tokens_of_text(num_chars: int) -> int:
    """How many tokens a text is taken for."""
    return num_chars // _CHARS_PER_TOKEN


def _most_of(call: Call) -> Usage:
    """What a call will take at most, estimated."""
    chars = len(call.system) + sum(len(message.text) for message in call.messages)
    return Usage(tokens_in=tokens_of_text(chars), tokens_out=call.max_tokens)


def _tokens_of(call: Call) -> int:
    """What a call will take at most, estimated: settled by what it took."""
    most = _most_of(call)
    return most.tokens_in + most.tokens_out
