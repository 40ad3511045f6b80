"""What `cogeval try` prints while an episode is played: for people, or as JSON lines.

Invariant: everything is written when it happens and flushed; what comes from an agent shows literally,
whatever is in it. It must not know where agents come from.
"""

from __future__ import annotations

import json
import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec
from rich.padding import Padding

from cogeval.cli.output import counted, print_json
from cogeval.core.game import AnyGame, Decision, Prompt, Step
from cogeval.core.record import Attempt, Episode, canonical_json
from cogeval.errors import RunError
from cogeval.report.layout import escaped, literal, make_console

_SHOWN_CHARS: Final = 20_000  # of a text that people read; JSON has all of it


class Enough(RunError):  # noqa: N818 - no error: the user has seen as much as they asked for
    """As many decisions were made as were asked for."""


class Transcript:
    """What the two forms share: who sits where, what was spent, and when to stop.

    Args:
        game: rules and parameters.
        seed: of the episode.
        seat: the one that is tried.
        names: who sits where.
        text_of: gives the text of an observation, as the seat reads it.
        decisions: of the seat, after which the episode is stopped; None: never.
        whole: with the system text.
    """

    def __init__(
        self,
        game: AnyGame,
        seed: int,
        seat: int,
        names: Sequence[str],
        text_of: Callable[[Any], Prompt],
        decisions: int | None,
        *,
        whole: bool,
    ) -> None:
        self.game = game
        self.seed = seed
        self.seat = seat
        self.names = tuple(names)
        self.text_of = text_of
        self.decisions = decisions
        self.whole = whole
        self.system: str | None = None
        self.done = 0
        self.faults = 0
        self.tokens_in = 0
        self.tokens_out = 0
        self.cost_usd = 0.0
        self.think_s = 0.0
        self.others: list[Attempt] = []

    def opened(self, phase: int, state: Any, decisions: Sequence[Decision[Any]]) -> None:
        """Shows what the seat is asked."""
        self.others = []
        for decision in decisions:
            if decision.seat == self.seat:
                prompt = self.text_of(self.game.observe(state, self.seat))
                system = prompt.system if prompt.system != self.system else None
                self.system = prompt.system
                self.asked(phase, decision.kind, system, prompt.user)

    def attempted(self, attempt: Attempt) -> None:
        """Shows what the seat answered, and keeps what the others did."""
        if attempt.seat != self.seat:
            self.others.append(attempt)
            return
        usage = attempt.usage
        self.done += attempt.accepted
        self.faults += attempt.fault is not None
        self.think_s += attempt.think_s
        if usage is not None:
            self.tokens_in += usage.tokens_in
            self.tokens_out += usage.tokens_out
            self.cost_usd += usage.cost_usd
        self.answered(attempt)

    def resolved(self, phase: int, step: Step[Any]) -> None:
        """Shows what came of it.

        Raises:
            Enough: when that was the last decision to be seen.
        """
        others = sorted(self.others, key=lambda a: (a.seat, a.attempt))
        self.happened(phase, others, [event_facts(event) for event in step.events])
        if self.decisions is not None and self.done >= self.decisions:
            raise Enough(f"{self.done} decisions")

    @abstractmethod
    def started(self) -> None:
        """Says what is played, and who sits where."""

    @abstractmethod
    def asked(self, phase: int, kind: str, system: str | None, user: str) -> None:
        """The seat is asked; `system` is None when it is as before."""

    @abstractmethod
    def answered(self, attempt: Attempt) -> None:
        """The seat answered, well or not, or its fallback did."""

    @abstractmethod
    def happened(self, phase: int, others: Sequence[Attempt], events: Sequence[Mapping[str, Any]]) -> None:
        """A phase is over."""

    @abstractmethod
    def ended(self, episode: Episode | None) -> None:
        """The episode is over; None: it was stopped before its end."""


