"""`cogeval check-agent`: the shared check of an agent, and what to do about what it finds.

Invariant: it needs nothing but a plain install. An agent that hangs holds up nobody: the check runs in a
thread of its own, and who watches it says where it was.
"""

from __future__ import annotations

import math
import shlex
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
from cogeval.cli.trying import whole
from cogeval.core.clock import ThinkTimer
from cogeval.errors import InputError
from cogeval.report.layout import escaped, literal
from cogeval.testing.agent_checks import AgentCheckError, check_agent

_LIMIT_S: Final = 10.0  # think time of a decision of an agent that is no model
_EPISODES: Final = 3
_LOOK_S: Final = 0.05  # between two looks at an agent that thinks
_PACKAGE: Final = str(Path(cogeval.__file__).parent)
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
    progress = _Progress()
    error = _watched(picked, range(episodes - 1), limit_s, progress)
    if error is not None and not isinstance(error, AgentCheckError):
        raise error
    if arguments.switch("--json"):
        print_json(_as_json(picked, progress, episodes, error))
    else:
        _explain(arguments, picked, progress, episodes, error)
    if error is not None and error.__cause__ is not None and arguments.switch("--debug"):
        traceback.print_exception(error.__cause__)
    return 0 if error is None else 1


def _watched(picked: Picked, seeds: range, limit_s: float, progress: _Progress) -> BaseException | None:
    """Runs the check in a thread that is left behind when the agent hangs; gives what was wrong."""

    def check() -> None:
        outcome: BaseException | None = None
        try:
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
    picked: Picked, progress: _Progress, episodes: int, error: AgentCheckError | None
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
        "failure": failure,
    }


def _explain(
    arguments: Arguments, picked: Picked, progress: _Progress, episodes: int, error: AgentCheckError | None
) -> None:
    name, game = picked.agent.name, picked.experiment.game.spec.name
    asked = f"{counted(progress.asked, 'question')}, {counted(episodes, 'random episode')} of {game}"
    if error is None:
        is_same = picked.agent.seated.deterministic
        show(literal(f"{name} passes: {asked}, every seat", "bold green"))
        show(f"Every reply could be read, was legal and came in time{', the same twice' if is_same else ''}.")
        if not is_same:
            show("It is not declared deterministic, so nobody asked whether it repeats itself.")
        show("", "next:", typed(f"  cogeval try {_same_agent(arguments)}"))
        return
    what, mend = words_for(picked.agent)[error.kind]
    show(literal(f"{name} fails at question {progress.asked:,}", "bold red"))
    show(literal(what, "bold"))
    show(literal(f"where  {error.place}"))
    show(literal(f"found  {error.what}"))
    if (line := _own_line(error.__cause__)) is not None:
        show(f"raised in  {escaped(line)}")
    if lines := error.stderr.rstrip().splitlines():
        show("stderr", *(f"  {escaped(line)}" for line in lines[-_STDERR_LINES:]))
    show("", literal(mend))


def _own_line(error: BaseException | None) -> str | None:
    """File and line of the user's code that raised; None: none of theirs."""
    frames = traceback.extract_tb(None if error is None else error.__traceback__)
    own = [f for f in frames if "site-packages" not in f.filename and not f.filename.startswith(_PACKAGE)]
    return f"{own[-1].filename}, line {own[-1].lineno}: {own[-1].line}" if own else None


def _same_agent(arguments: Arguments) -> str:
    """What names the same agent on a command line."""
    flags = ("--target", "--config-dir", "--config-name")
    given = [word for flag in flags if (value := arguments.value(flag)) for word in (flag, value)]
    return shlex.join([*arguments.words, *given, *arguments.overrides])
