"""`cogeval status`: from records alone, once or watched; and what merging leaves as it was."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from typing import Any

import pytest

from cogeval.cli import status, watching
from cogeval.cli.picturing import line_of
from cogeval.cli.standing import PACE_S, _pace, standing
from cogeval.cli.watching import DIGEST_S, GRACE_S, wait_for_run, watch
from cogeval.store import damage, intact, totals
from cogeval.store.lock import LockHolder
from cogeval.store.run import RunDir
from cogeval.store.shards import Sums, checked_json, read_checked_json
from cogeval.store.totals import complete_entry


def without_sums(run: RunDir) -> None:
    """Makes the records as an older version wrote them."""
    for path in run.shards_path.glob("*.json"):
        value = read_checked_json(path.read_bytes())
        for name in ("sums", "superseded_sums", "merged"):
            del value[name]
        path.write_bytes(checked_json(value))


def test_records_alone_are_read_in_a_run_that_is_not_small(
    cogeval, make_run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(done=5)
    before = cogeval("status", "latest", "--json").json
    monkeypatch.setattr(totals, "SMALL_BYTES", 0)

    def never(*_: Any) -> None:
        raise AssertionError("a file of rows was opened")

    for module in (damage, intact):
        monkeypatch.setattr(module, "checked_bytes", never)
    said = cogeval("status", "latest", "--json").json
    assert (said["digest"], said["checked"]) == (None, "sizes")
    assert {**said, "digest": before["digest"], "checked": "checksums"} == before
    assert f"cogeval show {run.run_id} computes it" in " ".join(cogeval("status", "latest").out.split())
    path = min(run.shards_path.glob("*.seats.arrow"))
    path.write_bytes(path.read_bytes()[:-1])
    assert path.name in cogeval("status", "latest").err


def test_shards_of_an_older_version_are_read_for_their_sums(cogeval, make_run) -> None:
    run = make_run()
    before = cogeval("status", "latest", "--json").json
    without_sums(run)
    assert cogeval("status", "latest", "--json").json == before
    assert cogeval("audit", "latest").code == 0


def test_the_digest_is_the_logged_one_as_long_as_it_fits(cogeval, make_run, monkeypatch) -> None:
    monkeypatch.setattr(totals, "SMALL_BYTES", 0)
    run = make_run()
    with run.lock():
        run.append_log(complete_entry("ab" * 32, run.records()))
    assert cogeval("status", "latest", "--json").json["digest"] == "ab" * 32
    max(run.shards_path.glob("*.json")).unlink()
    assert cogeval("status", "latest", "--json").json["digest"] is None


def test_audit_compares_the_sums_of_records_with_the_rows(cogeval, make_run) -> None:
    run = make_run()
    path = min(run.shards_path.glob("*.json"))
    value = read_checked_json(path.read_bytes())
    value["sums"]["faults"] += 1
    value["sums"]["agents"]["quack"]["seats"] -= 1
    path.write_bytes(checked_json(value))
    answer = cogeval("audit", "latest", "--json")
    assert answer.code == 1
    (finding,) = answer.json["findings"]
    assert finding["rule"] == "record.sums"
    assert "faults: recorded 1, recomputed 0" in finding["message"]
    assert "agents: " in finding["message"]


def test_compact_leaves_everything_that_is_read_as_it_was(cogeval, make_run) -> None:
    run = make_run()

    def said() -> list[dict[str, Any]]:
        status = cogeval("status", "latest", "--json").json
        for name in ("shards", "bytes"):
            del status[name]
        replayed = cogeval("replay", "latest", "5", "--json").json
        return [status, cogeval("show", "latest", "--json").json, replayed]

    before = said()
    plan = cogeval("compact", "latest", "--plan", "--json").json
    assert (plan["planned"], plan["merged"], plan["made"], plan["shards_after"]) == (True, 2, 1, 1)
    assert len(run.records()) == 2
    assert "would merge 2 shards into 1" in cogeval("compact", "latest", "--plan").out
    done = cogeval("compact", "latest", "--json").json
    assert (done["planned"], done["merged"], done["made"], done["shards_after"]) == (False, 2, 1, 1)
    assert said() == before
    assert cogeval("audit", "latest").code == 0
    assert cogeval("reproduce", "latest").code == 0
    assert "nothing to merge, 1 shard" in cogeval("compact", "latest").out


def test_compact_refuses_a_run_that_is_driven_and_sizes_that_are_none(cogeval, make_run) -> None:
    run = make_run()
    with run.lock():
        answer = cogeval("compact", "latest")
    assert answer.code == 2
    assert "is being driven by process" in answer.err
    for wrong in ("0", "-3", "large", "nan"):
        assert "--target-mb: expected megabytes" in cogeval("compact", "latest", f"--target-mb={wrong}").err
    assert len(run.records()) == 2


def test_watching_ends_with_the_run(cogeval, make_run) -> None:
    make_run()
    digest = cogeval("status", "latest", "--json").json["digest"]
    answer = cogeval("status", "latest", "--watch")
    assert answer.code == 0
    assert answer.out == f"complete, 8 of 8 episodes, 0 faults, digest {digest}\n"
    assert cogeval("status", "latest", "--watch", "--json").json["state"] == "complete"


def test_watching_waits_for_the_digest_that_the_driver_writes_last(make_run, capsys, monkeypatch) -> None:
    run = make_run()
    monkeypatch.setattr(totals, "SMALL_BYTES", 0)
    waits: list[float] = []

    def written(wait: float) -> None:
        waits.append(wait)
        if len(waits) == 2:
            with run.lock():
                run.append_log(complete_entry("ab" * 32, run.records()))

    assert watch(run, as_json=False, sleep=written) == 0
    assert capsys.readouterr().out == f"complete, 8 of 8 episodes, 0 faults, digest {'ab' * 32}\n"
    assert len(waits) == 2


def test_watching_does_not_wait_for_ever_for_a_digest(make_run, capsys, monkeypatch) -> None:
    run = make_run()
    monkeypatch.setattr(totals, "SMALL_BYTES", 0)
    waits: list[float] = []
    assert watch(run, as_json=False, sleep=waits.append) == 0
    assert sum(waits) == DIGEST_S
    assert capsys.readouterr().out == "complete, 8 of 8 episodes, 0 faults\n"


def test_watching_the_latest_run_waits_for_the_first_one(cogeval, make_run, capsys, monkeypatch) -> None:
    assert cogeval("status", "latest").code == 2
    assert wait_for_run("runs", sleep=lambda _: make_run(name="first") and None)
    answer = capsys.readouterr()
    assert answer.out == ""
    assert "waiting for a run in " in answer.err

    def ctrl_c(_: float) -> None:
        raise KeyboardInterrupt

    assert not wait_for_run("elsewhere", sleep=ctrl_c)
    monkeypatch.setattr(status, "wait_for_run", lambda root: wait_for_run(root, sleep=ctrl_c))
    assert cogeval("status", "latest", "--watch", "run.root=elsewhere").code == 130
    assert cogeval("status", "first", "--watch", "run.root=elsewhere").code == 2
    assert cogeval("status", "latest", "--watch").code == 0


@pytest.mark.parametrize("flags", [[], ["--json"]])
def test_who_watches_a_run_that_was_complete_already_is_told_so(cogeval, make_run, flags: list[str]) -> None:
    make_run(name="old")
    answer = cogeval("status", "latest", "--watch", *flags)
    assert answer.code == 0
    assert answer.err == (
        "cogeval: old was complete already; to watch another run, begin it first, or name it\n"
    )
    assert answer.out.count("\n") == 1


def test_who_watches_a_run_until_it_is_complete_is_told_nothing_of_that(
    make_run, monkeypatch, capsys
) -> None:
    run = make_run(name="now")
    looks = [{**standing(run), "state": "running"}, standing(run), standing(run)]
    monkeypatch.setattr(watching, "standing", lambda *_, **__: looks.pop(0))
    assert watch(run, as_json=False, sleep=lambda _: None) == 0
    out, err = capsys.readouterr()
    assert [line.partition(",")[0] for line in out.splitlines()] == ["running", "complete"]
    assert err == ""


def test_watching_gives_up_when_nobody_drives_the_run(cogeval, make_run, capsys) -> None:
    run = make_run(done=5)
    waits: list[float] = []
    assert watch(run, as_json=False, sleep=waits.append) == 0
    assert sum(waits) <= GRACE_S + 5.0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "interrupted, 5 of 8 episodes, 0 faults"
    assert lines[-1] == f"To play what is missing: cogeval resume {run.run_id}"


@pytest.mark.parametrize(
    ("address", "is_named"),
    [("10.0.0.5:6379", True), ("ray://head:10001", True), ("auto", False), ("local", False), (None, False)],
)
def test_who_goes_on_is_told_what_to_add_where_a_named_cluster_is_gone(
    cogeval, make_run, address: str | None, is_named: bool
) -> None:
    run = make_run(*([f"cluster.address={address}"] if address else []), done=5)
    told = cogeval("status", "latest").out.splitlines()[-1]
    begun = f"To play what is missing: cogeval resume {run.run_id}"
    if is_named:
        assert told.startswith(f"{begun} (on the cluster at {address}, as before; where that is gone, ")
        assert "add cluster.address=null" in told
    else:
        assert told == begun


def test_watching_goes_on_while_somebody_drives_and_stops_at_ctrl_c(make_run, capsys) -> None:
    run = make_run(done=5)
    num_looks = 0

    def sleep(_: float) -> None:
        nonlocal num_looks
        num_looks += 1
        if num_looks == 9:
            raise KeyboardInterrupt

    with run.lock():
        assert watch(run, as_json=False, sleep=sleep) == 130
    answer = capsys.readouterr()
    assert answer.out.splitlines() == ["running, 5 of 8 episodes, 0 faults"] * 9
    assert answer.err == ""


def test_a_terminal_is_redrawn_until_ctrl_c(make_run) -> None:
    run = make_run(done=5)
    ours, theirs = pty.openpty()
    with run.lock():
        command = [sys.executable, "-m", "cogeval", "status", str(run.path), "--watch"]
        environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
        with subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
        ) as process:
            os.close(theirs)
            seen = b""
            while seen.count(b"5 recorded of 8 scheduled") < 2:  # drawn, and drawn again over itself
                seen += os.read(ours, 4096)
            assert b"\x1b[1A" in seen
            assert b" 62%" in seen  # beside its bar
            assert b"last look at " in seen
            process.send_signal(signal.SIGINT)
            try:
                while part := os.read(ours, 4096):
                    seen += part
            except OSError:  # the other end is closed
                pass
            assert process.wait() == 130
    os.close(ours)
    assert b"Traceback" not in seen


def holder(start: float) -> LockHolder:
    return LockHolder("here", 1, start, start, "token")


def test_the_pace_is_that_of_this_driver_in_the_last_minutes() -> None:
    now = 100_000.0
    earlier = (Sums(episodes=500, first_s=now - 5000, last_s=now - 4000), Sums())
    early = (Sums(episodes=100, first_s=now - 50, last_s=now - 30), Sums())
    late = (Sums(episodes=80, first_s=now - 30, last_s=now), Sums())
    assert _pace([earlier], 0, holder(now - 60), now) is None
    assert _pace([earlier, early, late], 20, holder(now - 60), now) == pytest.approx(200 / 50)
    straddling = (Sums(episodes=100, first_s=now - 1.5 * PACE_S, last_s=now - 0.5 * PACE_S), Sums())
    assert _pace([straddling, early], 0, holder(now - 2 * PACE_S), now) == pytest.approx(150 / PACE_S)


def test_a_line_has_what_matters() -> None:
    facts = {
        "state": "running", "recorded": 90, "open_episodes": 10, "void": 2, "scheduled": 1000,
        "episodes_per_s": 12.3, "left_s": 73.0, "faults": 1, "damaged": [{}], "spent_usd": 1.25,
    }  # fmt: skip
    assert line_of(facts) == (
        "running, 102 of 1,000 episodes, 10 of them in open shards, 12/s, 1:13 to go, 1 fault, 2 void, "
        "1 damaged shard, $1.25"
    )
