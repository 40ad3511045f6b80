"""What the commands are: their names, flags and help texts.

Invariant: stdlib only and no work at import, so that help answers at once; a command's own module is
imported when the command runs.
"""

from __future__ import annotations

from dataclasses import dataclass

ALL_OVERRIDES = ("",)
"""Every key starts with it."""


@dataclass(frozen=True, slots=True)
class Flag:
    """One flag.

    Args:
        names: the long one first; it is also the key of `Arguments.flags`.
        help: one line.
        value: placeholder of its value; None: the flag is a switch.
        choices: the values it takes; empty: any.
        lone: the value that it has when none is given; None: one must be given.
    """

    names: tuple[str, ...]
    help: str
    value: str | None = None
    choices: tuple[str, ...] = ()
    lone: str | None = None


@dataclass(frozen=True, slots=True)
class Verb:
    """One command.

    Args:
        name: what the user types.
        usage: what may follow it.
        line: what it does, in one line.
        target: ``module:function`` that carries it out.
        flags: beside --debug and --help, which all have.
        overrides: prefixes of the configuration keys that it takes as KEY=VALUE.
        takes_run: its words name runs.
        takes_agent: its word names an agent of the pool.
        more: what the help says below the flags.
        examples: complete command lines.
    """

    name: str
    usage: str
    line: str
    target: str
    flags: tuple[Flag, ...] = ()
    overrides: tuple[str, ...] = ()
    takes_run: bool = False
    takes_agent: bool = False
    more: str = ""
    examples: tuple[str, ...] = ()


HELP = Flag(("--help", "-h"), "show this text")
DEBUG = Flag(("--debug",), "show the traceback of a failure")
JSON = Flag(("--json",), "print one JSON object and nothing else")
QUIET = Flag(("--quiet", "-q"), "no progress")
CONFIG_DIR = Flag(("--config-dir", "-cd"), "search this directory for configuration too", "DIR")
CONFIG_NAME = Flag(("--config-name", "-cn"), "primary configuration instead of config", "NAME")
TARGET = Flag(("--target",), "a class, my_module.MyAgent, instead of AGENT", "CLASS")
INFO_CHOICES = ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath")

_RUN = (
    "RUN is a run id, its unique beginning, a run directory, or latest (the newest\n"
    "under run.root). Runs that lie elsewhere: run.root=DIR."
)
_AGENT = (
    "AGENT is a name of the pool. With --target the class itself is taken, under its\n"
    "own name, as in +pool.agents.MyAgent.depth=2 for a parameter of its constructor."
)
_READING = ("run.root",)
_RATING = ("run.root", "rating.")

