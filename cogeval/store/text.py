"""Text as agents send it, made storable in UTF-8 without loss.

Invariant: `read_text(store_text(s)) == s` for every str. Half of a surrogate pair, which Python
strings may hold and UTF-8 may not, is written as U+FDD0 (a code point that Unicode reserves for
such internal use) and four hexadecimal digits; U+FDD0 itself is written the same way.
"""

from __future__ import annotations

import re

_MARK = "\ufdd0"
_UNSTORABLE = re.compile("[\ud800-\udfff\ufdd0]")
_WRITTEN = re.compile("\ufdd0([0-9a-f]{4})")


def store_text(text: object) -> str:
    """The text as it is stored; something that is no text becomes the name of its type."""
    if not isinstance(text, str):
        return f"<{type(text).__name__}>"
    if text.isascii():
        return text
    return _UNSTORABLE.sub(lambda found: f"{_MARK}{ord(found[0]):04x}", text)


def read_text(stored: str) -> str:
    """The text as the agent sent it."""
    if _MARK not in stored:
        return stored
    return _WRITTEN.sub(lambda found: chr(int(found[1], 16)), stored)
