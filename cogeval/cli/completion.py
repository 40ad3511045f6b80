"""Shell completion: Hydra's own for overrides, verbs, flags and runs in front of it.

Invariant: a query prints candidates or nothing: whatever goes wrong, no message lands in the user's
line. Installed as Hydra's applications are: ``eval "$(cogeval -sc install=bash)"``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from cogeval.cli.arguments import NO_GROUPS, is_override
from cogeval.cli.verbs import ALL_OVERRIDES, DEBUG, HELP, SHELL_COMPLETION, VERBS, Flag, Verb
from cogeval.errors import InputError, unknown_name

_SHELLS = ("bash", "zsh", "fish")

_HOW = """\
Completion of verbs, flags, runs and KEY=VALUE, for the shell that you are in:
  bash  eval "$(cogeval -sc install=bash)"
  zsh   autoload -Uz bashcompinit && bashcompinit && eval "$(cogeval -sc install=zsh)"
  fish  cogeval -sc install=fish | source
Put that line into the shell's start-up file to keep it; uninstall=SHELL takes it back.
"""


def shell_completion(words: Sequence[str]) -> int:
    """Carries out ``--shell-completion [install=SHELL | uninstall=SHELL | query=SHELL]``."""
    first = words[0].partition("=")
    rest = [first[2]] if first[1] else list(words[1:])
    if not rest:
        sys.stdout.write(_HOW)
        return 0
    command, _, shell = rest[0].partition("=")
    if command not in ("install", "uninstall", "query") or len(rest) > 1:
        got = " ".join(rest)
        raise InputError(f"--shell-completion: expected install=SHELL or uninstall=SHELL, got {got!r}")
    if shell not in _SHELLS:
        raise unknown_name("shell", shell, _SHELLS)
    if command == "query":
        found = candidates(os.environ.get("COMP_LINE", ""), shell)
        sys.stdout.write(("\n" if shell == "fish" else " ").join(found) + "\n")
        return 0
    if sys.argv[0].endswith(".py"):  # python -m cogeval: the command to complete is still cogeval
        sys.argv[0] = "cogeval"
    plugin = _plugin(shell)
    (plugin.install if command == "install" else plugin.uninstall)()
    return 0


def candidates(line: str, shell: str) -> list[str]:
    """What the last word of a command line could become.

    Args:
        line: the line up to the cursor, the program's name first.
        shell: one of bash, zsh, fish.
    """
    words = line.split()[1:]
    word = "" if line.endswith(" ") or not words else words.pop()
    try:
        if not words:
            top = [*VERBS, *HELP.names[:1], *SHELL_COMPLETION.names[:1], "--version"]
            return [t for t in top if t.startswith(word) and (word or not t.startswith("-"))]
        if words[0] not in VERBS:
            return []
        return _after_verb(VERBS[words[0]], words[1:], word, shell)
    except Exception:  # noqa: BLE001 - a message would land in the middle of what the user types
        return []


def _after_verb(verb: Verb, words: list[str], word: str, shell: str) -> list[str]:
    flags = {name: flag for flag in (*verb.flags, DEBUG, HELP) for name in flag.names}
    values, rest = _split(words, flags)
    waiting = flags.get(words[-1]) if words else None
    if waiting is not None and waiting.value == "AGENT" and verb.takes_agent:
        return [name for name in _pool_agents(values, rest) if name.startswith(word)]
    if waiting is not None and waiting.value is not None and (waiting.lone is None or word):
        return [choice for choice in waiting.choices if choice.startswith(word)]
    if word.startswith("-"):
        return sorted(name for name in flags if name.startswith(word) and name.startswith("--"))
    found: list[str] = []
    if verb.takes_run and "=" not in word:
        roots = [w.partition("=")[2] for w in rest if w.startswith("run.root=")]
        names = [w for w in rest if not is_override(w)]
        if verb.name == "compare" and len(names) < 2:
            found = [name for name in _agents(roots) if name.startswith(word) and name not in names]
        else:
            found = _runs(word, roots)
    if verb.takes_agent and not is_override(word) and not [w for w in rest if not is_override(w)]:
        found = [name for name in _pool_agents(values, rest) if name.startswith(word)]
    if verb.overrides:
        overrides = [w for w in rest if is_override(w)]
        multirun = "-m " if "--multirun" in words or "-m" in words else ""
        plugin = _plugin(shell, values.get("--config-dir"))
        line = multirun + " ".join([*overrides, word])
        matches = plugin._query(config_name=values.get("--config-name", "config"), line=line)
        found += [m for m in map(str, matches) if _takes(verb, m)]
    return found


def _takes(verb: Verb, match: str) -> bool:
    if match.startswith(NO_GROUPS):
        return False
    if verb.overrides == ALL_OVERRIDES:
        return True
    return any(match.startswith(prefix) or prefix.startswith(match) for prefix in verb.overrides)


def _split(words: Sequence[str], flags: dict[str, Flag]) -> tuple[dict[str, str], list[str]]:
    """The values of flags by their long name, and the other words."""
    values: dict[str, str] = {}
    rest: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        flag = flags.get(name) if word.startswith("-") else None
        if flag is None:
            rest.append(word)
        elif equals:
            values[flag.names[0]] = value
        elif flag.value is not None and flag.lone is None and left:
            values[flag.names[0]] = left.pop(0)
    return values, rest


def _runs(word: str, roots: Sequence[str]) -> list[str]:
    """The names of runs that begin with a word."""
    from cogeval.store.roots import LATEST, list_runs

    names = [path.name for path in list_runs(roots[-1] if roots else "runs")]
    return [name for name in (*names, *([LATEST] if names else [])) if name.startswith(word)]


def _agents(roots: Sequence[str]) -> list[str]:
    """The names of the latest run's agents."""
    from cogeval.store.roots import LATEST
    from cogeval.store.run import RunDir

    return [
        str(agent["name"]) for agent in RunDir.find(LATEST, roots[-1] if roots else "runs").manifest["agents"]
    ]


def _pool_agents(values: dict[str, str], words: Sequence[str]) -> list[str]:
    """The names of the agents of the pool that a command line composes."""
    from cogeval.cli.composing import Composer
    from cogeval.config import conf_dir

    composer = Composer(conf_dir(), values.get("--config-dir"), values.get("--config-name"))
    return [str(name) for name in composer.compose([w for w in words if is_override(w)])["pool"]["agents"]]


def _plugin(shell: str, config_dir: str | None = None) -> Any:
    """Hydra's completion for a shell; what it needs is imported here, so that verbs complete at once."""
    from cogeval.cli.composing import Composer
    from cogeval.config import conf_dir

    composer = Composer(conf_dir(), config_dir)
    return composer.hydra.get_shell_to_plugin_map(composer.hydra.config_loader)[shell][0]
