"""The words that a user puts around a game's own text: what makes two agents of one model.

Invariant: a prompt is a value, read where the pool is built; workers get its text and open no file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from cogeval.core.game import Json
from cogeval.core.game import Prompt as GameText
from cogeval.errors import InputError, unknown_name
from cogeval.files import conf_dir

_NAME = re.compile(r"[a-z0-9][a-z0-9_\-]*", re.ASCII)
NONE = "none"


class PromptText(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Text around the game's; each part stands in a paragraph of its own, "" adds nothing."""

    system_before: str = ""
    system_after: str = ""
    user_after: str = ""

    def around(self, text: GameText) -> GameText:
        """The whole text of a request."""
        return GameText(
            system=_joined(self.system_before, text.system, self.system_after),
            user=_joined(text.user, self.user_after),
        )


def _joined(*parts: str) -> str:
    return "\n\n".join(part.strip("\n") for part in parts if part.strip())


def known_prompts() -> list[str]:
    """Names of the prompts that come with cogeval."""
    return [NONE, *sorted(path.stem for path in (conf_dir() / "prompt").glob("*.yaml"))]


def read_prompt(place: str, prompt: Json, prompt_file: str | None, game: str) -> PromptText:
    """The prompt that an agent's settings mean.

    Args:
        place: of the agent in the configuration, for messages.
        prompt: a name, a text, or the parts by name; None: the game's default.
        prompt_file: YAML with the parts, or a text; None: see `prompt`.
        game: name of the game, which is the name of its default.

    Raises:
        InputError: an unknown name or part, a file that cannot be read, or both settings at once.
    """
    if prompt_file is not None:
        if prompt is not None:
            raise InputError(f"{place}: expected prompt or prompt_file, got both")
        return _read_file(f"{place}.prompt_file", Path(prompt_file))
    if prompt is None:
        prompt = game if game in known_prompts() else NONE
    if isinstance(prompt, Mapping):
        return _parts(f"{place}.prompt", dict(prompt))
    if not isinstance(prompt, str):
        raise InputError(f"{place}.prompt: expected a name, a text or a mapping, got {prompt!r}")
    if prompt == NONE:
        return PromptText()
    if not _NAME.fullmatch(prompt):
        return PromptText(system_after=prompt)
    if prompt not in known_prompts():
        unknown = unknown_name(f"prompt in {place}.prompt:", prompt, known_prompts())
        raise InputError(f"{unknown}; a file of your own goes into prompt_file")
    return _read_file(f"{place}.prompt", conf_dir() / "prompt" / f"{prompt}.yaml")


def _read_file(place: str, path: Path) -> PromptText:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"{place}: cannot read {str(path)!r}: {error}") from error
    if path.suffix not in (".yaml", ".yml"):
        return PromptText(system_after=text)
    try:
        parts = msgspec.yaml.decode(text)
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(f"{place}: expected YAML in {str(path)!r}: {error}") from error
    return _parts(f"{place}: {str(path)!r}", parts)


def _parts(place: str, parts: Json) -> PromptText:
    fields = PromptText.__struct_fields__
    if not isinstance(parts, dict):
        raise InputError(f"{place}: expected a mapping of {', '.join(fields)}, got {type(parts).__name__}")
    for key, value in parts.items():
        if key not in fields:
            raise unknown_name(f"part of a prompt in {place}:", key, fields)
        if not isinstance(value, str):
            raise InputError(f"{place}: expected text in {key}, got {value!r}")
    return PromptText(**parts)
