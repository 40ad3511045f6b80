"""A command in a pool: what is refused before anything is played, and what its fingerprint covers."""

from __future__ import annotations

import pytest

from cogeval.agents import build_agent
from cogeval.core.game import Json
from cogeval.errors import InputError
from cogeval.games import make_game


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.sh").write_text("exit 0\n")
    return tmp_path


def build(**settings: Json):
    return build_agent("tried", make_game("cogz"), {"kind": "process", **settings})


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({}, "command: expected a program and its arguments, got None"),
        ({"command": []}, "command: expected a program and its arguments, got []"),
        ({"command": "bash mine.sh"}, "command: expected list, got 'bash mine.sh'"),
        ({"command": ["bash", 3]}, "got 3 in it; quote numbers"),
        ({"command": ["no-such-program-here"]}, "'no-such-program-here', which is not on the PATH"),
        ({"command": ["bash", "mine.sh"]}, "add it to files: [mine.sh]"),
        ({"command": ["bash", "x.sh"], "files": ["x.sh"]}, "expected a file, got 'x.sh'"),
        ({"command": ["bash"], "files": ["../mine.sh"]}, "expected an absolute path or one inside"),
        ({"command": ["bash"], "memory_mb": 0}, "memory_mb: expected more than 0, got 0"),
        ({"command": ["bash"], "memory_mb": "all"}, "Expected `int | null`, got `str` - at `$.memory_mb`"),
        ({"command": ["bash"], "memory": 3}, "unknown parameter of agent kind process"),
        ({"command": ["bash", "a\0b"]}, "command: expected a list of texts"),
        ({"command": ["bash", "\ud800"]}, "command: expected a list of texts"),
        ({"command": ["bash"], "files": ["a\0b"]}, "files: expected a list of texts"),
        ({"command": ["bash"], "files": ["a" * 300]}, "files: expected a file, got 'aaa"),
        ({"command": ["a" * 300]}, "which is not on the PATH"),
        ({"command": ["bash", "-c", ":" * 140_000]}, "command: expected at most 100,000 bytes, got 140,006"),
        ({"command": ["bash"], "reuse": "yes"}, "reuse: expected bool, got 'yes'"),
    ],
)
def test_mistakes_are_found_before_anything_is_played(here, settings, what):
    with pytest.raises(InputError) as caught:
        build(**settings)
    assert what in str(caught.value)
    assert "pool.agents.tried" in str(caught.value)


def test_the_fingerprint_covers_the_contents_of_declared_files_and_not_their_place(here, monkeypatch):
    settings = {"command": ["bash", "mine.sh"], "files": ["mine.sh"]}
    first = build(**settings).fingerprint
    elsewhere = here / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.sh").write_text("exit 0\n")
    monkeypatch.chdir(elsewhere)
    assert build(**settings).fingerprint == first
    (elsewhere / "mine.sh").write_text("exit 1\n")
    assert build(**settings).fingerprint != first


def test_a_program_may_stand_in_the_command_itself_however_long_its_text(here):
    text = "echo '{}'; " * 400
    assert build(command=["bash", "-c", text, "/a/" * 2000]).parameters["command"][2] == text


def test_a_declared_file_may_be_the_program_itself(here):
    (here / "mine.sh").chmod(0o755)
    assert build(command=["./mine.sh"], files=["mine.sh"]).parameters["command"] == ["./mine.sh"]


def test_limits_of_a_program_stand_under_limits_as_those_of_a_placed_class_do_or_in_the_entry(here):
    together = build(command=["bash"], limits={"memory_mb": 512, "start_s": 3})
    assert together.seated.agent.launch.bounds.memory_mb == 512
    assert together.seated.agent.launch.bounds.start_s == 3
    flat = build(command=["bash"], memory_mb=512, start_s=3)
    mixed = build(command=["bash"], memory_mb=512, limits={"start_s": 3})
    assert together.fingerprint == flat.fingerprint == mixed.fingerprint
    assert together.parameters == flat.parameters


@pytest.mark.parametrize("name", ["memory", "mem_mb", "max_memory_mb", "memory_gb", "ram_mb"])
def test_a_limit_that_is_misnamed_is_answered_with_the_closest_first(here, name):
    with pytest.raises(InputError, match=rf"tried\.limits: {name}: expected one of memory_mb,"):
        build(command=["bash"], limits={name: 512})
    with pytest.raises(InputError, match="closest first: memory_mb,"):
        build(command=["bash"], **{name: 512})


def test_a_limit_that_is_given_twice_is_refused(here):
    with pytest.raises(InputError, match=r"tried\.memory_mb: given twice, in limits too"):
        build(command=["bash"], memory_mb=512, limits={"memory_mb": 256})