class JsonTranscript(Transcript):
    """One JSON object a line."""

    def started(self) -> None:
        """As declared."""
        spec = self.game.spec
        self._write(
            "started", game=spec.name, version=spec.version, parameters=dict(self.game.parameters),
            seed=self.seed, seat=self.seat, agents=list(self.names),
        )  # fmt: skip

    def asked(self, phase: int, kind: str, system: str | None, user: str) -> None:
        """As declared; the system text is in the first line, and where it changes."""
        told = {} if system is None else {"system": system}
        self._write("asked", phase=phase, seat=self.seat, kind=kind, **told, user=user)

    def answered(self, attempt: Attempt) -> None:
        """As declared."""
        self._write("answered", **attempt_facts(attempt))

    def happened(self, phase: int, others: Sequence[Attempt], events: Sequence[Mapping[str, Any]]) -> None:
        """As declared."""
        self._write("happened", phase=phase, others=[attempt_facts(a) for a in others], events=events)

    def ended(self, episode: Episode | None) -> None:
        """As declared."""
        results = None
        if episode is not None:
            seats = enumerate(zip(episode.results.seats, episode.ranks, episode.forfeited, strict=True))
            results = {
                "reason": "clock" if episode.stopped else episode.results.reason,
                "digest": episode.digest,
                "seats": [
                    {
                        "seat": i, "agent": self.names[i], "rank": rank, "score": result.score,
                        "forfeited": forfeited, "statistics": dict(result.statistics),
                    }
                    for i, (result, rank, forfeited) in seats
                ],
            }  # fmt: skip
        self._write(
            "ended", complete=episode is not None, results=results, decisions=self.done, faults=self.faults,
            think_s=self.think_s, tokens_in=self.tokens_in, tokens_out=self.tokens_out,
            cost_usd=self.cost_usd,
        )  # fmt: skip

    def _write(self, what: str, **values: Any) -> None:
        print_json({"event": what, **values})
        sys.stdout.flush()


class TextTranscript(Transcript):
    """For people, on a terminal or in a file."""

    def started(self) -> None:
        """As declared."""
        spec = self.game.spec
        others = [i for i in range(len(self.names)) if i != self.seat]
        line = f"{spec.name} {spec.version}, seed {self.seed}: {self.names[self.seat]} in seat {self.seat}"
        if others:
            seats = f"seat{'s' if len(others) > 1 else ''} {', '.join(map(str, others))}"
            line += f", {self.names[others[0]]} in {seats}"
        self._line(line, "bold")

    def asked(self, phase: int, kind: str, system: str | None, user: str) -> None:
        """As declared."""
        self._line("")
        self._line(f"phase {phase}, {kind}", "bold cyan")
        if system is not None and self.whole:
            self._line("system text")
            self._text(system, "dim")
        elif system is not None:
            self._line(f"system text: {len(system):,} characters (--prompt prints them)")
        self._line("prompt")
        self._text(user, "dim")

    def answered(self, attempt: Attempt) -> None:
        """As declared."""
        if attempt.source != "agent":
            self._line(f"fallback ({attempt.source})  {attempt.action_text}", "yellow")
            return
        if attempt.text is not None:
            self._line("reply" if not attempt.attempt else "reply, second attempt")
            self._text(attempt.text, "")
        if attempt.action_text is not None:
            self._line(f"action  {attempt.action_text}", "bold green" if attempt.accepted else "")
        if attempt.fault is not None:
            self._line(f"fault   {attempt.fault}: {attempt.detail or 'no more is known'}", "red")
            if attempt.attempt == 0 and attempt.fault in ("unreadable", "illegal"):
                self._line("        that is its hint: it is asked once more", "red")
        if attempt.stderr is not None:
            self._line("stderr")
            self._text(attempt.stderr.rstrip("\n"), "dim", from_end=True)
        self._line(f"took    {effort(attempt)}")

    def happened(
        self,
        phase: int,  # noqa: ARG002 - its line is already there
        others: Sequence[Attempt],
        events: Sequence[Mapping[str, Any]],
    ) -> None:
        """As declared."""
        for attempt in others:
            if attempt.fault is not None:
                self._line(f"seat {attempt.seat}  {attempt.fault}: {attempt.detail}", "yellow")
            elif not events:  # nothing else would tell
                self._line(f"seat {attempt.seat}  {attempt.action_text}", "dim")
        for event in events:
            self._line(f"event   {event_words(event)}", "dim")

    def ended(self, episode: Episode | None) -> None:
        """As declared."""
        self._line("")
        if episode is None:
            self._line("stopped before the end: no result", "bold")
        else:
            reason = "ended by the clock" if episode.stopped else episode.results.reason
            self._line(f"result ({reason})", "bold")
            for i, (result, rank) in enumerate(zip(episode.results.seats, episode.ranks, strict=True)):
                mark = "bold" if i == self.seat else ""
                self._line(f"  {rank + 1}. seat {i} {self.names[i]}: score {result.score:g}", mark)
        said = f"{counted(self.done, 'decision')}, {counted(self.faults, 'fault')}"
        said += f", {self.think_s:.3f} s of thinking"
        if self.tokens_in or self.tokens_out:
            said += f", {self.tokens_in:,} + {self.tokens_out:,} tokens, ${self.cost_usd:.4f}"
        self._line(f"{self.names[self.seat]}: {said}")

    def _line(self, text: str, style: str = "", indent: int = 0) -> None:
        """One line; on a terminal it is folded under its indent, in a file it stays whole."""
        console = make_console(sys.stdout)
        if console.is_terminal and text:
            console.print(Padding(literal(text, style), (0, 0, 0, indent), expand=False))
        else:
            sys.stdout.write((" " * indent + escaped(text)).rstrip() + "\n")
        sys.stdout.flush()

    def _text(self, text: str, style: str, *, from_end: bool = False) -> None:
        """A text of several lines, indented; of one that is too long, the beginning or the end."""
        more = f"... {len(text) - _SHOWN_CHARS:,} more characters (--json has them)"
        if len(text) > _SHOWN_CHARS and from_end:
            self._line(more, "yellow", 2)
        for line in (text[-_SHOWN_CHARS:] if from_end else text[:_SHOWN_CHARS]).split("\n"):
            self._line(line.replace("\t", "    ").rstrip("\r"), style, indent=2)
        if len(text) > _SHOWN_CHARS and not from_end:
            self._line(more, "yellow", 2)


