"""A key in a setting is refused before it is written anywhere: by the setting's name, never by its text."""

from __future__ import annotations

import pytest

from cogeval.agents import build_agent
from cogeval.errors import InputError
from cogeval.games import make_game

GAME = make_game("cogmud")
MARK = "Marked0123456789abcdef"
LEAST = {"kind": "llm", "provider": "openai", "model": "m"}


def refused(**settings) -> str:
    with pytest.raises(InputError) as caught:
        build_agent("x", GAME, {**LEAST, **settings})
    assert MARK not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    "key",
    [
        f"sk-{MARK}",
        f"sk-ant-api03-{MARK}",
        f"Bearer {MARK}",
        f"ghp_{MARK}{MARK}",
        f"gsk_{MARK}",
        "AKIA" + "A1B2" * 4,
    ],
)
@pytest.mark.parametrize(
    ("setting", "wrap"),
    [
        ("prompt", lambda key: f"Play well. {key}"),
        ("prompt", lambda key: {"user_after": key}),
        ("extra", lambda key: {"metadata": {"notes": ["a", key]}}),
        ("extra", lambda key: {key: 1}),
        ("model", lambda key: key),
        ("account", lambda key: key),
    ],
)
def test_what_looks_like_a_key_is_refused_in_any_setting(setting, wrap, key) -> None:
    said = refused(**{setting: wrap(key)})
    assert key not in said
    assert said.startswith(f"pool.agents.x.{setting}")


@pytest.mark.parametrize("name", ["MY_SERVICE_KEY", "COMPANY_TOKEN", "ANTHROPIC_API_KEY", "db_password"])
def test_the_value_of_a_secret_variable_is_refused_whatever_it_looks_like(name, monkeypatch) -> None:
    monkeypatch.setenv(name, "correct horse battery")
    said = refused(extra={"metadata": {"note": "the correct horse battery staple"}})
    assert said.startswith("pool.agents.x.extra.metadata.note: expected no key")
    assert name in said
    assert "horse" not in said


def test_a_key_in_a_prompt_file_is_refused(tmp_path) -> None:
    path = tmp_path / "prompt.txt"
    path.write_text(f"Be bold.\nsk-{MARK}\n")
    assert refused(prompt_file=str(path)).startswith("pool.agents.x.prompt_file")
    path = tmp_path / "prompt.yaml"
    path.write_text(f"user_after: sk-{MARK}\n")
    assert refused(prompt_file=str(path)).startswith("pool.agents.x.prompt_file")


def test_ordinary_words_and_short_values_are_no_keys(monkeypatch) -> None:
    monkeypatch.setenv("LOCAL_API_KEY", "none")
    monkeypatch.setenv("HOME_OF_MINE", "a long enough ordinary value")
    for prompt in (
        "Take no needless risk-adjusted-returns-of-100-percent.",
        "none of the others holds a long enough ordinary value",
        "The bearer of the key wins; scikit sk-learn is a library.",
    ):
        build_agent("x", GAME, {**LEAST, "prompt": prompt})
