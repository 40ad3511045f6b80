"""A real S3 server on loopback, and a proxy before it that fails on demand."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pyarrow import fs

WEED = Path(sys.executable).parent / "weed"
KEY, SECRET = "key-that-nobody-sees", "secret-that-nobody-sees"
BUCKET = "bucket"
_READY_S = 60.0


def credentials() -> dict[str, str]:
    """The environment that has the server's credentials and asks no cloud for others."""
    return {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def root(port: int, prefix: str) -> str:
    """A directory of runs on the server, or on the proxy, of that port."""
    return f"s3://{BUCKET}/{prefix}?endpoint_override=127.0.0.1:{port}&region=us-east-1&scheme=http"


@contextlib.contextmanager
def served(directory: Path) -> Iterator[int]:
    """The server's port, while its credentials are in the environment."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in credentials().items():
            patch.setenv(name, value)
        with s3_server(directory) as port:
            yield port


@contextlib.contextmanager
def s3_server(directory: Path) -> Iterator[int]:
    """Starts the server with one bucket; gives its port. The credentials must be in the environment."""
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": KEY, "secretKey": SECRET}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    (directory / "s3.json").write_text(json.dumps({"identities": [identity]}))
    s3, master, volume, filer = _free_ports(4)
    command = [
        WEED, "-v=0", "server", f"-dir={directory}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1",
        "-master.volumeSizeLimitMB=64", "-volume.max=20", f"-master.port={master}", f"-volume.port={volume}",
        f"-filer.port={filer}", f"-filer.localSocket={directory / 'filer.sock'}", "-master.telemetry=false",
        f"-s3.localSocket={directory / 's3.sock'}", "-s3.port.iceberg=0", "-s3.port.lance=0", "-s3",
        f"-s3.port={s3}", f"-s3.config={directory / 's3.json'}",
    ]  # fmt: skip
    surroundings = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    with (directory / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=directory, env=surroundings)
    try:
        _await_bucket(s3, process, directory / "log")
        yield s3
    finally:
        process.kill()  # asked kindly it takes twenty seconds, and nothing of it is kept
        process.wait()
        for part, used in (("master", master), ("volume", volume), ("filer", filer), ("s3", s3)):
            Path(f"/tmp/seaweedfs-{part}-grpc-{used + 10_000}.sock").unlink(missing_ok=True)


def _await_bucket(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Makes the bucket as soon as the server can."""
    deadline = time.monotonic() + _READY_S
    while True:
        try:
            store = fs.S3FileSystem(
                endpoint_override=f"127.0.0.1:{port}",
                scheme="http",
                region="us-east-1",
                allow_bucket_creation=True,
                retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1),
            )
            store.create_dir(f"{BUCKET}/ready")
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"the S3 server did not start:\n{log.read_text()[-3000:]}") from None
            time.sleep(0.2)  # between two looks at whether it is there


def _free_ports(num: int) -> list[int]:
    """Ports that are free, and whose seconds (10,000 higher, for its own protocol) are free too."""
    found: list[int] = []
    while len(found) < num:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            if port + 10_000 > 65_535:
                port -= 20_000
            if port in found:
                continue
            with contextlib.suppress(OSError):
                if port != first.getsockname()[1]:
                    first.close()
                    with socket.socket() as third:
                        third.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 10_000))
                found.append(port)
    return found


class FaultyProxy:
    """Passes requests on to the server, and fails those that it was told to.

    Args:
        upstream: port of the server.
    """

    def __init__(self, upstream: int) -> None:
        self.seen: list[tuple[str, str, str]] = []  # method, path, the fault
        self._faults: list[list[object]] = []
        self._guard = threading.Lock()
        self._server = _ProxyServer(self, upstream)
        self.port = int(self._server.server_address[1])
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self._thread.start()

    def fail(
        self, fault: str, times: int, *, methods: str = "GET PUT POST HEAD DELETE", path: str = ""
    ) -> None:
        """Lets the next requests of these methods, with this in their path, fail.

        Args:
            fault: drop (in the middle of a body), lose (the answer), 503, expired, unknown_key, denied.
            times: how many requests.
            methods: of HTTP.
            path: part of the path.
        """
        with self._guard:
            self._faults.append([fault, times, methods.split(), path])

    def heal(self) -> None:
        """Nothing fails any more."""
        with self._guard:
            self._faults.clear()

    def close(self) -> None:
        """Ends it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def fault_for(self, method: str, path: str) -> str | None:
        """The fault of a request; None: pass it on."""
        with self._guard:
            for fault in self._faults:
                if fault[1] > 0 and method in fault[2] and fault[3] in path:
                    fault[1] -= 1
                    self.seen.append((method, path, str(fault[0])))
                    return str(fault[0])
        return None


class _ProxyServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, proxy: FaultyProxy, upstream: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.proxy, self.upstream = proxy, upstream


class _Handler(BaseHTTPRequestHandler):
    server: _ProxyServer
    protocol_version = "HTTP/1.1"

    def handle_any(self) -> None:
        fault = self.server.proxy.fault_for(self.command, self.path)
        if fault == "drop" and self.command in ("PUT", "POST"):
            self.rfile.read1(1024)
            return self._hang_up()
        body = self._body()
        if fault in _ANSWERS:
            return self._answer(*_ANSWERS[fault])
        return self._pass_on(body, cut=fault == "drop", deaf=fault == "lose")

    def __getattr__(self, name: str) -> object:
        if name.startswith("do_"):  # GET, PUT, and whatever else there is
            return self.handle_any
        raise AttributeError(name)

    def _pass_on(self, body: bytes, *, cut: bool, deaf: bool) -> None:
        upstream = http.client.HTTPConnection("127.0.0.1", self.server.upstream, timeout=30)
        with contextlib.closing(upstream) as connection:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "expect"):
                    connection.putheader(name, value)
            connection.endheaders(body or None, encode_chunked=False)
            response = connection.getresponse()
            data = response.read()
        if deaf:  # it is done, and nobody hears so
            return self._hang_up()
        self.send_response(response.status)
        for name, value in response.getheaders():
            if name.lower() not in ("transfer-encoding", "connection", "content-length", "date"):
                self.send_header(name, value)
        length = response.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
        if length is not None and response.status != 204:
            self.send_header("Content-Length", length)
        self.end_headers()
        self.wfile.write(data[: len(data) // 2] if cut else data)
        return self._hang_up() if cut else None

    def _body(self) -> bytes:
        """The body as it came, with the frames of its chunks."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        lines = [self.rfile.readline()]
        while size := int(lines[-1].partition(b";")[0], 16):
            lines += [self.rfile.read(size + 2), self.rfile.readline()]
        while lines[-1] != b"\r\n":  # trailers
            lines.append(self.rfile.readline())
        return b"".join(lines)

    def _answer(self, status: int, code: str) -> None:
        body = f"<Error><Code>{code}</Code><Message>{code} said the test</Message></Error>".encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _hang_up(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *args: object) -> None:
        """Says nothing."""


_ANSWERS = {
    "503": (503, "SlowDown"),
    "expired": (400, "ExpiredToken"),
    "unknown_key": (403, "InvalidAccessKeyId"),
    "denied": (403, "AccessDenied"),
    "no_bucket": (404, "NoSuchBucket"),
}
