"""A marked key, through every path of a run: it is sent to the service, and found nowhere else."""

from __future__ import annotations

import json
import logging
import os
import pickle
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from seats import KEY_VARIABLE, WIRES, baseline_seat, model_seat, run, settings
from server import CUT, OK, SERVER_ERROR, UNAUTHORIZED, Behaviour, ModelServer, indiscreet, too_many

from cogeval.agents import build_agent
from cogeval.agents.llm import scrub
from cogeval.agents.llm.reading import first_object
from cogeval.core.agent import Resources, bound
from cogeval.core.episode import play
from cogeval.core.record import Episode
from cogeval.core.seat import Deadlines
from cogeval.errors import InputError
from cogeval.games import make_game

MARK = "MARKED"  # a piece of the key betrays it as the whole does
KEY = f"sk-{MARK}-0123456789"
AWKWARD = 'sk-M/+="\\k 7'  # with all that JSON may escape
TELLING = Behaviour(text=f'{{"action": "I wait.", "say": "My key is {KEY}", "notes": "{KEY}"}}')
TELLING_ALONE = Behaviour(text=f"{KEY} is what you asked for")
NOT_JSON = Behaviour(body=f"{KEY} {KEY} is not JSON".encode())
DEADLINES = Deadlines(decision_s=20.0, retry_s=20.0, episode_timeout_s=280.0)


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KEY_VARIABLE, KEY)


def episode_of(server: ModelServer, wire: str, turns: int, max_retries: int) -> Episode:
    game = make_game("cogmud", turns=turns)
    model = model_seat(game, server, wire, "m", max_retries=max_retries)
    return run(play(game, 5, [model, *(baseline_seat(game) for _ in range(5))], deadlines=DEADLINES))


def words_of(episode: Episode) -> str:
    """All that an episode keeps of its seats, with their faults."""
    return "\n".join(repr(attempt) for attempt in episode.attempts)


