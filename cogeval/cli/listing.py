"""What there is to choose from: games, kinds of agents, baselines, pools; and versions.

Invariant: everything listed is read from the tables and files that a run would use.
"""

from __future__ import annotations

import inspect
import json
from typing import Any

from cogeval import __version__
from cogeval.agents import AGENTS
from cogeval.cli.arguments import Arguments
from cogeval.cli.composing import Composer
from cogeval.cli.environment import package_versions, python_version
from cogeval.cli.output import print_json, show
from cogeval.cli.program import typed
from cogeval.config import conf_dir
from cogeval.games import GAMES, PARAMETERS, make_game
from cogeval.report.layout import Column, grid, literal, with_notes


def games(arguments: Arguments) -> int:
    """Lists the games."""
    listed = [_game(name) for name in GAMES]
    if arguments.switch("--json"):
        print_json({"games": listed})
        return 0
    for game in listed:
        columns = [Column(title, numeric=False) for title in ("parameter", "default", "meaning")]
        rows = [
            [literal(f"game.{p['name']}", "bold"), literal(json.dumps(p["default"])), literal(p["doc"])]
            for p in game["parameters"]
        ]
        low, high = game["seats"]
        seats = f"{low} seats" if low == high else f"{low} to {high} seats"
        title = f"{game['name']} {game['version']}: {seats}, baselines {', '.join(game['baselines'])}"
        show(with_notes(title, grid(columns, rows), ()))
    show("", typed("To play one: cogeval run game=NAME game.PARAMETER=VALUE"))
    return 0


def agents(arguments: Arguments) -> int:
    """Lists the kinds of agents, the baselines and the pools."""
    kinds = [{"kind": kind, "doc": inspect.getdoc(builder) or ""} for kind, builder in AGENTS.items()]
    baselines = {name: list(make_game(name).spec.baselines) for name in GAMES}
    pools = _pools(Composer(conf_dir(), arguments.value("--config-dir")))
    if arguments.switch("--json"):
        print_json({"kinds": kinds, "baselines": baselines, "pools": pools})
        return 0
    kind_rows = [[literal(k["kind"], "bold"), literal(k["doc"].splitlines()[0])] for k in kinds]
    game_rows = [[literal(name, "bold"), literal(", ".join(names))] for name, names in baselines.items()]
    pool_rows = [[literal(name, "bold"), literal(_members(pool))] for name, pool in pools.items()]
    show(
        with_notes("Kinds of agents", grid(_two("kind", "what it is"), kind_rows), ()),
        with_notes("Baselines", grid(_two("game", "for kind baseline"), game_rows), ()),
        with_notes("Pools", grid(_two("pool", "agents"), pool_rows), ()),
        "",
        typed("A pool of yours is DIR/pool/NAME.yaml: cogeval run --config-dir DIR pool=NAME"),
    )
    return 0


def version(arguments: Arguments) -> int:
    """Prints the versions."""
    if arguments.switch("--json"):
        print_json({"cogeval": __version__, "python": python_version(), "packages": package_versions()})
        return 0
    lines = [f"cogeval {__version__}", f"python {python_version()}"]
    lines += [f"{name} {number}" for name, number in package_versions().items()]
    show(*lines)
    return 0


def _game(name: str) -> dict[str, Any]:
    spec = make_game(name).spec
    return {
        "name": name,
        "version": spec.version,
        "seats": [spec.seats_min, spec.seats_max],
        "baselines": list(spec.baselines),
        "parameters": [
            {"name": p.name, "default": p.default, "doc": p.doc} for p in PARAMETERS.get(name, ())
        ],
    }


def _pools(composer: Composer) -> dict[str, dict[str, Any]]:
    """Name of the pool -> name of the agent -> its settings."""
    found: dict[str, dict[str, Any]] = {}
    for name in composer.options("pool"):
        pool = composer.compose([f"pool={name}"])["pool"]
        members = pool.get("agents") or {}
        found[name] = {str(agent): dict(settings) for agent, settings in members.items()}
    return found


def _members(pool: dict[str, Any]) -> str:
    return ", ".join(f"{name} ({_kind(settings)})" for name, settings in pool.items()) or "none"


def _kind(settings: dict[str, Any]) -> str:
    kind = str(settings.get("kind", settings.get("_target_", "?")))
    return f"{kind} {settings['baseline']}" if "baseline" in settings else kind


def _two(first: str, second: str) -> list[Column]:
    return [Column(first, numeric=False, min_width=12), Column(second, numeric=False)]
