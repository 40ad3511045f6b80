"""Where the open shards of a run in an object store are looked for: every directory that its marks name."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest
from s3_server import FaultyProxy, root
from stored import STORE_TESTS, commit_all, filled, needs_server, recorded

from cogeval.cli.arguments import Arguments
from cogeval.cli.status import one_run
from cogeval.errors import InputError
from cogeval.store.checks import check_run
from cogeval.store.marks import SPOOLS, Mark, has_streams, is_ours, put_mark, read_marks
from cogeval.store.recover import hot_shards, open_indexes, recover
from cogeval.store.run import RunDir
from cogeval.store.spend import SpendFile, filed_usd
from cogeval.store.spool import make_spool, out_of_reach, spool_of, spools_of
from cogeval.store.totals import complete_entry

pytestmark = needs_server


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """Sets the temporary directory of this process."""

    def to(name):
        (tmp_path / name).mkdir(exist_ok=True)
        monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / name))
        return tmp_path / name

    to("one")
    return to


@pytest.fixture
def loose(port, request, temporary):
    """A run whose spool is where the temporary directory is."""
    prefix = f"{request.node.name.replace('[', '-').replace(']', '')}/runs"
    return RunDir.create(root(port, prefix), "run-1", {"agents": []}, "game: made_up\n")


def test_open_shards_are_counted_and_recovered_after_the_temporary_directory_changed(loose, temporary):
    filled(loose).close()
    first = spool_of(loose.place)
    temporary("two")
    filled(loose, "w1-0000", range(6, 9)).close()
    temporary("three")
    assert spool_of(loose.place).parent.parent.name == "three"
    assert hot_shards(loose.place) == ["w0-0000", "w1-0000"]
    assert open_indexes(loose.place).tolist() == list(range(9))
    commit_all(loose, recover(loose.place, "w1"))
    assert recorded(loose) == [6, 7, 8]
    commit_all(loose, recover(loose.place))
    assert recorded(loose) == list(range(9))
    assert not first.exists()
    assert (hot_shards(loose.place), recover(loose.place), check_run(loose)) == ([], [], [])


def test_a_mark_is_there_before_the_first_stream(loose, monkeypatch):
    assert read_marks(loose.place) == []
    seen = []
    monkeypatch.setattr("cogeval.store.write.HotStreams", lambda *_: seen.extend(read_marks(loose.place)))
    with pytest.raises(AttributeError):  # no stream was made
        filled(loose)
    mark = Mark(socket.gethostname(), str(spool_of(loose.place)))
    assert seen == [mark]


def test_a_mark_says_whether_a_stream_is_left(loose):
    first, second = filled(loose), filled(loose, "w1-0000", range(6, 9))
    first.seal()
    assert [mark.is_emptied for mark in read_marks(loose.place)] == [False]
    second.seal()
    assert [mark.is_emptied for mark in read_marks(loose.place)] == [True]
    filled(loose, "w0-0001", range(9, 12)).close()
    assert [mark.is_emptied for mark in read_marks(loose.place)] == [False]
    recover(loose.place)
    assert [mark.is_emptied for mark in read_marks(loose.place)] == [True]


def test_a_run_in_a_directory_has_no_marks(tmp_path):
    run = RunDir.create(tmp_path / "runs", "run-1", {}, "")
    filled(run).close()
    assert (read_marks(run.place), out_of_reach(run.place)) == ([], [])
    assert spools_of(run.place) == [run.shards_path]
    assert sorted(run.place.names()) == ["config.yaml", "manifest.json", "shards"]


def test_an_episode_is_kept_though_its_spool_cannot_be_marked(port, request, temporary):
    proxy = FaultyProxy(port)
    try:
        run = RunDir.create(root(proxy.port, f"{request.node.name}/runs"), "run-1", {"agents": []}, "")
        proxy.fail("denied", 10_000, path="spools")
        writer = filled(run)
        assert proxy.seen
        assert has_streams(spool_of(run.place))
        sealed = writer.seal()
        run.commit(sealed, sealed.indexes)
        assert recorded(run) == list(range(6))
    finally:
        proxy.close()


def forge(run, directory, host=None, name=None):
    """Puts what may be no mark of ours where marks are, by default under the name that it would have."""
    host = socket.gethostname() if host is None else host
    digest = hashlib.sha256(f"{host} {directory}".encode()).hexdigest()[:12]
    data = msgspec.json.encode(Mark(host, directory))
    run.place.sub(SPOOLS).publish(name or f"{host[:60] or '_'}-{digest}.json", data, replace=True)


@pytest.mark.parametrize("kind", ["link", "open to others", "of another run", "a file", "relative"])
def test_a_mark_leads_into_no_directory_but_a_private_one_of_this_run(loose, temporary, tmp_path, kind):
    filled(loose).close()
    spool = spool_of(loose.place)
    temporary("two")
    elsewhere = tmp_path / "elsewhere"
    if kind == "link":
        spool.rename(elsewhere)
        spool.symlink_to(elsewhere)
    elif kind == "open to others":
        spool.chmod(0o777)
    elif kind == "of another run":
        spool.rename(elsewhere)
        put_mark(loose.place, elsewhere, is_emptied=False)
    elif kind == "a file":
        shutil.rmtree(spool)
        spool.write_text("")
    else:
        spool.rename(elsewhere)
        forge(loose, os.path.relpath(spool))
    held = sorted(path.name for path in elsewhere.iterdir()) if elsewhere.exists() else []
    assert spools_of(loose.place) == [spool_of(loose.place)]
    assert (hot_shards(loose.place), recover(loose.place)) == ([], [])
    assert held == (sorted(path.name for path in elsewhere.iterdir()) if elsewhere.exists() else [])
    assert os.path.lexists(spool) == (kind in {"link", "open to others", "a file"})


@pytest.mark.parametrize("data", [b"", b"{", b"[]", b'{"host": 1}', b"\xff\xfe"], ids=range(5))
def test_a_mark_that_cannot_be_read_is_left_out(loose, data):
    filled(loose).close()
    loose.place.sub(SPOOLS).publish(f"{socket.gethostname()}-x.json", data, replace=True)
    assert len(read_marks(loose.place)) == 1
    assert hot_shards(loose.place) == ["w0-0000"]


@pytest.mark.parametrize("host", [None, "node-7"])
@pytest.mark.parametrize(
    "directory",
    [
        "/somewhere/\0x",
        "/somewhere/\0/{spool}",
        "",
        "/",
        "{spool}",
        "somewhere/{spool}",
        "/somewhere/../{spool}",
        "/somewhere//{spool}",
        "/somewhere/{spool}/",
        "/somewhere/other-0123456789ab",
        "/somewhere/run-1",
        "/somewhere/run-1-0123456789AB",
        f"/{'x' * 256}/{{spool}}",
        f"{'/x' * 2100}/{{spool}}",
        f"/{'x' * 100_000}",
    ],
    ids=range(15),
)
def test_a_mark_that_none_of_us_can_have_written_is_none_for_all_who_read_marks(loose, host, directory):
    filled(loose).close()
    ours = read_marks(loose.place)
    forge(loose, directory.format(spool="run-1-0123456789ab"), host)
    assert read_marks(loose.place) == ours == read_marks(loose.place, here=True)
    assert out_of_reach(loose.place) == []
    assert spools_of(loose.place) == [spool_of(loose.place)]
    assert (hot_shards(loose.place), filed_usd(loose.uri)) == (["w0-0000"], 0.0)
    commit_all(loose, recover(loose.place))
    assert recorded(loose) == list(range(6))


def test_a_mark_under_another_name_than_its_own_or_of_a_host_that_cannot_be_is_none(loose):
    filled(loose).close()
    ours = read_marks(loose.place)
    forge(loose, "/somewhere/run-1-0123456789ab", name=f"{socket.gethostname()}-x.json")
    forge(loose, "/somewhere/run-1-0123456789ab", host="")
    forge(loose, "/somewhere/run-1-0123456789ab", host="n" * 256)
    assert len(loose.place.sub(SPOOLS).names()) == 4
    assert read_marks(loose.place) == ours
    forge(loose, "/somewhere/run-1-0123456789ab", host="node-7")
    assert Mark("node-7", "/somewhere/run-1-0123456789ab") in read_marks(loose.place)


def test_however_many_directories_are_out_of_reach_a_few_are_named_and_the_rest_counted(loose, capsys):
    for number in range(12):
        forge(loose, f"/somewhere/{number}/run-1-0123456789ab", f"node-{number:02d}")
    lines = asked(loose, capsys)
    assert [
        f"may lie on node-{number:02d} in /somewhere/{number}/run-1-" in lines[number] for number in range(3)
    ] == [True] * 3
    assert lines[3:] == [
        "cogeval: warning: the same of 9 more directories of open shards of run-1, on node-03, node-04, "
        f"node-05 and 6 more; each is named in {loose.place.where(SPOOLS)}"
    ]


def test_a_long_path_is_named_by_its_beginning_and_its_end(loose, capsys):
    forge(loose, f"/begin{'/x' * 2000}/run-1-0123456789ab", "node-7")
    (line,) = asked(loose, capsys)
    assert "in /begin/x/x" in line
    assert "/x/x/run-1-0123456789ab: resume there" in line
    assert len(line) < 450


def test_a_present_spool_that_is_a_link_is_not_followed(loose, tmp_path):
    filled(loose).close()
    spool_of(loose.place).rename(tmp_path / "elsewhere")
    spool_of(loose.place).symlink_to(tmp_path / "elsewhere")
    assert recover(loose.place) == []
    assert len(list((tmp_path / "elsewhere").iterdir())) == 4
    with pytest.raises(InputError, match=r"directory of ours .* store.spool_dir=DIR"):
        make_spool(spool_of(loose.place))


def test_what_others_may_look_into_is_closed_to_them_and_what_they_may_write_into_is_refused(temporary):
    spool = Path(tempfile.gettempdir()) / f"cogeval-spool-{os.getuid()}" / "run-1"
    spool.mkdir(parents=True)  # as a log makes it
    for directory in (spool, spool.parent):
        directory.chmod(0o755)
    make_spool(spool)
    assert [p.stat().st_mode & 0o777 for p in (spool, spool.parent)] == [0o700, 0o700]
    assert is_ours(spool)
    spool.parent.chmod(0o722)
    with pytest.raises(InputError, match=r"nobody else can write into, got mode drwx-w--w-"):
        make_spool(spool)


def test_the_money_in_a_spool_of_another_temporary_directory_counts(loose, temporary):
    file = SpendFile(loose.uri)
    file.write(1.5, 0.25)
    file.close()
    assert [mark.is_emptied for mark in read_marks(loose.place)] == [True]  # money is no stream
    temporary("two")
    assert filed_usd(loose.uri) == 1.75
    file = SpendFile(loose.uri)
    file.write(2.0, 0.0)
    file.close()
    temporary("three")
    assert filed_usd(loose.uri) == 2.0


def asked(run, capsys):
    """What a command that takes the run says on stderr."""
    one_run(Arguments(words=["run-1"], overrides=[f'run.root="{run.place.parent.uri}"']))
    return capsys.readouterr().err.splitlines()


def test_a_spool_that_is_gone_with_its_streams_is_named_until_a_resume_has_looked(loose, capsys):
    filled(loose).close()
    assert asked(loose, capsys) == []
    spool = spool_of(loose.place)
    shutil.rmtree(spool)
    (line,) = asked(loose, capsys)
    assert line.startswith("cogeval: warning: open shards of run-1 lay on this host")
    assert str(spool) in line
    assert socket.gethostname() in line
    assert recover(loose.place) == []
    assert asked(loose, capsys) == []


def test_a_spool_that_was_emptied_is_not_named_when_it_is_gone(loose, capsys):
    filled(loose).seal()
    assert not spool_of(loose.place).exists()
    assert asked(loose, capsys) == []


def test_a_spool_on_another_host_is_named_while_nobody_drives_and_the_run_is_not_complete(
    loose, capsys, monkeypatch
):
    with monkeypatch.context() as there:
        there.setattr(socket, "gethostname", lambda: "node-7")
        filled(loose).close()
    (line,) = asked(loose, capsys)
    assert "may lie on node-7 in" in line
    assert "resume there" in line
    assert read_marks(loose.place, here=True) == []
    recover(loose.place)  # of this host: the other one's stays
    assert len(asked(loose, capsys)) == 1
    with loose.lock():
        assert asked(loose, capsys) == []
        loose.append_log(complete_entry("d1935", []))
    assert asked(loose, capsys) == []


KILLED = """
import os, signal, sys
sys.path[:0] = sys.argv[1:3]
from stored import filled
from cogeval.store.run import RunDir
filled(RunDir(sys.argv[3]))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_process_killed_under_another_tmpdir_had_flushed_is_recovered(loose, tmp_path):
    command = [sys.executable, "-c", KILLED, str(STORE_TESTS), str(STORE_TESTS / "s3"), loose.uri]
    (tmp_path / "theirs").mkdir()
    killed = subprocess.run(command, env={**os.environ, "TMPDIR": str(tmp_path / "theirs")}, timeout=60)
    assert killed.returncode == -9
    assert open_indexes(loose.place).tolist() == list(range(6))
    commit_all(loose, recover(loose.place))
    assert recorded(loose) == list(range(6))
