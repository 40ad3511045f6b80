"""What a network and a service do to a run in an object store: lost connections, 503, refused keys."""

from __future__ import annotations

import time

import pytest
from s3_server import KEY, SECRET, root
from stored import commit_all, filled, needs_server, recorded

from cogeval.errors import InputError
from cogeval.store.checks import check_run
from cogeval.store.failures import StoreDenied, StoreUnreachable
from cogeval.store.recover import recover
from cogeval.store.run import RunDir
from cogeval.store.shards import record_name
from cogeval.store.spool import spool_of

pytestmark = needs_server


def test_no_runs_in_a_bucket_that_is_not_there_says_so(port):
    with pytest.raises(InputError, match="there is no bucket 'nobucket'"):
        RunDir.find("latest", root(port, "runs").replace("://bucket", "://nobucket"))


def test_a_missing_bucket_is_named(proxy, make):
    proxy.fail("no_bucket", 10_000, methods="PUT")
    with pytest.raises(InputError, match="bucket that exists"):
        make(proxy.port)


def test_a_dropped_connection_costs_a_second_try(proxy, make):
    run = make(proxy.port)
    proxy.fail("drop", 2, methods="PUT", path="decisions.arrow")
    proxy.fail("lose", 1, methods="PUT", path="seats.arrow")
    proxy.fail("lose", 1, methods="PUT", path=record_name("w0-0000"))
    with run.lock():
        sealed = filled(run).seal()
        run.commit(sealed, sealed.indexes)
    proxy.fail("drop", 2, methods="GET", path="episodes.arrow")
    assert recorded(run) == list(range(6))
    assert [fault for _, _, fault in proxy.seen] == ["drop", "drop", "lose", "lose", "drop", "drop"]
    assert check_run(run) == []


def test_a_burst_of_503_is_waited_out(proxy, make):
    run = make(proxy.port)
    proxy.fail("503", 12, path="w0-0000")
    sealed = filled(run).seal()
    run.commit(sealed, sealed.indexes)
    assert len(proxy.seen) == 12
    assert recorded(run) == list(range(6))


@pytest.mark.parametrize("fault", ["expired", "unknown_key", "denied"])
def test_refused_credentials_are_named_and_lose_nothing(proxy, make, fault, recwarn):
    run = make(proxy.port)
    worker = filled(run)
    proxy.fail(fault, 10_000)
    began = time.monotonic()
    with pytest.raises(StoreDenied, match="cogeval resume") as caught:
        worker.seal()
    assert time.monotonic() - began < 20  # at once, however long a store that is down is waited for
    assert KEY not in str(caught.value)
    assert SECRET not in str(caught.value)
    with pytest.raises(StoreDenied):  # a record that cannot be read is not a damaged one
        run.scan()
    proxy.heal()  # renewed
    commit_all(run, recover(run.place))
    assert recorded(run) == list(range(6))


def test_an_expired_token_is_called_so(proxy, make):
    run = make(proxy.port)
    proxy.fail("expired", 10_000, methods="PUT")
    with pytest.raises(StoreDenied, match=r"credentials have expired.*Renew"):
        run.place.publish("x", b"x", replace=True)


def test_a_store_that_is_down_keeps_the_streams(proxy, make, hasty):
    run = make(proxy.port)
    worker = filled(run)
    proxy.fail("503", 10_000)
    with pytest.raises(StoreUnreachable, match="on this host"):
        worker.seal()
    proxy.heal()
    commit_all(run, recover(run.place))
    assert recorded(run) == list(range(6))


def test_no_credential_is_in_any_object_or_stream(run):
    with run.lock():
        run.append_log({"event": "void", "index": 7, "reason": "given up"})
        sealed = filled(run).seal()
        run.commit(sealed, sealed.indexes)
        filled(run, "w1-0000", range(6, 8))
        spooled = [path.read_bytes() for path in spool_of(run.place).iterdir()]
        lock = [run.place.sub("lock").read(name) for name in run.place.sub("lock").names()]
    objects = [run.place.read(name) for name in ("manifest.json", "config.yaml")]
    objects += [data for _, data in run.shards.read_each(run.shards.names())]
    objects += [data for _, data in run.place.sub("log").read_each(run.place.sub("log").names())]
    for data in (*objects, *spooled, *lock, run.uri.encode(), repr(run.place).encode()):
        assert KEY.encode() not in data
        assert SECRET.encode() not in data
