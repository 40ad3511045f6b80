"""`cogeval check-agent`: the shared check of an agent, and what to do about what it finds.

Invariant: it needs nothing but a plain install. An agent that hangs holds up nobody: the check runs in a
thread of its own, and who watches it says where it was.
"""

from __future__ import annotations

import asyncio
import math
import shlex
import sysconfig
import threading
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import cogeval
from cogeval.cli.arguments import Arguments
from cogeval.cli.mending import words_for
from cogeval.cli.output import counted, print_json, show
from cogeval.cli.picking import Picked, local_resources, pick
from cogeval.cli.program import typed
from cogeval.cli.questioning import Questions, announced, within
from cogeval.cli.trying import whole
from cogeval.core.clock import MonotonicClock, ThinkTimer
from cogeval.errors import InputError
from cogeval.report.layout import escaped, literal
from cogeval.testing.agent_checks import AgentCheckError, check_agent

_LIMIT_S: Final = 10.0  # think time of a decision of an agent that is no model
_EPISODES: Final = 3
_LOOK_S: Final = 0.05  # between two looks at an agent that thinks
_NOT_OWN: Final = (
    str(Path(cogeval.__file__).parent),
    *(sysconfig.get_path(n) for n in ("stdlib", "platstdlib")),
)
_GRACE_S: Final = 1.0  # over its time before it counts as hanging
_STDERR_LINES: Final = 12  # of stderr that are shown, the last ones


@dataclass(slots=True)
class _Progress:
    """How far the check is; written by its thread, read by the watcher."""

    asked: int = 0
    place: str = ""
    timer: ThinkTimer | None = None
    outcome: list[BaseException | None] = field(default_factory=list)

    def ask(self, place: str, timer: ThinkTimer) -> None:
        """Notes that the agent is asked now."""
        self.asked += 1
        self.place, self.timer = place, timer


def check_agent_command(arguments: Arguments) -> int:
    """Checks one agent and says what is wrong with it.

    Returns:
        1 when something is wrong.
    """
    picked = pick(arguments)
    seated = picked.agent.seated
    limit_s = _limit_s(arguments, picked)
    episodes = whole(arguments, "--episodes", 1 if seated.is_model else _EPISODES, 1, 1000)
    progress, seeds, as_json = _Progress(), range(episodes - 1), arguments.switch("--json")
    questions = None
    if seated.is_model and not seated.deterministic:  # as a run asks it, with a second try
        questions = Questions(picked, seeds)
        if not as_json:
            show(announced(len(questions), questions.price()))
    error = _watched(picked, seeds, limit_s, progress, questions)
    if error is not None and not isinstance(error, AgentCheckError):
        if questions is not None and questions.answers.usd and not as_json:
            show(*questions.answers.lines())
        raise error
    if as_json:
        print_json(_as_json(picked, progress, episodes, error, questions))
    else:
        _explain(arguments, picked, progress, episodes, error, questions)
    if error is not None and error.__cause__ is not None and arguments.switch("--debug"):
        traceback.print_exception(error.__cause__)
    return 0 if error is None else 1


def _watched(
    picked: Picked, seeds: range, limit_s: float, progress: _Progress, questions: Questions | None
) -> BaseException | None:
    """Runs the check in a thread that is left behind when the agent hangs; gives what was wrong."""

    def check() -> None:
        outcome: BaseException | None = None
        try:
            if questions is None:
                _check(picked, seeds, limit_s, progress)
            else:
                outcome = asyncio.run(_question(questions, picked, limit_s, progress))
        except BaseException as error:  # noqa: BLE001 - it is raised again where it can be reported
            outcome = error
        progress.outcome.append(outcome)

    thread = threading.Thread(target=check, name="cogeval-check", daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_LOOK_S)
        timer = progress.timer
        if not progress.outcome and timer is not None and timer.think_s > limit_s + _GRACE_S:
            return AgentCheckError("late", progress.place, f"expected a reply within {limit_s:g} s, got none")
    return progress.outcome[0]


def _check(picked: Picked, seeds: range, limit_s: float, progress: _Progress) -> None:
    seated = picked.agent.seated
    check_agent(
        seated.agent,
        picked.experiment.game,
        seeds,
        deterministic=seated.deterministic,
        limit_s=limit_s,
        resources=local_resources(picked.experiment),
        asked=progress.ask,
    )