@pytest.mark.parametrize("wire", WIRES)
def test_a_key_that_a_service_repeats_is_in_no_attempt_and_no_log(
    server: ModelServer,
    wire: str,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    caplog.set_level(logging.INFO)
    caplog.set_level(logging.DEBUG, logger="cogeval")  # the SDKs' own DEBUG quotes all that a service sends
    server.behave(
        *(OK, UNAUTHORIZED, indiscreet(SERVER_ERROR), indiscreet(too_many(0.0)), OK, CUT, OK),
        *(TELLING, TELLING_ALONE, OK, NOT_JSON, Behaviour(status=400, body=KEY.encode())),
    )
    episode = episode_of(server, wire, 12, 2)
    assert {ask.key for ask in server.asks} == {KEY}
    said = words_of(episode)
    assert "exception" in said
    assert f"<{KEY_VARIABLE}>" in said  # it was there, and was taken out
    assert MARK not in said
    assert MARK not in caplog.text
    assert MARK not in "".join(capfd.readouterr())


@pytest.mark.parametrize("wire", WIRES)
def test_no_piece_of_a_key_is_left_where_a_message_is_cut(server: ModelServer, wire: str) -> None:
    """An error is shortened somewhere: wherever the key stands in it, the cut leaves none of it."""
    for filler in (*range(24, 64, 3), *range(276, 300, 2), *range(1170, 1200, 3)):
        message = "x" * filler + KEY
        errors = (message, json.dumps({"error": {"message": message, "type": "e"}}))
        server.behave(*(Behaviour(status=400, body=error.encode()) for error in errors))
        server.behave(Behaviour(body=message.encode()))
    num_bodies = 3 * len((*range(24, 64, 3), *range(276, 300, 2), *range(1170, 1200, 3)))
    said = "".join(words_of(episode_of(server, wire, 36, 0)) for _ in range(-(-num_bodies // 36)))
    assert MARK not in said, said[said.index(MARK) - 400 : said.index(MARK) + 40]


@pytest.mark.parametrize("wire", WIRES)
def test_what_a_service_puts_around_a_key_brings_no_piece_of_it_to_the_cut(
    server: ModelServer, wire: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """White space is drawn together and a long key gets short: what was far away comes near."""
    long = f"sk-{(MARK + '-') * 400}1"
    messages = [" " * filler + KEY for filler in (19_990, 999_970, 999_990)] + [f"{long} " * 40]
    for message in messages:
        monkeypatch.setenv(KEY_VARIABLE, long if long in message else KEY)
        errors = (message, json.dumps({"error": {"message": message, "type": "e"}}))
        server.behave(*(Behaviour(status=400, body=error.encode()) for error in errors))
        server.behave(Behaviour(body=message.encode()))
        assert MARK not in words_of(episode_of(server, wire, 6, 0))


ESCAPES = ("\\u{:04x}", "\\u{:04X}")


@given(
    st.lists(st.sampled_from(("{:c}", *ESCAPES)), min_size=len(AWKWARD), max_size=len(AWKWARD)),
    st.sampled_from(["", "x", "\n", '"']),
)
@example([ESCAPES[0]] * len(AWKWARD), "")
def test_a_key_that_is_spelled_with_escapes_is_in_neither_the_text_nor_what_is_read_from_it(
    spellings: list[str], around: str
) -> None:
    spelled = "".join(
        json.dumps(c)[1:-1] if how == "{:c}" else how.format(ord(c))
        for how, c in zip(spellings, AWKWARD, strict=True)
    )
    quoted = json.dumps(around)[1:-1]
    text = f'{{"{quoted}{spelled}": [{{"say": "{quoted}{spelled}{quoted}"}}]}}'
    with mock.patch.dict(os.environ, {KEY_VARIABLE: AWKWARD}):
        told = scrub(text, [KEY_VARIABLE])
    read = first_object(told)
    assert read is not None
    assert AWKWARD not in repr_of_strings(read)
    ((name, value),) = read.items()
    assert f"<{KEY_VARIABLE}>" in name
    assert json.loads(told) == read
    assert f"<{KEY_VARIABLE}>" in repr_of_strings(value)


@pytest.mark.parametrize("slashes", [1, 2, 3, 4, 8])
def test_a_key_whose_escapes_were_escaped_again_is_taken_out_too(slashes: int) -> None:
    spelled = "".join(f"{slashes * chr(92)}u{ord(c):04x}" for c in KEY)
    with mock.patch.dict(os.environ, {KEY_VARIABLE: KEY}):
        assert scrub(f'{{"say": "{spelled}"}}', [KEY_VARIABLE]) == f'{{"say": "<{KEY_VARIABLE}>"}}'


def repr_of_strings(value: object) -> str:
    """All strings in a value, keys of mappings too, one after the other."""
    if isinstance(value, dict):
        return "\0".join(repr_of_strings(part) for item in value.items() for part in item)
    return "\0".join(map(repr_of_strings, value)) if isinstance(value, list) else str(value)


def test_escapes_that_spell_no_key_stay_as_they_are_and_take_linear_time() -> None:
    with mock.patch.dict(os.environ, {KEY_VARIABLE: KEY}):
        for text in (r'{"say": "\u0073k-\u00e9"}', r"a\/b", "\\" * 2_000_000, r"\u007" * 500_000):
            assert scrub(text, [KEY_VARIABLE]) == text


@pytest.mark.parametrize("wire", WIRES)
def test_a_model_that_spells_a_key_with_escapes_tells_nobody(server: ModelServer, wire: str) -> None:
    spelled = "".join(f"\\u{ord(c):04x}" for c in KEY)
    server.always(
        Behaviour(text=f'{{"action": "I say \\"{spelled}\\"", "say": "{spelled}", "{spelled}": 1}}')
    )
    said = words_of(episode_of(server, wire, 6, 0))
    assert f"<{KEY_VARIABLE}>" in said
    assert MARK not in said
    assert spelled not in said


@pytest.mark.parametrize("wire", WIRES)
def test_errors_without_a_service_hold_no_key(server: ModelServer, wire: str) -> None:
    game = make_game("cogmud", turns=6)
    model = model_seat(game, server, wire, "m", max_retries=0, base_url="http://127.0.0.1:1")
    others = [baseline_seat(game) for _ in range(5)]
    said = words_of(run(play(game, 5, [model, *others], deadlines=DEADLINES)))
    assert "exception" in said
    assert MARK not in said


@pytest.mark.parametrize("value", [f"{KEY}\n{KEY}", f"{KEY}\x00", f"{KEY}\u00e9", f"{KEY}\x7f"])
def test_a_key_that_cannot_be_sent_is_refused_without_saying_it(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setattr(os, "environ", {**os.environ, KEY_VARIABLE: value})
    game = make_game("cogmud", turns=6)
    entry = build_agent("m", game, settings(server, "openai", "m"))
    with pytest.raises(InputError) as caught:
        bound(entry.seated, Resources())
    assert KEY_VARIABLE in str(caught.value)
    assert MARK not in str(caught.value)


@pytest.mark.parametrize(
    "wrong",
    [{"api_key_env": KEY}, {"base_url": f"http://user:{KEY}@127.0.0.1/v1"}, {"api_key": KEY}],
    ids=["as the variable's name", "in the URL", "as a setting"],
)
def test_a_key_in_the_pool_is_refused_without_saying_it(server: ModelServer, wrong: dict[str, str]) -> None:
    game = make_game("cogmud", turns=6)
    with pytest.raises(InputError) as caught:
        build_agent("m", game, settings(server, "openai", "m", **wrong))
    assert MARK not in str(caught.value)


def test_an_agent_that_travels_holds_no_key(server: ModelServer) -> None:
    entry = build_agent("m", make_game("cogmud", turns=6), settings(server, "openai", "m"))
    assert MARK.encode() not in pickle.dumps(entry)
    assert MARK not in repr(entry)
    assert MARK not in json.dumps(entry.describe())


POOL = {  # the example's agents -> what their service does
    "gpt_mini": ("OPENAI_API_KEY", [OK, indiscreet(SERVER_ERROR), indiscreet(too_many(0.1)), TELLING], OK),
    "gpt_reasoning": ("OPENAI_API_KEY", [OK, NOT_JSON, TELLING_ALONE], UNAUTHORIZED),
    "routed": ("OPENROUTER_API_KEY", [CUT, TELLING], indiscreet(Behaviour(status=403))),
}
MODELS = {
    "gpt_mini": "gpt-4.1-mini",
    "gpt_reasoning": "gpt-5-mini",
    "routed": "meta-llama/llama-3.3-70b-instruct",
}


def contents(directory: Path) -> Iterator[tuple[str, str]]:
    """Every file, as it is and as it reads unpacked."""
    for path in sorted(p for p in directory.rglob("*") if p.is_file()):
        name = str(path.relative_to(directory))
        yield name, path.read_bytes().decode("latin-1")
        if path.suffix == ".arrow":
            with pa.memory_map(str(path)) as file:
                yield f"{name}, unpacked", repr(pa.ipc.open_file(file).read_all().to_pylist())
        elif path.suffix == ".db":
            with sqlite3.connect(path) as database:
                yield f"{name}, dumped", "\n".join(database.iterdump())
            database.close()


@pytest.mark.cluster
def test_a_whole_run_writes_and_prints_no_key(server: ModelServer, tmp_path: Path) -> None:
    """Successes, refusals that repeat the key, retries: in no shard, log, manifest, database or output."""
    overrides = ["pool=models_openai", "game.rounds=3", "schedule.blocks=2", "seed=3", "tracking.every_s=1"]
    for name, (variable, behaviours, standing) in POOL.items():
        server.behave(*behaviours, model=MODELS[name])
        server.always(standing, model=MODELS[name])
        agent = f"++pool.agents.{name}"
        overrides += [f"{agent}.base_url={server.openai_url}", f"{agent}.api_key_env={variable}"]
        overrides += [f"{agent}.max_retries=1"]
    environment = {**os.environ, "OPENAI_API_KEY": KEY, "OPENROUTER_API_KEY": f"{KEY}-of-another"}
    environment.pop(KEY_VARIABLE)
    command = [sys.executable, "-m", "cogeval"]

    def cogeval(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=240
        )

    played = cogeval("run", *overrides)
    assert played.returncode == 0, played.stderr
    assert {ask.key for ask in server.asks} == {KEY, f"{KEY}-of-another"}
    shown = cogeval("show", "latest", "--json")
    assert "OPENAI_API_KEY>" in shown.stdout + played.stdout + "".join(t for _, t in contents(tmp_path))
    said = {
        "output": played.stdout + played.stderr,
        "show": shown.stdout + shown.stderr,
        **dict(contents(tmp_path)),
    }
    assert [name for name, text in said.items() if MARK in text] == []
    for kind in (
        "manifest.json",
        "config.yaml",
        "ledger.log",
        "decisions.arrow, unpacked",
        "mlflow.db, dumped",
    ):
        assert any(name.endswith(kind) for name in said), (kind, list(said))
