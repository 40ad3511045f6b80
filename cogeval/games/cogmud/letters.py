"""Which characters are letters and what their small form is, by the tables of the league's own language.

Invariant: the same on every Python, whose own Unicode tables differ from version to version. Must not
know what a sentence is.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain
from typing import Final

_LETTERS: Final = (
    "1t q 6 q 1b 1 a 1 4 1 5 n 1 v 1 cq 4 c e 5 7 1 1 1 3l 5 1 2 2 4 1 1 6 1 1 3 1 1 1 k 1 2b 1 3v 8 4m 1 "
    "12 2 1 6 15 1z r 4 4 19 17 z 2 1 2r 1 1 f 2 7 2 a 3 2 1 g 1 1 u t 2h b 1 o x 9 2 4 1 5 m 4 1 9 1 3 1 "
    "n p 7 b 1h l 1 8 1y 1i 3 1 i 1 7 a f g 4 8 2 2 2 m 1 7 1 1 3 4 3 1 g 1 d 2 1 3 e 2 a 1 8 6 4 2 2 m 1 "
    "7 1 2 1 2 1 2 v 4 1 1 j 3 g 9 1 3 1 m 1 7 1 2 1 5 3 1 i 1 f 2 n 1 b 8 2 2 2 m 1 7 1 2 1 5 3 1 u 2 1 "
    "3 f 1 h 1 1 6 3 3 1 4 3 2 1 1 1 2 3 2 3 3 3 c m 1 1g 8 1 3 1 n 1 g 3 1 q 3 5 2 u 1 4 8 1 3 1 n 1 a 1 "
    "5 3 1 w 1 1 2 f 2 i 8 1 3 1 15 2 1 g 1 5 3 8 3 o 6 5 i 3 o 1 9 1 1 2 7 1m 1c 1 2 c 7 1m 2 1 1 1 5 1 "
    "o 1 1 1 a 1 2 9 1 2 5 1 1 l 4 w 1 1r 8 1 10 r 5 37 17 k 1 g 6 4 4 3 1 3 2 7 3 4 d c 1 h 12 1 1 5 1 2 "
    "17 1 99 1 4 2 7 1 1 1 4 2 15 1 4 2 x 1 4 2 7 1 1 1 4 2 f 1 1l 1 4 2 1v 11 g g 2e 2 6 3 h8 2 h 1 q 5 "
    "23 6 8 7 d 1 4 e i e i e d 1 3 f 1g z 1 4 1 1v 2h 7 5 2 y 1 1 5 1y a v 1d u 2 5 b 18 4 q 1i n 9 1h "
    "2a 1 2l 1b h 7 1j u d 2 a 18 q 10 15 3 a 10 2 9 7 17 2 3 15 4 1 6 1 2 3 1 5 5c 1s 7q 2 6 2 12 2 6 2 "
    "8 1 1 1 1 1 1 1 v 2 1h 1 7 1 1 3 3 1 7 3 4 2 6 4 d 5 3 1 7 38 1 d 1 g d 2t 1 4 1 2 a 1 1 3 5 6 1 1 1 "
    "1 1 1 4 1 b 2 4 5 5 4 1 1g 2 22j 1b 1 1b 1 3p 6 4 3 2 c 12 1 1 5 1 2 1k 7 1 g n 9 7 1 7 1 7 1 7 1 7 "
    "1 7 1 7 1 7 28 1 d1 2 16 5 5 2 4 2e 6 3 1 2i 1 4 5 17 1 2m h r 1h g e8 52u 22 g6o g wd 1v 1a 2 7h 3 "
    "g a 2 k 1b g v 2 1y 1d 9 2 2v 2 1h 2 5 1c b 1 3 1 4 1 n t 1g e 1e 1q 6 3 1 1 2 b s a n p t 7 1b s 1 "
    "g 5 1 a a 5 1 15 n 3 1 8 k n 3 1 3 1e 1 1 3 2 2 5 2 1 1 1 o 3 2 b 7 3 c 6 2 6 2 6 9 7 1 7 1 17 1 c 8 "
    "37 t 8mc c n 4 1d 6is a6 2 2y 12 7 c 5 5 1 1 a 1 d 1 5 1 1 1 2 1 2 1 30 x a3 i 1s 2 1i 14 c 38 5 1 "
    "3r 10 q 6 q b 2h 3 6 2 6 2 6 2 3 z c 1 q 1 j 1 2 1 f 2 e y 3f at t 3 1d 1b w d k 1 8 6 12 a u 2 10 4 "
    "8 1c 4e i 10 4 10 4 14 8 1g 4c 8n 9 m a 8 48 6 2 1 1 18 1 2 3 1 2 n a n 9 v 1t j 1 2 a m a q 1y 1k 6 "
    "2 1s 1 f 4 1 3 1 t 16 t 3 t z 8 1 s r 1i a m a j d i 32 21 1j 1f d 1f d 10 d8 t a 1 8 m 4a n c 1h 23 "
    "19 w p q 10 t 1 b z 3 1 c 1c e 4 l 1 1 1 z i 1 p 2c 7 1 1 1 4 1 f 1 a 7 1b 12 8 2 2 2 m 1 7 1 2 1 5 "
    "3 1 i 1 c 5 4e 1h i 4 k 1 w 1c k 2 1 1 54 1b 15 4 10 1c k 1 1n 17 d 1 1z r 6d 18 38 1s v 1 4g 8 2 13 "
    "g 1 1 1 s 1 a 14 7 1 l 1 b 1a j 1 y 1l 7b 9 1 11 h 1 1d u 34 7 1 2 1 12 l 1 p 6 1 2 1 w e 1 93 j 7h "
    "pm 6e 5g 24c tr 34h g7 6nt ft 7 v 35 u i 1c g 4 v l 5 j j4 1s 3k 23 5 1 1u d 1s 2 1 1 s 4qg 8 kz 7bh "
    "7z 1d 3 h 4 8 b0 1s4 2z 5 d 3 9 7 a 4me 2d 1 1z 1 2 2 1 2 2 2 4 1 c 1 1 1 7 1 1t 1 4 2 8 1 7 1 s 1 4 "
    "1 5 1 1 3 7 1 9g 2 p 1 p 1 v 1 p 1 v 1 p 1 v 1 p 1 v 1 p 1 8 1tg 19 a 7 g 1 a9 18 104 5h 1n 1w 7 1 "
    "xg 4 1 r 1 2 1 1 2 1 1 a 1 4 1 1 1 1 6 1 4 1 1 1 1 1 1 3 1 2 1 1 2 1 1 1 1 1 1 1 1 1 1 2 1 1 2 4 1 7 "
    "1 4 1 4 1 1 1 a 1 h 5 3 1 5 1 h 3es wyf 15 379 b 66 2 4g2 e 5rl 2e7 f2 "
)
"""Gap and length of each range of letters, in base 36, beginning at code point 0."""

_CAPITALS: Final = (
    "1t 1 q w 3i 1 n w n 1 7 w 13 2 o 1 1b 1 1 -5j 1 2 3 1 6 2 8 1 g 2 n 1 19 1 1 -3d 0 2 3 1 7 1 1 5u 0 "
    "2 2 1 3 1 1 5q 0 1 1 1 1 1 2 5p 1 1 1 1 2 1 1 27 0 1 1 5m 0 1 1 5n 0 1 1 1 1 1 1 5p 0 1 1 5r 1 1 1 "
    "5v 0 1 1 5t 0 1 1 1 3 1 1 5v 0 1 1 5x 1 1 1 5y 0 2 3 1 5 1 1 62 0 1 1 1 1 1 1 62 2 1 1 1 1 1 1 62 0 "
    "1 1 1 1 1 2 61 1 2 2 1 3 1 1 63 0 1 1 1 3 1 1 1 7 1 1 2 0 1 1 1 1 1 1 2 0 1 1 1 1 1 1 2 0 2 9 1 i 2 "
    "9 1 i 1 1 2 0 2 2 1 3 1 1 -2p 0 1 1 -1k 0 2 k 1 13 1 1 -3m 1 2 9 1 n 1 1 8bv 0 1 1 1 1 1 1 -4j 0 1 1 "
    "8bs 2 1 1 1 1 1 1 -5f 0 1 1 1x 0 1 1 1z 0 2 5 1 89 2 2 1 5 1 1 1 8 1 1 38 6 1 1 12 1 1 3 11 3 1 1 1s "
    "1 1 2 1r 2 1 h w h 1 9 w 17 1 1 8 8 2 c 1 r 1 1 -1o 2 1 1 1 1 1 1 -7 0 1 1 1 2 1 3 -3m 2 1 g 28 f 1 "
    "w w 27 2 h 1 15 2 r 1 1h 1 1 f 0 2 7 1 e 2 1c 1 2o 1 12 1c 29a 1 12 5ls 12 1 1 5ls 5 1 1 5ls k2 1 28 "
    "tzk 27 1 6 8 1pb 1 17 -2bk 18 1 3 -2bk 8y 2 23 1 4d 1 1 -5vj 1 2 1c 1 2v 1 8 -8 f 1 6 -8 f 1 8 -8 f "
    "1 8 -8 f 1 6 -8 g 2 4 -8 e 1 8 -8 v 1 8 -8 f 1 8 -8 f 1 8 -8 f 1 2 -8 1 1 2 -22 1 1 1 -9 b 1 4 -2e 3 "
    "1 1 -9 b 1 2 -8 1 1 2 -2s d 1 2 -8 1 1 2 -34 1 1 1 -7 b 1 2 -3k 1 1 2 -3i 1 1 1 -9 89 1 1 -5st 3 1 1 "
    "-6gv 0 1 1 -6di 6 1 1 s 28 1 1 1 22k 1 1b 1c 2n 1 1 1 1 1 1 -8af 0 1 1 -2xy 0 1 1 -89z 2 2 3 1 5 1 1 "
    "-8bg 0 1 1 -8al 0 1 1 -8bj 0 1 1 -8bi 1 1 1 1 2 1 1 1 8 1 2 -8cf 1 2 1e 1 2y 2 2 1 6 1 1 1 nyl 2 n 1 "
    "1r 2 e 1 4h 2 7 1 f 2 v 1 1y 2 2 1 3 1 1 -r9g 0 2 5 1 c 1 1 1 1 1 1 -wmg 2 2 2 1 5 2 a 1 j 1 1 -wn8 "
    "0 1 1 -wnj 0 1 1 -wnf 0 1 1 -wn5 0 1 1 -wn8 1 1 1 -wlu 0 1 1 -wmi 0 1 1 -wlx 0 1 1 ps 0 2 6 1 d 1 1 "
    "1 1 1 1 -1c 0 1 1 -wn7 0 1 1 -raw h96 1 q w ym 1 14 14 4v 1 10 14 1jj 1 1f 1s 2e7 1 w w gwv 1 w w "
    "o8v 1 y y "
)
"""Runs of capitals, in base 36: gap from the last run's first, step, count, distance to the small form."""

