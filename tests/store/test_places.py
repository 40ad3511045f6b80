"""Places: what every store keeps, and addresses that are refused."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from pyarrow.fs import _MockFileSystem

from cogeval.errors import InputError
from cogeval.store.filesystems import Opened, open_file_system
from cogeval.store.objects import ObjectPlace
from cogeval.store.places import LocalPlace, place_at
from cogeval.store.probe import answer, probe
from cogeval.store.roots import MANIFEST, find_run, list_runs


@pytest.fixture(params=["local", "objects"])
def place(request, tmp_path):
    if request.param == "local":
        return LocalPlace(tmp_path / "a" / "b")
    mock = _MockFileSystem()
    return ObjectPlace(mock, "a/b", Opened(mock, "a/b", "mock://", (), False), patience_s=0.0)


def test_a_name_has_its_whole_content_or_does_not_exist(place):
    assert place.names() == []
    assert place.size("x") is None
    place.make()
    with pytest.raises(FileNotFoundError):
        place.read("x")
    place.publish("x", b"one", replace=False)
    with pytest.raises(FileExistsError):
        place.publish("x", b"two", replace=False)
    assert place.read("x") == b"one"
    place.publish("x", memoryview(b"three"), replace=True)
    assert (place.read("x"), place.size("x")) == (b"three", 5)


def test_names_are_listed_moved_and_removed(place):
    place.make()
    place.sub("deep").make()
    for name in ("b.json", "a.json", "c.txt"):
        place.publish(name, name.encode(), replace=False)
    assert place.names() == ["a.json", "b.json", "c.txt", "deep"]
    assert place.names("*.json") == ["a.json", "b.json"]
    place.rename("a.json", "z")
    place.remove("c.txt")
    place.remove("c.txt")  # again: nothing
    read = dict(place.read_each(["z", "a.json", "b.json"]))
    assert (read["z"], read["b.json"]) == (b"a.json", b"b.json")
    assert isinstance(read["a.json"], FileNotFoundError)
    place.remove_all()
    assert not place.exists()


def test_what_is_there_is_not_made_new(place):
    place.make(new=True)
    place.publish("x", b"", replace=False)
    with pytest.raises(FileExistsError):
        place.make(new=True)
    place.make()


def test_places_know_their_names_and_parents(place):
    below = place.sub("c")
    assert (below.name, below.parent.name) == ("c", "b")
    assert below.where("x").endswith("a/b/c/x")


def test_runs_are_found_by_their_manifests(place):
    for name in ("run-1", "run-2", "none"):
        place.sub(name).make()
    for name in ("run-1", "run-2"):
        place.sub(name).publish(MANIFEST, b"{}", replace=False)
    assert [run.name for run in list_runs(place)] == ["run-1", "run-2"]
    assert find_run("run-2", place).name == "run-2"
    with pytest.raises(InputError, match="could be any of run-1, run-2"):
        find_run("run", place)


def test_a_file_uri_is_a_directory(tmp_path):
    assert place_at(tmp_path.as_uri()) == LocalPlace(tmp_path)
    assert place_at("some/where") == LocalPlace(Path("some/where"))
    assert pickle.loads(pickle.dumps(place_at(tmp_path))) == LocalPlace(tmp_path)
    with pytest.raises(InputError, match="file:///absolute/path"):
        place_at("file://host/path")


def test_an_address_says_the_same_after_opening():
    uri = "s3://bucket/some//prefix/?scheme=http&region=us-east-1&endpoint_override=127.0.0.1:1"
    place = place_at(uri)
    assert place.uri == "s3://bucket/some/prefix?endpoint_override=127.0.0.1:1&region=us-east-1&scheme=http"
    assert place_at(place.uri).uri == place.uri
    assert place.sub("x").parent.uri == place.uri


@pytest.mark.parametrize(
    "uri",
    [
        "s3://AKIAHUSH:hush@bucket/prefix",
        "s3://AKIAHUSH@bucket/prefix",
        "s3://AKIAHUSH%3Ahush@bucket/prefix?region=x",
        "s3://bucket/prefix?secret_key=hush",
        "s3://bucket/prefix?session_token=hush",
        "hdfs://somebody:hush@host/prefix",
    ],
)
def test_an_address_with_a_secret_is_refused_and_not_repeated(uri):
    with pytest.raises(InputError, match="take it out") as caught:
        place_at(uri)
    assert "hush" not in str(caught.value).lower()


@pytest.mark.parametrize(
    ("uri", "says"),
    [
        ("s3://bucket/x?regoin=us-east-1", "region"),
        ("s3://?region=us-east-1", "bucket"),
        ("nowhere://x/y", "pyarrow.fs"),
        ("s3://bucket/x?anonymous=perhaps", "true or false"),
    ],
)
def test_an_address_that_cannot_be_opened_says_why(uri, says):
    with pytest.raises(InputError, match=says):
        open_file_system(uri)


def test_nodes_that_share_a_directory_pass_the_probe(tmp_path):
    probe(tmp_path, lambda uri, name: [("one", answer(uri, name)), ("two", answer(uri, name))])
    assert not list(tmp_path.iterdir())


def test_nodes_with_a_directory_of_their_own_are_named(tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "apart").mkdir()
    with pytest.raises(InputError, match=r"every node shares.* on three, two;"):
        probe(
            tmp_path / "shared",
            lambda uri, name: [
                ("one", answer(uri, name)),
                ("two", answer(str(tmp_path / "apart"), name)),
                ("three", f"{name}-elsewhere"),
            ],
        )
    assert not list((tmp_path / "shared").iterdir())
