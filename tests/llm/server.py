"""A real HTTP server on loopback that speaks as model services do, and misbehaves when it is told to.

Invariant: one behaviour a request, in the order they were queued, whichever thread answers; everything that
was asked is recorded. Knows the two wire formats and nothing of cogeval.

    with ModelServer() as server:
        server.behave(too_many(1.0), OK)          # the first request is refused, the second answered
        server.always(INVALID_UTF8, model="bad")  # every request for this model
        ... base_url=server.openai_url ...
        assert server.asks[0].headers["authorization"] == "Bearer sk-..."
"""

from __future__ import annotations

import contextlib
import json
import socket
import socketserver
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from asks import ANTHROPIC, OPENAI, Ask, invalid
from behaviours import (
    ARRAY,
    ARRAY_BODY,
    CUT,
    EMPTY,
    EMPTY_BODY,
    INJECTED_SPEECH,
    INJECTION,
    INVALID_UTF8,
    INVALID_UTF8_BODY,
    OK,
    OVERLOADED,
    REFUSAL,
    SERVER_ERROR,
    TEN_MB,
    TEN_MB_BODY,
    TRUNCATED,
    UNAUTHORIZED,
    WORDS_OF_INJECTION,
    Behaviour,
    indiscreet,
    slow,
    too_many,
)
from brains import sensible
from wires import anthropic_message, openai_completion

__all__ = [
    "ARRAY",
    "ARRAY_BODY",
    "Ask",
    "Behaviour",
    "Brain",
    "CUT",
    "EMPTY",
    "EMPTY_BODY",
    "INJECTED_SPEECH",
    "INJECTION",
    "INVALID_UTF8",
    "INVALID_UTF8_BODY",
    "ModelServer",
    "OK",
    "OVERLOADED",
    "REFUSAL",
    "SERVER_ERROR",
    "TEN_MB",
    "TEN_MB_BODY",
    "TRUNCATED",
    "UNAUTHORIZED",
    "WORDS_OF_INJECTION",
    "indiscreet",
    "slow",
    "too_many",
]

Brain = Callable[[Ask], str]


class ModelServer:
    """The server; a context manager.

    Args:
        brain: what a model would reply, from what it was asked.
    """

    def __init__(self, brain: Brain = sensible) -> None:
        self.brain = brain
        self.asks: list[Ask] = []  # every request that was read, in order
        self.num_endless_bytes = 0  # sent of bodies without end
        self.stopping = threading.Event()
        self._lock = threading.Lock()
        self._queued: dict[str | None, deque[Behaviour]] = defaultdict(deque)
        self._standing: dict[str | None, Behaviour] = {None: OK}
        self._http = _Listener(self)
        self._thread = threading.Thread(
            target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, name="model-server", daemon=True
        )

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()
        self._http.hang_up()

    @property
    def anthropic_url(self) -> str:
        """What an Anthropic SDK takes as base_url."""
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """What an OpenAI SDK takes as base_url."""
        return f"{self.anthropic_url}/v1"

    @property
    def num_requests(self) -> int:
        with self._lock:
            return len(self.asks)

    def behave(self, *behaviours: Behaviour, model: str | None = None) -> None:
        """Queues behaviours, one a request (of that model; None: of any without a queue of its own)."""
        with self._lock:
            self._queued[model].extend(behaviours)

    def always(self, behaviour: Behaviour, model: str | None = None) -> None:
        """What is done when the queue is empty."""
        with self._lock:
            self._standing[model] = behaviour

    def received(self, ask: Ask) -> Behaviour:
        """Records a request and says what to do about it."""
        with self._lock:
            self.asks.append(ask)
            for model in (ask.model, None):
                if self._queued[model]:
                    return self._queued[model].popleft()
                if model in self._standing:
                    return self._standing[model]
        raise AssertionError("expected a standing behaviour for any model")


class _Listener(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, owner: ModelServer) -> None:
        self.owner = owner
        self._open: set[socket.socket] = set()
        super().__init__(("127.0.0.1", 0), _Handler)

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)  # HTTPServer's looks the host's name up, which may take long
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self._open.discard(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news here."""

    def hang_up(self) -> None:
        """Ends the connections that clients keep alive."""
        for connection in list(self._open):
            connection.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else the body waits 40 ms for the client to acknowledge the headers
    server: _Listener

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Says nothing."""

    def do_GET(self) -> None:
        self._send(200, json.dumps({"object": "list", "data": []}).encode())

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        path = self.path.partition("?")[0]
        if path not in (ANTHROPIC, OPENAI):
            self._send(404, _error(path, "not_found_error", f"no such path: {path}"))
            return
        ask = Ask(path, {k.lower(): v for k, v in self.headers.items()}, json.loads(raw), time.monotonic())
        owner = self.server.owner
        behaviour = owner.received(ask)
        if wrong := invalid(ask):
            behaviour = Behaviour(status=400)
        if behaviour.delay_s and owner.stopping.wait(behaviour.delay_s):
            self.close_connection = True
            return
        if behaviour.is_endless:
            self._send_for_ever(behaviour.status, behaviour.body or b" ")
            return
        if behaviour.status != 200:
            self._refuse(ask, behaviour, wrong)
            return
        text = owner.brain(ask) if behaviour.text is None else behaviour.text
        if behaviour.is_truncated:
            text = text[: max(1, len(text) * 2 // 3)]
        body = behaviour.body
        if body is None:
            write = anthropic_message if path == ANTHROPIC else openai_completion
            written = write(ask, text, is_truncated=behaviour.is_truncated, is_refusal=behaviour.is_refusal)
            body = json.dumps(written).encode()
        if behaviour.is_garbled:
            body = body.replace(rb"{\"", b'{\\"\xff\xc3\x28', 1)
        self._send(200, body, is_cut=behaviour.is_cut)

    def _refuse(self, ask: Ask, behaviour: Behaviour, wrong: str | None) -> None:
        headers: dict[str, str] = {}
        after_s = behaviour.retry_after_s
        if after_s is not None and behaviour.is_dated:
            when = datetime.now(UTC) + timedelta(seconds=after_s)
            headers["retry-after"] = format_datetime(when, usegmt=True)
        elif after_s is not None:
            headers["retry-after"] = f"{after_s:g}"
        kind = {400: "invalid_request_error", 401: "authentication_error", 429: "rate_limit_error"}
        what = wrong or f"told to answer {behaviour.status}"
        if behaviour.is_indiscreet:
            what = f"incorrect API key provided: {ask.key}, {what}"
            headers["x-echo"] = ask.key
        if behaviour.location is not None:
            headers["location"] = behaviour.location
        body = behaviour.body
        if body is None:
            body = _error(ask.path, kind.get(behaviour.status, "api_error"), what)
        self._send(behaviour.status, body, headers, is_cut=behaviour.is_cut)

    def _send_for_ever(self, status: int, body: bytes) -> None:
        owner = self.server.owner
        self.close_connection = True
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.end_headers()
        with contextlib.suppress(OSError):  # the client has had enough
            while not owner.stopping.is_set():
                self.wfile.write(body)
                owner.num_endless_bytes += len(body)

    def _send(
        self, status: int, body: bytes, headers: Mapping[str, str] | None = None, *, is_cut: bool = False
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) // 2] if is_cut else body)
        self.wfile.flush()
        if is_cut:
            self.close_connection = True


def _error(path: str, kind: str, message: str) -> bytes:
    error = {"type": kind, "message": message}
    if path == ANTHROPIC:
        return json.dumps({"type": "error", "error": error, "request_id": "req_test"}).encode()
    return json.dumps({"error": {**error, "param": None, "code": None}}).encode()
