"""`cogeval try`: one episode in this process, with a transcript of what one seat is asked and answers.

Invariant: the seat is asked as a run would ask it: same game, deadlines, fallback and stream. Nothing is
recorded, and no cluster is started.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import signal
import threading
from collections.abc import Iterator
from types import FrameType

from cogeval.cli.arguments import Arguments
from cogeval.cli.picking import Picked, local_resources, pick, text_for
from cogeval.cli.transcript import Enough, JsonTranscript, TextTranscript, Transcript
from cogeval.core.agent import bound, released
from cogeval.core.episode import play
from cogeval.errors import EpisodeError, InputError, RunError

_SEED = 2**63  # seeds are signed and have 64 bits


def try_agent(arguments: Arguments) -> int:
    """Plays one episode and prints its transcript as it happens."""
    picked = pick(arguments)
    game = picked.experiment.game
    seat = whole(arguments, "--seat", 0, 0, game.seats - 1)
    seed = whole(arguments, "--seed", picked.experiment.config.seed, -_SEED, _SEED - 1)
    decisions = None
    if arguments.switch("--decisions"):
        decisions = whole(arguments, "--decisions", 1, 1, None)
    form = JsonTranscript if arguments.switch("--json") else TextTranscript
    names = [picked.agent.name if i == seat else picked.other.name for i in range(game.seats)]
    text_of = functools.partial(text_for, picked)
    transcript = form(game, seed, seat, names, text_of, decisions, whole=arguments.switch("--prompt"))
    try:
        with _interruptible(), contextlib.suppress(Enough):
            asyncio.run(_play(picked, seed, seat, transcript))
    except EpisodeError as error:
        if isinstance(error.__cause__, OSError):  # of the transcript: nobody reads on, or a full disk
            raise error.__cause__ from None
        raise
    except KeyboardInterrupt:
        transcript.ended(None)
        raise
    return 0


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Ctrl-C stops what runs at once; asyncio's own way would wait for an agent that never awaits."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupt(signum: int, frame: FrameType | None) -> None:  # noqa: ARG001 - a handler's arguments
    raise KeyboardInterrupt


async def _play(picked: Picked, seed: int, seat: int, transcript: Transcript) -> None:
    experiment = picked.experiment
    resources = local_resources(experiment)
    seats = [bound(picked.other, resources)] * experiment.game.seats
    seats[seat] = bound(picked.agent.seated, resources)
    transcript.started()
    try:
        episode = await play(
            experiment.game,
            seed,
            seats,
            fallback=experiment.fallback,
            deadlines=experiment.deadlines,
            watcher=transcript,
        )
    except RunError:  # enough was seen, or the money is spent
        transcript.ended(None)
        raise
    finally:
        for seated in {id(seated.agent): seated for seated in seats}.values():
            await released(seated.agent)
    transcript.ended(episode)


def whole(arguments: Arguments, flag: str, default: int, low: int, high: int | None) -> int:
    """The whole number that a flag gives.

    Args:
        arguments: of the command.
        flag: its name.
        default: what it is when the flag is not there.
        low: least value.
        high: greatest value; None: any.

    Raises:
        InputError: anything else.
    """
    written = arguments.value(flag)
    if written is None:
        return default
    try:
        number = int(written)
    except ValueError:
        number = None
    if number is None or number < low or (high is not None and number > high):
        bounds = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise InputError(f"{flag}: expected a whole number {bounds}, got {written!r}")
    return number
