"""Who only reads learns soon that nothing answers, and who writes waits."""

from __future__ import annotations

import socket
import time

import pytest
from s3_server import KEY, SECRET, credentials, root
from stored import needs_server, recorded

from cogeval.cli import status
from cogeval.cli.app import run_command
from cogeval.store import objects
from cogeval.store.failures import StoreDenied, StoreUnreachable
from cogeval.store.places import place_at
from cogeval.store.roots import list_runs
from cogeval.store.run import RunDir

pytestmark = needs_server


@pytest.fixture
def dead_port(monkeypatch):
    """A port on which nothing listens."""
    for name, value in credentials().items():
        monkeypatch.setenv(name, value)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        yield free.getsockname()[1]


def test_status_of_a_dead_endpoint_gives_up_in_ten_seconds_and_names_it(dead_port, capsys):
    began = time.monotonic()
    code = run_command(["status", "latest", f'run.root="{root(dead_port, "runs")}"'])
    assert time.monotonic() - began < 13
    assert code == 1
    (line,) = capsys.readouterr().err.splitlines()
    for part in (f"endpoint 127.0.0.1:{dead_port}", "s3://bucket/runs", "network", "AWS_ACCESS_KEY_ID"):
        assert part in line
    assert "resume" not in line
    assert KEY not in line
    assert SECRET not in line


def test_readers_have_ten_seconds_and_writers_a_minute(port, make):
    made = make(port)
    assert made.place.patience_s == objects.PATIENCE_S == 60
    for found in (RunDir.find("run-1", made.place.parent.uri), RunDir.find(made.uri, "runs")):
        assert found.place.patience_s == found.shards.patience_s == objects.HASTE_S <= 10
        assert found.uri == made.uri
        with found.lock():
            assert found.place.patience_s == found.shards.patience_s == objects.PATIENCE_S
            assert found.place.sub("log").patience_s == objects.PATIENCE_S
            assert not found.place.opened.is_hasty
        assert found.uri == made.uri
    assert place_at(made.uri).patience_s == objects.PATIENCE_S  # as workers and nodes open it
    assert [run.patience_s for run in list_runs(made.place.parent.uri)] == [objects.HASTE_S]


def test_who_watches_is_as_patient_as_who_writes(port, make, monkeypatch):
    made, watched = make(port), []
    monkeypatch.setattr(status, "watch", lambda run, *, as_json: watched.append(run) or 0)
    assert run_command(["status", "--watch", "run-1", f'run.root="{made.place.parent.uri}"']) == 0
    assert [run.place.patience_s for run in watched] == [objects.PATIENCE_S]
    assert watched[0].uri == made.uri


def test_a_reader_waits_out_a_burst_of_503(proxy, make):
    found = RunDir.find("run-1", make(proxy.port).place.parent.uri)
    proxy.fail("503", 5)
    assert recorded(found) == []
    assert len(proxy.seen) == 5


@pytest.mark.parametrize("fault", ["expired", "denied"])
def test_a_reader_whose_credentials_are_refused_is_told_where_keys_go_and_no_more(proxy, make, fault):
    found = RunDir.find("run-1", make(proxy.port).place.parent.uri)
    proxy.fail(fault, 10_000)
    with pytest.raises(StoreDenied, match="AWS_ACCESS_KEY_ID") as caught:
        found.scan()
    assert "cogeval resume" not in str(caught.value)
    with pytest.raises(StoreDenied, match="cogeval resume"):
        found.place.patient().names()


def test_what_a_writer_reads_of_a_store_that_is_down_names_resume(proxy, make, hasty):
    run = make(proxy.port)
    proxy.fail("503", 10_000)
    with pytest.raises(StoreUnreachable, match="cogeval resume"):
        run.place.read("manifest.json")


def test_an_address_with_a_percent_sign_leads_to_the_same_run_however_patient(port):
    within = root(port, "a%23b%25/runs")
    RunDir.create(within, "run-1", {"agents": []}, "")
    found = RunDir.find("run-1", within)
    assert found.place.directory == found.place.patient().directory == "bucket/a#b%/runs/run-1"
    assert found.place.patient().names() == found.place.names() == ["config.yaml", "manifest.json"]