VERBS: dict[str, Verb] = {
    verb.name: verb
    for verb in (
        Verb(
            "run",
            "[FLAGS] [KEY=VALUE ...]",
            "play a run as the configuration says",
            "cogeval.cli.playing:run",
            flags=(
                Flag(("--plan",), "what would be played, and its cost; starts nothing"),
                Flag(("--multirun", "-m"), "sweep: one run for each combination of KEY=A,B,..."),
                Flag(("--cfg", "-c"), "print the configuration instead:", "WHICH", ("job", "hydra", "all")),
                Flag(("--package", "-p"), "with --cfg: only this part of it", "PART"),
                Flag(("--resolve",), "with --cfg: interpolations resolved"),
                Flag(("--info", "-i"), "say how Hydra composes it", "WHAT", INFO_CHOICES, "all"),
                CONFIG_DIR,
                CONFIG_NAME,
                JSON,
                QUIET,
            ),
            overrides=ALL_OVERRIDES,
            more=(
                "KEY=VALUE is a Hydra override. Groups: game, pool, schedule, deadlines, limits,\n"
                "cluster, tracking, rating, experiment. --cfg job shows every key; +KEY=VALUE\n"
                "adds one, ~KEY takes one away."
            ),
            examples=(
                "cogeval run game=cogchemists schedule.blocks=100 seed=0",
                "cogeval run game=cogmud game.turns=20 game.thievery=false",
                "cogeval run -m game.rounds=3,6,10 schedule=rotations",
                "cogeval run --plan experiment=first_ladder",
            ),
        ),
        Verb(
            "try",
            "AGENT [FLAGS] [KEY=VALUE ...]",
            "play one episode here, and print what an agent is asked and answers",
            "cogeval.cli.trying:try_agent",
            flags=(
                Flag(("--seat",), "where it sits, from 0; else 0", "SEAT"),
                Flag(("--seed",), "of the episode; else seed=0 of the configuration", "SEED"),
                Flag(("--against",), "who sits in all other seats; else the first baseline", "AGENT"),
                TARGET,
                Flag(("--decisions",), "stop after so many of its decisions", "N"),
                Flag(("--prompt",), "print the system text too, when it is new"),
                Flag(("--json",), "print JSON lines, one for each thing that happens"),
                CONFIG_DIR,
                CONFIG_NAME,
            ),
            overrides=ALL_OVERRIDES,
            takes_agent=True,
            more=_AGENT
            + "\nThe other seats: an agent of the pool or a baseline of the game; else its first.",
            examples=(
                "cogeval try quack game=cogchemists --decisions 2",
                "cogeval try --target my_agents.Eager --seat 2 --seed 7 --prompt",
                "cogeval try eager --config-dir mine pool=eager --against quack --json",
            ),
        ),
        Verb(
            "check-agent",
            "AGENT [FLAGS] [KEY=VALUE ...]",
            "ask an agent in every seat, and explain what is wrong with its answers",
            "cogeval.cli.checking:check_agent_command",
            flags=(
                TARGET,
                Flag(("--episodes",), "random episodes that it is asked in; else 3", "N"),
                Flag(("--limit",), "think time of a decision; else 10 (models: deadline)", "SECONDS"),
                JSON,
                CONFIG_DIR,
                CONFIG_NAME,
            ),
            overrides=ALL_OVERRIDES,
            takes_agent=True,
            more=_AGENT + "\nThe exit code is 1 when something is wrong. A model is asked like any agent,\n"
            "and costs what it costs; without --episodes it is asked in one episode.",
            examples=(
                "cogeval check-agent quack game=cogchemists",
                "cogeval check-agent --target my_agents.Eager game.rounds=3",
            ),
        ),
        Verb(
            "resume",
            "RUN [FLAGS] [KEY=VALUE ...]",
            "play what a run still misses",
            "cogeval.cli.resuming:resume",
            flags=(
                Flag(("--retry-void",), "try again what was given up after our own failures"),
                JSON,
                QUIET,
            ),
            overrides=("run.root", "cluster.", "limits.", "tracking.", "store."),
            takes_run=True,
            more=_RUN + "\nOnly cluster., limits., tracking. and store. keys can differ from the run's own.",
            examples=(
                "cogeval resume latest",
                "cogeval resume latest cluster.workers=4",
                "cogeval resume latest limits.spend_usd=20",
            ),
        ),
        Verb(
            "status",
            "RUN [FLAGS] [run.root=DIR]",
            "how far a run is, its digest, its faults",
            "cogeval.cli.status:status",
            flags=(Flag(("--watch", "-w"), "look again every few seconds until it has ended"), JSON),
            overrides=_READING,
            takes_run=True,
            more=_RUN + "\nIt reads records and no episodes. With --watch --json: one object a look.",
            examples=(
                "cogeval status latest",
                "cogeval status latest --watch",
                "cogeval status latest run.root=/data/runs --json",
            ),
        ),
        Verb(
            "show",
            "RUN [--json] [KEY=VALUE ...]",
            "ladder, score quantiles, faults and fallbacks, effort, seat effects",
            "cogeval.cli.showing:show",
            flags=(JSON,),
            overrides=_RATING,
            takes_run=True,
            more=_RUN,
            examples=("cogeval show latest", "cogeval show latest rating.anchor=quack"),
        ),
        Verb(
            "rate",
            "RUN... [--json] [KEY=VALUE ...]",
            "one ladder over several runs of one game",
            "cogeval.cli.showing:rate",
            flags=(JSON, Flag(("--anchor",), "fix this agent's Elo at rating.anchor_elo", "AGENT")),
            overrides=_RATING,
            takes_run=True,
            more=_RUN + "\nAn episode counts once, however many of the runs hold it; agents are joined by\n"
            "name and fingerprint, blocks by seed.",
            examples=("cogeval rate latest", "cogeval rate 2026-03 2026-04 --anchor quack"),
        ),
        Verb(
            "compare",
            "A B [RUN...] [--json] [KEY=VALUE ...]",
            "agent B against agent A, block by block, with an interval",
            "cogeval.cli.comparing:compare",
            flags=(JSON,),
            overrides=_RATING,
            takes_run=True,
            more=_RUN + "\nWithout a RUN: the latest.",
            examples=("cogeval compare quack assayer", "cogeval compare quack assayer latest --json"),
        ),
        Verb(
            "ui",
            "[RUN] [--print] [KEY=VALUE ...]",
            "open MLflow's pages on a run's tracking store",
            "cogeval.cli.pages:ui",
            flags=(
                Flag(("--print",), "print the command and do not start it"),
                Flag(("--port",), "port of the pages instead of 5000", "PORT"),
            ),
            overrides=("run.root", "tracking."),
            takes_run=True,
            more=_RUN + "\nWithout a RUN: the latest.",
            examples=("cogeval ui latest", "cogeval ui latest --port 5001"),
        ),
        Verb(
            "track",
            "RUN [KEY=VALUE ...]",
            "log a run to MLflow again; what is there already is not doubled",
            "cogeval.cli.tracking:track",
            flags=(JSON,),
            overrides=("run.root", "tracking.", "rating."),
            takes_run=True,
            more=_RUN,
            examples=("cogeval track latest", "cogeval track latest tracking.uri=http://HOST:5000"),
        ),
        Verb(
            "audit",
            "RUN [--json] [run.root=DIR]",
            "recompute every derived number of a run and compare",
            "cogeval.cli.status:audit",
            flags=(JSON,),
            overrides=_READING,
            takes_run=True,
            more=_RUN + "\nThe exit code is 1 when any differs.",
            examples=("cogeval audit latest",),
        ),
        Verb(
            "compact",
            "RUN [FLAGS] [run.root=DIR]",
            "merge a run's small shards into large ones that read fast",
            "cogeval.cli.compacting:compact_run",
            flags=(
                Flag(("--target-mb",), "size to merge to, best 64 to 256; else 128", "MB"),
                Flag(("--plan",), "what would be merged; changes nothing"),
                JSON,
                QUIET,
            ),
            overrides=_READING,
            takes_run=True,
            more=_RUN + "\nNobody may drive the run meanwhile. Killed at any moment nothing is lost: run it\n"
            "again. The run's digest and everything that is read from it stay the same.",
            examples=("cogeval compact latest", "cogeval compact latest --target-mb 256 --plan"),
        ),
        Verb(
            "reproduce",
            "RUN [FLAGS] [run.root=DIR]",
            "play a run again from its record and compare, decision by decision",
            "cogeval.cli.reproducing:reproduce",
            flags=(
                Flag(("--episodes",), "only the first so many", "NUM"),
                Flag(("--seed",), "only the episodes on this seed", "SEED"),
                JSON,
            ),
            overrides=_READING,
            takes_run=True,
            more=_RUN + "\nAgents that are not deterministic, and those outside of this process, answer\n"
            "from the journal: nothing is called. The exit code is 1 when anything differs.",
            examples=("cogeval reproduce latest", "cogeval reproduce latest --episodes 10 --json"),
        ),
        Verb(
            "replay",
            "RUN EPISODE [--json] [run.root=DIR]",
            "one recorded episode: who decided what, replies, faults, events, result",
            "cogeval.cli.replaying:replay",
            flags=(JSON,),
            overrides=_READING,
            takes_run=True,
            more=_RUN + "\nEPISODE is its place in the schedule, from 0. Nobody is asked.",
            examples=("cogeval replay latest 0", "cogeval replay latest 17 --json"),
        ),
        Verb(
            "games",
            "[--json]",
            "the games, their parameters and baselines",
            "cogeval.cli.listing:games",
            flags=(JSON, CONFIG_DIR),
            examples=("cogeval games",),
        ),
        Verb(
            "agents",
            "[--json]",
            "the kinds of agents, the baselines of each game, and the pools",
            "cogeval.cli.listing:agents",
            flags=(JSON, CONFIG_DIR),
            examples=("cogeval agents", "cogeval agents --config-dir my_conf"),
        ),
        Verb(
            "version",
            "[--json]",
            "the version of cogeval and of what it runs on",
            "cogeval.cli.listing:version",
            flags=(JSON,),
            examples=("cogeval version",),
        ),
    )
}