APOSTROPHE: Final = "'"
CURLY_APOSTROPHE: Final = "\u2019"


def _numbers(words: str) -> list[int]:
    return [int(word, 36) for word in words.split()]


def letter_ranges() -> Iterator[tuple[int, int]]:
    """The first code point of every range of letters and the first one after it, ascending."""
    numbers = iter(_numbers(_LETTERS))
    end = 0
    for gap, length in zip(numbers, numbers, strict=True):
        start = end + gap
        end = start + length
        yield start, end


def small_forms() -> Iterator[tuple[int, int]]:
    """The code points of every capital letter and its small form, ascending."""
    numbers = iter(_numbers(_CAPITALS))
    start = -1
    for gap, step, count, distance in zip(numbers, numbers, numbers, numbers, strict=True):
        start += 1 + gap
        for code in range(start, start + step * count, step):
            yield code, code + distance


_BOUNDS: Final = tuple(chain.from_iterable(letter_ranges()))
_SMALL: Final = dict(small_forms())


def is_letter(code: int) -> bool:
    """True when the code point is a letter."""
    return bisect_right(_BOUNDS, code) % 2 == 1


def small(code: int) -> int:
    """The small form of a code point, itself when it has none: always one for one."""
    return _SMALL.get(code, code)


class _Folding(dict[int, str]):
    """A table for `str.translate`: the ASCII half is at hand, the rest is looked up as it comes."""

    def __missing__(self, code: int) -> str:
        return chr(small(code)) if is_letter(code) else " "


def _ascii() -> Iterator[tuple[int, str]]:
    for code in range(128):
        character = chr(code)
        kept = character.isalnum() or character == APOSTROPHE
        yield code, character.lower() if kept else " "


_FOLDING: Final = _Folding(chain(_ascii(), [(ord(CURLY_APOSTROPHE), APOSTROPHE)]))


def folded(text: str) -> str:
    """The text in small letters, ASCII digits and straight apostrophes; every other character is a blank.

    Args:
        text: any; as long as what is returned.
    """
    return text.translate(_FOLDING)
