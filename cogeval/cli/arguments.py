"""From the words after a verb to flags, names and overrides.

Invariant: a word that is not understood is an error that names what would have been; nothing is
dropped. Stdlib only: help and completion come through here.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field

from cogeval.cli.verbs import DEBUG, HELP, Flag, Verb
from cogeval.errors import InputError, closest_first, unknown_name

NO_GROUPS = ("hydra", "prompt")  # folders of conf/ that no override chooses from
NO_CONFIGS = ("prices",)  # files of conf/ that are no configuration of a run


@dataclass(frozen=True, slots=True)
class Arguments:
    """What follows a verb.

    Args:
        flags: long name -> value; True for a switch.
        words: names of runs or agents, in order.
        overrides: KEY=VALUE, ~KEY, in order.
    """

    flags: dict[str, str | bool] = field(default_factory=dict)
    words: list[str] = field(default_factory=list)
    overrides: list[str] = field(default_factory=list)

    def switch(self, flag: str) -> bool:
        """True when the flag was given."""
        return flag in self.flags

    def value(self, flag: str) -> str | None:
        """The flag's value; None when it was not given."""
        found = self.flags.get(flag)
        return found if isinstance(found, str) else None


def is_override(word: str) -> bool:
    """True for KEY=VALUE, +KEY=VALUE and ~KEY; paths are none, whatever is in them."""
    return word.startswith("~") or ("=" in word and not word.startswith((".", "/")))


def read_arguments(verb: Verb, argv: Sequence[str]) -> Arguments:
    """Reads the words after a verb; flags may stand anywhere, after ``--`` there are none.

    Raises:
        InputError: an unknown flag, a missing or wrong value, or an override that this verb does not
            take.
    """
    known = {name: flag for flag in (*verb.flags, DEBUG, HELP) for name in flag.names}
    given = Arguments()
    rest = list(argv)
    while rest:
        word = rest.pop(0)
        if word == "--":
            given.words.extend(rest)
            break
        if word.startswith("-") and word != "-":
            name, equals, value = word.partition("=")
            if name not in known:
                raise unknown_name(f"flag of cogeval {verb.name}", name, known)
            flag = known[name]
            given.flags[flag.names[0]] = _flag_value(flag, name, value if equals else None, rest)
        elif is_override(word) or (verb.overrides and not (verb.takes_run or verb.takes_agent)):
            given.overrides.append(word)
        else:
            given.words.append(word)
    _check_overrides(verb, given.overrides)
    return given


def _flag_value(flag: Flag, name: str, value: str | None, rest: list[str]) -> str | bool:
    """The value of a flag; takes it from the words that follow where needed."""
    if flag.value is None:
        if value is not None:
            raise InputError(f"{name} takes no value, got {value!r}")
        return True
    if value is None and flag.lone is not None:
        return rest.pop(0) if rest and rest[0] in flag.choices else flag.lone
    if value is None:
        if not rest:
            raise InputError(f"{name}: expected a value ({flag.value}), got none")
        value = rest.pop(0)
    if flag.choices and value not in flag.choices:
        listed = ", ".join(closest_first(value, flag.choices))
        raise InputError(f"{name}: expected one of {listed}, got {value!r}")
    return value


def _is_taken(key: str, taken: str) -> bool:
    """True for the key itself, and for keys below one that ends in a dot; "" takes every key."""
    if not taken or key == taken.removesuffix("."):
        return True
    return taken.endswith(".") and key.startswith(taken)


def _check_overrides(verb: Verb, overrides: Sequence[str]) -> None:
    """Refuses a key that this verb does not take, by name."""
    for override in overrides:
        if override[:1] in ("'", '"'):
            bare = override[1:].removesuffix(override[0])
            raise InputError(
                f"expected KEY=VALUE, got {override} with quotes of its own: those around the whole are for "
                f"the shell to take away; write {shlex.quote(bare)}"
            )
        if not verb.overrides:
            raise InputError(f"cogeval {verb.name} takes no KEY=VALUE, got {override!r}")
        key = override.partition("=")[0].lstrip("+~")
        # A group, too: tracking=off changes tracking. keys only.
        if not any(_is_taken(key, taken) for taken in verb.overrides):
            listed = ", ".join(p if not p.endswith(".") else p + "*" for p in verb.overrides)
            hint = (
                "; what is played belongs to the run: change it with a new `cogeval run`"
                if verb.name == "resume"
                else ""
            )
            raise InputError(f"cogeval {verb.name} takes only the keys {listed}, got {override!r}{hint}")
