"""A request as it arrives at the tests' server, read alike in both wire formats.

Invariant: an ask is what was sent, word for word; `invalid` says what a real service would refuse in it.
Knows nothing of the server that received it, nor of cogeval.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

ANTHROPIC: Final = "/v1/messages"
OPENAI: Final = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Ask:
    """One request, as it arrived."""

    path: str
    headers: Mapping[str, str]  # names in lower case
    body: Mapping[str, Any]
    at_s: float  # monotonic

    @property
    def model(self) -> str:
        return str(self.body.get("model"))

    @property
    def key(self) -> str:
        """The key that came with it, whichever header the SDK puts it in."""
        bearer = self.headers.get("authorization", "").removeprefix("Bearer ")
        return self.headers.get("x-api-key") or bearer

    @property
    def system(self) -> str:
        if self.path == ANTHROPIC:
            return _text(self.body.get("system", ""))
        return "\n".join(_text(m["content"]) for m in self.body["messages"] if m["role"] == "system")

    @property
    def user(self) -> str:
        return "\n".join(_text(m["content"]) for m in self.body["messages"] if m["role"] == "user")

    @property
    def tool(self) -> str | None:
        """Name of the tool that the reply must call; None: the reply is text."""
        choice = self.body.get("tool_choice")
        if not isinstance(choice, Mapping):
            return None
        name = choice.get("function", choice).get("name")
        return None if name is None else str(name)

    @property
    def schema(self) -> Mapping[str, Any] | None:
        """The JSON schema of the reply, wherever the wire format puts it; None: free text."""
        output = self.body.get("output_config") or {}
        wanted = self.body.get("response_format") or output.get("format") or self.body.get("output_format")
        if wanted:
            found: Mapping[str, Any] | None = wanted.get("schema") or wanted.get("json_schema", {}).get(
                "schema"
            )
            return found
        for tool in self.body.get("tools", ()):
            described: Mapping[str, Any] = tool.get("function", tool)
            return described.get("input_schema") or described.get("parameters")
        return None


def invalid(ask: Ask) -> str | None:
    """What a real service would not take; None: it is fine."""
    needed = ("model", "messages", "max_tokens") if ask.path == ANTHROPIC else ("model", "messages")
    for name in needed:
        if name not in ask.body:
            return f"{name}: field required"
    if ask.body.get("stream"):
        return "stream: expected false"
    if ask.path == ANTHROPIC and any(m["role"] == "system" for m in ask.body["messages"]):
        return 'messages: unexpected role "system": the system text is a field of its own'
    return None


def _text(content: Any) -> str:
    """The text of a message, which is a string or a list of blocks."""
    if isinstance(content, str):
        return content
    return "".join(str(block.get("text", "")) for block in content)
