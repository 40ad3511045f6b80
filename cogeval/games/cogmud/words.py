"""What a sentence consists of: its words, and what is said between quotes.

Invariant: a pure function of the text, for any text. Must not know what a word means.
"""

from __future__ import annotations

import re
from typing import Final

from cogeval.games.cogmud.letters import APOSTROPHE, CURLY_APOSTROPHE, folded
from cogeval.games.league import BLANKS

QUOTES: Final = '"\u201c\u201d\u201e\u00ab\u00bb'
"""Every mark that opens or closes a quotation (R3.2)."""

_QUOTE: Final = re.compile(f"[{QUOTES}]")
_STRAIGHTENED: Final = str.maketrans(dict.fromkeys(QUOTES, '"'))


def lifted(sentence: str) -> tuple[str, str]:
    """Takes the first quoted span out of a sentence (R3.2).

    Returns:
        The rest, a blank where the span was and every double quote straight, and what was quoted,
        trimmed; "" when nothing was.
    """
    if '"' not in sentence and sentence.isascii():
        return sentence, ""
    opening = _QUOTE.search(sentence)
    closing = _QUOTE.search(sentence, opening.end()) if opening else None
    if opening is None or closing is None:
        return sentence.translate(_STRAIGHTENED), ""
    rest = f"{sentence[: opening.start()]} {sentence[closing.end() :]}"
    return rest.translate(_STRAIGHTENED), sentence[opening.end() : closing.start()].strip(BLANKS)


def words(text: str) -> list[str]:
    """The words of a text: small letters, ASCII digits and inner apostrophes (R3.1)."""
    found = folded(text).split()
    if APOSTROPHE in text or CURLY_APOSTROPHE in text:
        found = [word.removesuffix("'s").strip(APOSTROPHE) for word in found]
        found = [word for word in found if word]
    return found
