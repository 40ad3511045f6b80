"""Shared checks of what leaves a game and what comes in: wire, prompts, schemas, replies.

Invariant: each public function is one check, `(game, walks) -> None`, and has no exceptions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hypothesis import HealthCheck, given, settings

from cogeval.core.game import AnyGame, Decision, Json
from cogeval.core.record import canonical_json
from cogeval.core.rng import stream
from cogeval.errors import ActionError
from cogeval.testing.json_schema import check_schema, schema_errors
from cogeval.testing.replies import WriteReply
from cogeval.testing.snapshot import snapshot
from cogeval.testing.strategies import NASTY_TEXT, replies
from cogeval.testing.walks import SECRET_SEED, Position, Walk, legal_actions, places, walk

_JUNK_EXAMPLES: Final = 100  # replies tried at each kind of decision


def actions_survive_the_wire(game: AnyGame, walks: Sequence[Walk]) -> None:
    """Every action comes back from JSON text as it was, and hashes (the episode loop keeps them)."""
    for position, decision in places(walks):
        rng = stream(position.seed, "testing", "wire")
        for action in (decision.default, *legal_actions(decision.legal, rng)):
            back = game.action_from_wire(json.loads(canonical_json(game.action_to_wire(action))))
            assert snapshot(back) == snapshot(action), (
                f"{position.place}, seat {decision.seat}: expected {action} back from the wire, got {back}"
            )
            assert hash(back) == hash(action), f"{position.place}: equal actions hash differently: {action}"


def observations_survive_the_wire(game: AnyGame, walks: Sequence[Walk]) -> None:
    """An observation that went through JSON text shows and prompts the same."""
    for position, decision in places(walks):
        observation = game.observe(position.state, decision.seat)
        wire = game.observation_to_wire(observation)
        back = game.observation_from_wire(json.loads(canonical_json(wire)))
        place = f"{position.place}, seat {decision.seat}"
        assert canonical_json(game.observation_to_wire(back)) == canonical_json(wire), (
            f"{place}: wire differs"
        )
        assert game.prompt(back) == game.prompt(observation), f"{place}: the prompt differs after the wire"


def prompts_render(game: AnyGame, walks: Sequence[Walk]) -> None:
    """Every decision has a system and a user text that can be sent as UTF-8."""
    for position, decision in places(walks):
        prompt = game.prompt(game.observe(position.state, decision.seat))
        for part in (prompt.system, prompt.user):
            assert part.strip(), f"{position.place}, seat {decision.seat}: expected text, got {part!r}"
            try:
                part.encode("utf-8")
            except UnicodeEncodeError as error:
                raise AssertionError(f"{position.place}, seat {decision.seat}: no UTF-8: {error}") from error


def observations_do_not_tell_the_seed(game: AnyGame, walks: Sequence[Walk]) -> None:
    """Neither the observation nor the prompt holds the seed, which would reveal the world."""
    for position, decision in places([walk(game, SECRET_SEED)]):
        observation = game.observe(position.state, decision.seat)
        prompt = game.prompt(observation)
        shown = canonical_json(game.observation_to_wire(observation)) + prompt.system + prompt.user
        assert str(SECRET_SEED) not in shown, f"{position.place}, seat {decision.seat}: the seed shows"
        assert str(SECRET_SEED) not in repr(snapshot(observation)), f"{position.place}: the seed is inside"
    assert walks, "expected episodes to check"


def schemas_admit_every_legal_action(game: AnyGame, walks: Sequence[Walk], write: WriteReply) -> None:
    """Each legal action, written as a reply, is valid by the schema and reads back as that action."""
    for position, decision in places(walks):
        schema = game.reply_schema(decision)
        check_schema(schema)
        rng = stream(position.seed, "testing", "schema")
        for action in (decision.default, *legal_actions(decision.legal, rng)):
            reply = write(decision, action)
            place = f"{position.place}, seat {decision.seat}, reply {canonical_json(reply)}"
            wrong = next(schema_errors(reply, schema), None)
            assert wrong is None, f"{place}: not valid by its schema: {wrong}"
            read = game.parse_reply(position.state, decision.seat, reply)
            assert read == action, f"{place}: expected {action}, read {read}"


def spoken_text_harms_nobody(game: AnyGame, walks: Sequence[Walk], write: WriteReply) -> None:
    """Whatever a seat says, everybody's next observation renders, encodes and crosses the wire."""
    for position, decision in _one_of_each_kind(walks):
        properties = game.reply_schema(decision)["properties"]
        free = [
            name for name, kind in properties.items() if kind.get("type") == "string" and "enum" not in kind
        ]
        for text in NASTY_TEXT:
            reply = {**write(decision, decision.default), **dict.fromkeys(free, text)}
            try:
                spoken = game.parse_reply(position.state, decision.seat, reply)
            except ActionError:
                continue
            actions = {d.seat: d.default for d in position.decisions} | {decision.seat: spoken}
            state = game.step(position.state, actions).next
            after = Position(position.seed, position.phase + 1, state, game.decisions(state))
            spread = [Walk(position.seed, (after,), ({},), state)]
            prompts_render(game, spread)
            observations_survive_the_wire(game, spread)


def bad_replies_raise_action_errors_only(game: AnyGame, walks: Sequence[Walk]) -> None:
    """Whatever a reply holds, reading it gives an action or an ActionError with a hint."""
    for position, decision in _one_of_each_kind(walks):
        schema = game.reply_schema(decision)
        _try_junk(game, position, decision, tuple(schema["properties"]), tuple(_words(schema)))


def _try_junk(
    game: AnyGame, position: Position, decision: Decision[Any], fields: Sequence[str], words: Sequence[str]
) -> None:
    @settings(
        max_examples=_JUNK_EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(replies(fields, words))
    def reads_or_refuses(reply: Mapping[str, Json]) -> None:
        try:
            action = game.parse_reply(position.state, decision.seat, reply)
        except ActionError as error:
            _check_hint(error.hint, reply)
            return
        except Exception as error:
            raise AssertionError(
                f"expected an action or an ActionError for {reply!r}, got {error!r}"
            ) from error
        game.why_illegal(position.state, decision.seat, action)
        assert game.action_from_wire(json.loads(canonical_json(game.action_to_wire(action)))) == action

    reads_or_refuses()


def _check_hint(hint: str, reply: Mapping[str, Json]) -> None:
    assert hint.strip(), f"expected a hint for {reply!r}, got none"


def _one_of_each_kind(walks: Sequence[Walk]) -> Iterator[tuple[Position, Decision[Any]]]:
    seen: set[str] = set()
    for position, decision in places(walks):
        if decision.kind not in seen:
            seen.add(decision.kind)
            yield position, decision


def _words(schema: Json) -> Iterator[str]:
    """Every text that a schema offers as a value."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key in ("enum", "const", "examples"):
                offered = value if isinstance(value, list) else [value]
                yield from (word for word in offered if isinstance(word, str))
            else:
                yield from _words(value)
    elif isinstance(schema, list):
        for item in schema:
            yield from _words(item)