def effort(attempt: Attempt) -> str:
    """Time, tokens, money and model of one attempt."""
    parts = [f"{attempt.think_s:.3f} s thinking, {attempt.queue_s:.3f} s waiting"]
    if (usage := attempt.usage) is not None:
        cached = f" ({usage.tokens_cached:,} cached)" if usage.tokens_cached else ""
        parts.append(
            f"{usage.tokens_in:,} tokens in{cached}, {usage.tokens_out:,} out, ${usage.cost_usd:.4f}"
        )
    if attempt.model is not None:
        parts.append(attempt.model)
    if attempt.finish_reason is not None:
        parts.append(f"finished by {attempt.finish_reason}")
    return "; ".join(parts)


def attempt_facts(attempt: Attempt) -> dict[str, Any]:
    """An attempt as JSON."""
    action = None if attempt.action_text is None else json.loads(attempt.action_text)
    left = {"action", "action_text", "usage"}
    told = {name: getattr(attempt, name) for name in attempt.__struct_fields__ if name not in left}
    usage = None if attempt.usage is None else msgspec.to_builtins(attempt.usage)
    return {**told, "action": action, "usage": usage}


def event_facts(event: Any) -> dict[str, Any]:
    """An event as JSON, without what says nothing: empty texts and lists, and -1 for nobody and none."""
    whole = msgspec.to_builtins(event)
    return {key: value for key, value in whole.items() if value not in ("", (), [], -1, None)}


def event_words(event: Mapping[str, Any]) -> str:
    """An event in one line: its kind, and what is known of it."""
    told = " ".join(f"{key}={_short(value)}" for key, value in event.items() if key != "kind")
    return f"{event.get('kind', '')} {told}".strip()


def _short(value: Any) -> str:
    return value if isinstance(value, str) and " " not in value else canonical_json(value)
