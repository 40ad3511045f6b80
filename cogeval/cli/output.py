"""What commands write: one JSON object, warnings, and plain words for numbers.

Invariant: stdout holds the answer and nothing else; warnings and progress go to stderr. NaN and the
infinities, which JSON does not have, become null.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import RenderableType

from cogeval.cli.app import complain
from cogeval.report.layout import escaped, make_console, to_text


def print_json(value: Mapping[str, Any]) -> None:
    """Writes one JSON object on stdout, in one line."""
    sys.stdout.write(json.dumps(_finite(value), ensure_ascii=False, allow_nan=False) + "\n")


def show(*parts: RenderableType) -> None:
    """Writes tables, an empty line between two of them, and lines of text, which are never broken.

    Args:
        parts: strings are lines, so that what is to be copied stays whole; the rest is laid out.
    """
    console = make_console(sys.stdout)
    for i, part in enumerate(parts):
        if isinstance(part, str):
            sys.stdout.write(part + "\n")
            continue
        if i and not isinstance(parts[i - 1], str):
            sys.stdout.write("\n")
        if console.is_terminal:
            console.print(part)
        else:  # a file or a pipe: no trailing spaces
            sys.stdout.write(to_text(part, console.width))


def warn(messages: Iterable[str]) -> None:
    """Writes warnings on stderr, one line each."""
    for message in messages:
        complain(f"warning: {escaped(' '.join(message.split()))}")


def duration(seconds: float) -> str:
    """A time span as people say it: ``0:05``, ``12:40``, ``3:02:11``."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def size(num_bytes: float) -> str:
    """A size as people say it: ``12 KB``, ``3.4 MB``."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if num_bytes < 1000:
            decimals = 0 if unit == "bytes" or num_bytes >= 10 else 1
            return f"{num_bytes:.{decimals}f} {unit}"
        num_bytes /= 1000
    return f"{num_bytes:,.1f} TB"


def counted(num: int, word: str, plural: str | None = None) -> str:
    """A number with its word: ``1 episode``, ``1,200 episodes``."""
    return f"{num:,} {word if num == 1 else plural or word + 's'}"


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(k): _finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