async def _question(
    questions: Questions, picked: Picked, limit_s: float, progress: _Progress
) -> AgentCheckError | None:
    """Asks a model; the watcher sees that the loop still turns, or for how long it has not."""
    asking = asyncio.ensure_future(questions.ask(within(picked.experiment.deadlines, limit_s)))
    while not asking.done():
        progress.timer = ThinkTimer(MonotonicClock(), None)
        progress.asked = questions.answers.decisions
        progress.place = f"after {counted(progress.asked, 'question')}"
        await asyncio.wait({asking}, timeout=_LOOK_S)
    progress.asked = questions.answers.decisions
    asking.result()
    return questions.answers.failure


def _limit_s(arguments: Arguments, picked: Picked) -> float:
    written = arguments.value("--limit")
    deadline_s = picked.experiment.deadlines.decision_s
    if written is None:
        return deadline_s if picked.agent.seated.is_model else min(_LIMIT_S, deadline_s)
    try:
        limit_s = float(written)
    except ValueError:
        limit_s = math.nan
    if not 0 < limit_s < math.inf:
        raise InputError(f"--limit: expected seconds above 0, got {written!r}")
    return limit_s


def _as_json(
    picked: Picked,
    progress: _Progress,
    episodes: int,
    error: AgentCheckError | None,
    questions: Questions | None,
) -> dict[str, Any]:
    failure = None
    if error is not None:
        what, mend = words_for(picked.agent)[error.kind]
        failure = {
            "kind": error.kind, "place": error.place, "found": error.what, "what": what, "mend": mend,
            "stderr": error.stderr or None,
        }  # fmt: skip
    return {
        "agent": picked.agent.describe(),
        "game": picked.experiment.game.spec.name,
        "passed": error is None,
        "episodes": episodes,
        "decisions": progress.asked,
        "replies": None if questions is None else questions.answers.as_json(),
        "failure": failure,
    }


def _explain(
    arguments: Arguments,
    picked: Picked,
    progress: _Progress,
    episodes: int,
    error: AgentCheckError | None,
    questions: Questions | None,
) -> None:
    name, game = picked.agent.name, picked.experiment.game.spec.name
    asked = f"{counted(progress.asked, 'question')}, {counted(episodes, 'random episode')} of {game}"
    if error is None:
        is_same = picked.agent.seated.deterministic
        show(literal(f"{name} passes: {asked}, every seat", "bold green"))
        if questions is not None:
            show("Every decision came in time, by a reply that could be read and was legal.")
            show(*questions.answers.lines())
        else:
            same = ", the same twice" if is_same else ""
            show(f"Every reply could be read, was legal and came in time{same}.")
        if not is_same:
            show("It is not declared deterministic, so nobody asked whether it repeats itself.")
        show("", "next:", typed(f"  cogeval try {_same_agent(arguments)}"))
        return
    what, mend = words_for(picked.agent)[error.kind]
    show(literal(f"{name} {_how_it_fails(progress, questions)}", "bold red"))
    show(literal(what, "bold"))
    show(literal(f"where  {error.place}"))
    show(literal(f"found  {error.what}"))
    if (line := _own_line(error.__cause__)) is not None:
        show(f"raised in  {escaped(line)}")
    if lines := error.stderr.rstrip().splitlines():
        show("stderr", *(f"  {escaped(line)}" for line in lines[-_STDERR_LINES:]))
    if questions is not None:
        show(*questions.answers.lines())
    show("", literal(mend))


def _how_it_fails(progress: _Progress, questions: Questions | None) -> str:
    if questions is None or not questions.answers.lost:
        return f"fails at question {progress.asked:,}"
    lost, decisions = questions.answers.lost, questions.answers.decisions
    rate = f"{lost:,} of {counted(decisions, 'decision')} ({lost / decisions:.0%})"
    return f"fails: {rate} would fall to the fallback; the first of them:"


def _own_line(error: BaseException | None) -> str | None:
    """File and line of the user's code that raised; None: none of theirs."""
    frames = traceback.extract_tb(None if error is None else error.__traceback__)
    own = [f for f in frames if "site-packages" not in f.filename and not f.filename.startswith(_NOT_OWN)]
    return f"{own[-1].filename}, line {own[-1].lineno}: {own[-1].line}" if own else None


def _same_agent(arguments: Arguments) -> str:
    """What names the same agent on a command line."""
    flags = ("--target", "--config-dir", "--config-name")
    given = [word for flag in flags if (value := arguments.value(flag)) for word in (flag, value)]
    return shlex.join([*arguments.words, *given, *arguments.overrides])
