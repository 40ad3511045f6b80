"""A real S3 server for each file of this folder, a proxy before it that fails, and runs in it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from s3_server import FaultyProxy, root, served

from cogeval.store.objects import ObjectPlace
from cogeval.store.run import RunDir


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    with served(tmp_path_factory.mktemp("s3")) as found:
        yield found


@pytest.fixture
def proxy(port):
    made = FaultyProxy(port)
    yield made
    made.close()


@pytest.fixture
def make(tmp_path, request):
    """Makes a run on the server or a proxy of that port, with a spool of the test's own."""

    def made(port, run_id="run-1"):
        manifest = {"config_digest": "c0ffee", "spool_dir": str(tmp_path / "spool"), "agents": []}
        prefix = f"{request.node.name.replace('[', '-').replace(']', '')}/runs"
        return RunDir.create(root(port, prefix), run_id, manifest, "game: made_up\n")

    return made


@pytest.fixture
def run(port, make):
    return make(port)


@pytest.fixture
def hasty(monkeypatch):
    """A second of patience, not a minute."""
    monkeypatch.setattr("cogeval.store.objects.PATIENCE_S", 1.0)
    monkeypatch.setattr(ObjectPlace, "__init__", _hasty(ObjectPlace.__init__))


def _hasty(init):
    def made(self, fs, directory, opened, patience_s=1.0):
        init(self, fs, directory, opened, patience_s)

    return made
