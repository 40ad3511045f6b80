"""A damaged merged shard beside what it replaced: whatever looks at the run says what resume finds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from broken_files import DAMAGES

from cogeval.cli.recorded import num_missing, read_run
from cogeval.store.compact import compact
from cogeval.store.recover import recover
from cogeval.store.run import RunDir


@pytest.fixture(params=DAMAGES)
def broken(make_run: Callable[[], RunDir], request: pytest.FixtureRequest) -> RunDir:
    """A run of two shards and the one that they were merged into, whose episodes are damaged."""
    run = make_run()
    kept = {path: path.read_bytes() for path in run.shards_path.iterdir()}
    compact(run)
    for path, data in kept.items():  # it was killed before it had removed them
        path.write_bytes(data)
    (path,) = run.shards_path.glob("compact-*.episodes.arrow")
    request.param(path)
    return run


SETS_ASIDE = (
    "It held 8 episodes, which all count, for the shards merged into it are still there; `cogeval resume"
)


def test_status_and_show_say_what_resume_finds(cogeval, broken) -> None:
    before = cogeval("status", "latest", "--json")
    assert (before.json["recorded"], before.json["missing"], before.json["state"]) == (8, 0, "complete")
    assert [shard["elsewhere"] for shard in before.json["damaged"]] == [8]
    assert before.json["digest"] is not None
    assert SETS_ASIDE in before.err
    people = cogeval("status", "latest")
    assert "8 recorded of 8 scheduled, 0 void, 0 missing" in people.out
    assert "To play what is missing" not in people.out
    shown = cogeval("show", "latest", "--json")
    assert (shown.json["recorded"], shown.json["digest"]) == (8, before.json["digest"])
    assert SETS_ASIDE in shown.err
    recover(broken.path)  # as resume begins
    after = cogeval("status", "latest", "--json")
    assert (after.err, after.json["damaged"]) == ("", [])
    assert {**after.json, "damaged": None} == {**before.json, "damaged": None}
    assert num_missing(read_run(broken)) == 0


def test_audit_names_the_damage_and_recomputes_the_rest(cogeval, broken) -> None:
    answer = cogeval("audit", "latest", "--json")
    assert (answer.code, answer.json["shards"]) == (1, 2)
    assert [finding["rule"] for finding in answer.json["findings"]] == ["intact"]
    assert answer.json["digest"] == cogeval("status", "latest", "--json").json["digest"]


def test_compact_says_how_many_shards_there_were_and_are(cogeval, broken) -> None:
    plan = cogeval("compact", "latest", "--plan", "--json").json
    assert (plan["shards_before"], plan["merged"], plan["made"], plan["shards_after"]) == (2, 2, 1, 1)
    answer = cogeval("compact", "latest")
    assert "merged 2 shards into 1" in answer.out
    assert "; 1 shard in all" in answer.out
    assert SETS_ASIDE in answer.err
    assert len(broken.records()) == 1
    again = cogeval("compact", "latest", "--json").json
    assert (again["shards_before"], again["merged"], again["shards_after"]) == (1, 0, 1)


def test_of_a_part_that_is_lost_status_says_how_much(cogeval, broken) -> None:
    for path in broken.shards_path.glob("w1-0000.*"):  # the killed merger had removed it already
        path.unlink()
    answer = cogeval("status", "latest", "--json")
    assert (answer.json["recorded"], answer.json["missing"], answer.json["state"]) == (4, 4, "interrupted")
    assert "It held 8 episodes, 4 of which count" in answer.err
    assert "plays the other 4 again" in answer.err
