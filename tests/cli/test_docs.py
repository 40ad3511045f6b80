from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from cogeval.cli.arguments import read_arguments
from cogeval.cli.verbs import VERBS
from cogeval.config import conf_dir

DOCS = (Path(__file__).parents[2] / "docs" / "cli.md").read_text(encoding="utf-8")


def test_the_page_names_every_verb_and_every_state_field(cogeval, make_run) -> None:
    table = DOCS.partition("## Configuration")[0]
    for verb in VERBS:
        assert f"`{verb}" in table
    make_run(done=1)
    for field in cogeval("status", "latest", "--json").json:
        assert f"`{field}`" in DOCS


@pytest.mark.parametrize("line", re.findall(r"^cogeval (?!-sc).*$", DOCS, re.MULTILINE))
def test_every_command_of_the_page_can_be_read(line: str) -> None:
    verb, *rest = shlex.split(line)[1:]
    read_arguments(VERBS[verb], rest)


@pytest.mark.parametrize("verb", VERBS)
def test_every_example_of_the_help_can_be_read(verb: str) -> None:
    for example in VERBS[verb].examples:
        program, name, *rest = shlex.split(example)
        assert (program, name) == ("cogeval", verb)
        read_arguments(VERBS[verb], rest)


def test_the_configuration_is_found_beside_the_package() -> None:
    assert (conf_dir() / "config.yaml").is_file()
