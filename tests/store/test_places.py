"""Places: what every store keeps, and addresses that are refused."""

from __future__ import annotations

import pickle
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qsl, quote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow.fs import _MockFileSystem

from cogeval.errors import InputError
from cogeval.store.addresses import check_address
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
    place.make(new=True)
    with pytest.raises(FileNotFoundError):
        place.read("x")
    place.publish("x", b"one", replace=False)
    with pytest.raises(FileExistsError):
        place.publish("x", b"two", replace=False)
    assert place.read("x") == b"one"
    place.publish("x", memoryview(b"three"), replace=True)
    assert (place.read("x"), place.size("x")) == (b"three", 5)


def test_names_are_listed_moved_and_removed(place):
    place.make(new=True)
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
        place.sub(name).make(new=True)
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


SECRET_PLACES = (
    "{scheme}://{secret}@bucket/x",
    "{scheme}://{secret}%40bucket/x?region=a",
    "{scheme}://user:{secret}@bucket/x",
    "{scheme}://bucket/x#access_key={secret}",
    "{scheme}://bucket/x%23access_key={secret}",
    "{scheme}://bucket/x?region=a#secret={secret}",
    "{scheme}://bucket/x?endpoint_override=user:{secret}@host",
    "{scheme}://bucket/x?endpoint_override=user%3A{secret}%2540host:80",
    "{scheme}://bucket/x?endpoint_override=http://h/?secret_key={secret}",
    "{scheme}://bucket/x?region=a;secret_key={secret}",
    "{scheme}://bucket/x?Account%4Bey={secret}",
    "{scheme}://bucket/x?pwd={secret}",
    "{scheme}://bucket/x;secret_key={secret}/y",
    "{scheme}://bucket/x%3Bsecret_key={secret}",
    "{scheme}://bucket/x&secret_key={secret}",
    "{scheme}://bucket/user:{secret}@y",
    "{scheme}://bucket/x?region={secret}&region=b",
)


@given(
    st.sampled_from(SECRET_PLACES),
    st.sampled_from(["s3", "S3", "gs", "gcs"]),
    st.text("abcXYZ0189_-~.+%/", min_size=6, max_size=20).map(lambda text: f"q7{text}"),
)
def test_no_address_with_a_secret_passes_nor_is_it_repeated(form, scheme, secret):
    if "@" in form.partition("?")[0] or "%40" in form:
        secret = secret.replace("/", "")  # else it is a bucket and a path
    with pytest.raises(InputError) as caught:
        place_at(form.format(scheme=scheme, secret=quote(secret, safe="/")))
    assert secret not in str(caught.value)
    assert quote(secret, safe="/") not in str(caught.value)


@pytest.mark.parametrize(
    "uri",
    [
        "s3://bucket/a=b/key=1/x?endpoint_override=http://127.0.0.1:8333&region=eu-west-1",
        "s3://bucket/x%23y",
        "abfs://container@account.dfs.core.windows.net/x",
        "hdfs://somebody@host/x",
        "file:///a/../b",
    ],
)
def test_an_address_without_a_secret_passes(uri):
    check_address(uri)


@pytest.mark.parametrize("uri", ["s3://bucket/../x", "s3://bucket/%2e%2e/x", "gs://../x", "s3://bucket/./x"])
def test_an_address_does_not_climb(uri):
    with pytest.raises(InputError, match=r"without \. and \.\."):
        place_at(uri)


@pytest.mark.parametrize("text", ["s3:/bucket/x", "file:rel", "S3:bucket", "gs:/x", "memory:/x"])
def test_a_uri_without_its_slashes_is_no_directory_unless_it_says_so(text):
    with pytest.raises(InputError, match=f"directory of that name is ./{text.partition(':')[0]}:"):
        place_at(text)
    here = place_at(f"./{text}")
    assert here == LocalPlace(Path(text))
    assert place_at(here.uri) == here


@pytest.mark.parametrize("text", ["C:\\runs", "runs/a:b", "12:30/runs", "/x/s3:/y", "exp:1"])
def test_a_path_with_a_colon_is_a_path(text):
    assert place_at(text) == LocalPlace(Path(text))


def test_a_bucket_that_is_not_there_is_named():
    mock = _MockFileSystem()
    place = ObjectPlace(mock, "nobucket/x", Opened(mock, "nobucket/x", "s3://", (), True), patience_s=0.0)
    with pytest.raises(InputError, match="there is no bucket 'nobucket'"):
        find_run("latest", place)
    mock.create_dir("nobucket")
    with pytest.raises(InputError, match="make one with"):
        find_run("latest", place)


@pytest.mark.parametrize(
    ("uri", "limit"),
    [("gs://b/x", "60"), ("gs://b/x?retry_limit_seconds=5", "5"), ("gcs://b/x?scheme=http", "60")],
)
def test_google_storage_has_a_minute_unless_the_user_says_otherwise(monkeypatch, uri, limit):
    asked = []

    def from_uri(uri):
        asked.append(uri)
        return _MockFileSystem(), "b/x"

    opener = SimpleNamespace(FileSystem=SimpleNamespace(from_uri=from_uri))
    monkeypatch.setattr("cogeval.store.filesystems.fs", opener)
    assert place_at(uri).uri == uri
    assert dict(parse_qsl(urlsplit(asked[0]).query))["retry_limit_seconds"] == limit


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