SHELL_COMPLETION = Flag(
    ("--shell-completion", "-sc"), "install or uninstall completion: install=bash|zsh|fish", "WHAT"
)


def help_text() -> str:
    """The help of the whole program."""
    lines = ["cogeval: evaluate agents in multi-seat games, in bulk, reproducibly.", ""]
    lines += ["usage: cogeval VERB [FLAGS] [RUN] [KEY=VALUE ...]", "", "verbs:"]
    lines += [f"  {verb.name:<11} {verb.line}" for verb in VERBS.values()]
    lines += ["", "examples:"]
    lines += [
        "  cogeval run game=cogchemists schedule.blocks=100 seed=0",
        "  cogeval show latest",
        "  cogeval compare quack assayer latest",
        "  cogeval run game=cogmud schedule.blocks=20",
    ]
    lines += ["", "flags:"]
    lines += [f"  {'cogeval VERB --help':<28} what VERB takes"]
    lines += [f"  {'--version':<28} print the version"]
    lines += [f"  {'--debug':<28} {DEBUG.help}"]
    lines += [f"  {'--shell-completion WHAT':<28} completion of bash, zsh, fish; without WHAT: how"]
    return "\n".join(lines) + "\n"


def verb_help(verb: Verb) -> str:
    """The help of one command."""
    lines = [f"usage: cogeval {verb.name} {verb.usage}".rstrip(), ""]
    lines.append(verb.line[0].upper() + verb.line[1:] + ".")
    if verb.more:
        lines += ["", verb.more]
    lines += ["", "flags:"]
    for flag in (*verb.flags, DEBUG, HELP):
        value = "" if flag.value is None else f" [{flag.value}]" if flag.lone else f" {flag.value}"
        lines.append(f"  {', '.join(flag.names) + value:<24} {flag.help}")
        if flag.choices:
            lines.append(f"{'':<27}{' '.join(flag.choices)}")
    if verb.examples:
        lines += ["", "examples:", *(f"  {example}" for example in verb.examples)]
    return "\n".join(lines) + "\n"
