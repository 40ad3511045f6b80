from __future__ import annotations

import pytest

from cogeval.cli.arguments import Arguments, read_arguments
from cogeval.cli.verbs import VERBS
from cogeval.errors import InputError


def read(verb: str, *argv: str) -> Arguments:
    return read_arguments(VERBS[verb], argv)


def test_flags_and_overrides_mix_in_any_order() -> None:
    got = read("run", "game=x", "-m", "--cfg", "job", "~pool", "--package=game", "+a=1")
    assert got.overrides == ["game=x", "~pool", "+a=1"]
    assert got.flags == {"--multirun": True, "--cfg": "job", "--package": "game"}


def test_words_that_are_no_overrides_name_runs_paths_with_equals_signs_too() -> None:
    got = read("rate", "a", "./b=c", "/d=e", "run.root=x", "--", "--odd")
    assert got.words == ["a", "./b=c", "/d=e", "--odd"]
    assert got.overrides == ["run.root=x"]


def test_an_optional_value_is_taken_only_when_it_is_one() -> None:
    assert read("run", "--info", "game=x").value("--info") == "all"
    assert read("run", "--info", "defaults", "game=x").value("--info") == "defaults"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("run", "--pln"), "unknown flag of cogeval run '--pln'; known, closest first: --plan"),
        (("run", "--cfg"), "--cfg: expected a value (WHICH), got none"),
        (("run", "--cfg", "jobs"), "--cfg: expected one of job"),
        (("run", "--plan=1"), "--plan takes no value, got '1'"),
        (("games", "a=b"), "cogeval games takes no KEY=VALUE, got 'a=b'"),
        (("status", "x", "seed=1"), "cogeval status takes only the keys run.root, got 'seed=1'"),
        (
            ("resume", "x", "seed=1"),
            "cogeval resume takes only the keys run.root, cluster.*, limits.*, tracking.*, store.*",
        ),
        (("resume", "x", "pool=random"), "got 'pool=random'; what is played belongs to the run"),
        (("show", "x", "ratings.anchor=a"), "takes only the keys run.root, rating.*"),
    ],
)
def test_what_a_verb_does_not_take_is_refused_by_name(argv: tuple[str, ...], said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(*argv)
    assert said in str(caught.value)
