"""`cogeval replay`: one recorded episode from its first phase to its result, for people or as JSON.

Invariant: every attempt comes from the record, and nobody is asked; only the events between them are
what the rules make of the recorded actions, and are left out where the rules are not those of the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from cogeval.cli.arguments import Arguments
from cogeval.cli.output import print_json, show, warn
from cogeval.cli.settings import find_runs
from cogeval.cli.transcript import attempt_facts, effort, event_facts, event_words
from cogeval.core.game import AnyGame
from cogeval.core.record import Attempt
from cogeval.errors import InputError
from cogeval.games import make_game
from cogeval.report.layout import escaped
from cogeval.store.attempts import RecordedEpisode, recorded_episode
from cogeval.store.run import RunDir

_Events = list[dict[str, Any]]
_LEFT_OUT: Final = "events are left out from there on"


def replay(arguments: Arguments) -> int:
    """Carries out ``cogeval replay``."""
    run, index = _named(arguments)
    played = run.manifest["game"]
    game = make_game(played["name"], **played["parameters"])
    episode = recorded_episode(run, index, game.action_from_wire)
    if episode.damage is not None:
        warn([f"{episode.damage}; nothing is shown from there on"])
    events = [*_events(game, episode)] if game.spec.version == played["version"] else []
    if game.spec.version != played["version"]:
        warn([f"{game.spec.name} is {game.spec.version} now, was {played['version']}: events are left out"])
    if arguments.switch("--json"):
        print_json({"run_id": run.run_id, **_facts(game, episode, events)})
    else:
        show(*map(escaped, _lines(f"{game.spec.name} {played['version']}", episode, events)))
    return 0


def _named(arguments: Arguments) -> tuple[RunDir, int]:
    """The run and the place in its schedule that the user named."""
    if len(arguments.words) != 2:
        given = " ".join(map(repr, arguments.words)) or "none"
        raise InputError(f"expected a RUN and an EPISODE (its place in the schedule, from 0), got {given}")
    name, written = arguments.words
    if not written.isdecimal():
        raise InputError(f"expected EPISODE, a place in the schedule from 0, got {written!r}")
    return find_runs(arguments, [name])[0], int(written)


def _by_phase(episode: RecordedEpisode) -> list[list[Attempt]]:
    phases: list[list[Attempt]] = [[] for _ in range(episode.num_phases)]
    for attempt in episode.attempts:
        phases[attempt.phase].append(attempt)
    return phases


def _events(game: AnyGame, episode: RecordedEpisode) -> Iterator[_Events]:
    """What happened in each phase, and after the last one where the clock ended the episode."""
    state = game.initial_state(episode.seed)
    for phase, attempts in enumerate(_by_phase(episode)):
        actions = {a.seat: a.action for a in attempts if a.accepted}
        deciding = [decision.seat for decision in game.decisions(state)]
        if sorted(actions) != deciding:
            asked = f"phase {phase}: the rules ask seats {deciding}, recorded are {sorted(actions)}"
            warn([f"{asked}; {_LEFT_OUT}"])
            return
        try:
            step = game.step(state, actions)
        except Exception as error:  # noqa: BLE001 - a changed action may break the rules in any way
            what = f"{type(error).__name__}: {error}"
            warn([f"phase {phase}: the rules do not take the recorded actions ({what:.200}); {_LEFT_OUT}"])
            return
        yield [event_facts(event) for event in step.events]
        state = step.next
    if episode.stopped and game.decisions(state):
        yield [event_facts(event) for event in game.stop(state).events]


def _facts(game: AnyGame, episode: RecordedEpisode, events: Sequence[_Events]) -> dict[str, Any]:
    phases = [
        {
            "phase": phase,
            "attempts": [attempt_facts(attempt) for attempt in attempts],
            "events": events[phase] if phase < len(events) else [],
        }
        for phase, attempts in enumerate(_by_phase(episode))
    ]
    return {
        "game": game.spec.name,
        "parameters": dict(game.parameters),
        "index": episode.index,
        "episode_id": episode.episode_id,
        "block": episode.block,
        "seed": episode.seed,
        "replicate": episode.replicate,
        "agents": list(episode.agents),
        "phases": phases,
        "reason": episode.reason,
        "stopped": episode.stopped,
        "scores": list(episode.scores),
        "digest": episode.digest,
    }


def _lines(game: str, episode: RecordedEpisode, events: Sequence[_Events]) -> Iterator[str]:
    yield f"{game}, episode {episode.index} in block {episode.block}, seed {episode.seed}"
    yield ", ".join(f"seat {seat} {name}" for seat, name in enumerate(episode.agents))
    phases = _by_phase(episode)
    for phase, attempts in enumerate(phases):
        yield from ("", f"phase {phase}")
        for attempt in attempts:
            yield from _attempt_lines(attempt, episode.agents[attempt.seat])
        for event in events[phase] if phase < len(events) else ():
            yield f"  event  {event_words(event)}"
    yield from ("", f"result ({'ended by its clock, ' if episode.stopped else ''}{episode.reason})")
    for event in (event for rest in events[len(phases) :] for event in rest):
        yield f"  event  {event_words(event)}"
    for seat, (name, score) in enumerate(zip(episode.agents, episode.scores, strict=True)):
        yield f"  seat {seat} {name}: score {score:g}"
    yield f"digest {episode.digest}"


def _attempt_lines(attempt: Attempt, name: str) -> Iterator[str]:
    """Who decided what, what was wrong with it, and what the reply said."""
    who = f"  seat {attempt.seat} {name}"
    action = attempt.action_text or "no action"
    if attempt.source != "agent":
        yield f"{who}  fallback ({attempt.source})  {action}"
        return
    yield f"{who}  {attempt.kind}  {action}"
    if attempt.fault is not None:
        yield f"    fault  {attempt.fault}: {attempt.detail or 'no more is known'}"
    if attempt.stderr is not None:
        yield "    stderr"
        yield from (f"      {line}" for line in attempt.stderr.splitlines())
    if attempt.text is not None:
        yield "    reply"
        yield from (f"      {line}" for line in attempt.text.splitlines())
    if attempt.text is not None or attempt.usage is not None or attempt.model is not None:
        yield f"    took   {effort(attempt)}"
