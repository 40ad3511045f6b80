"""Shared checks of a game's rules: phases, chance, endings, baselines and hidden things.

Invariant: each public function is one check, `(game, walks) -> None`, and has no exceptions.
"""

from __future__ import annotations

import contextlib
import math
import pickle
import random
from collections.abc import Iterator, Sequence

import numpy as np

from cogeval.core.game import AnyGame
from cogeval.core.rng import stream
from cogeval.errors import InputError
from cogeval.testing.snapshot import picture_hash, snapshot
from cogeval.testing.walks import Walk, legal_actions, places, walk


def spec_is_sound(game: AnyGame, walks: Sequence[Walk]) -> None:  # noqa: ARG001 - every check's signature
    """Seats within the bounds, at least one baseline, distinct names, JSON parameters."""
    spec = game.spec
    assert spec.name, "expected a name, got an empty one"
    assert spec.version, "expected a version, got an empty one"
    assert spec.seats_min <= game.seats <= spec.seats_max, (
        f"expected {spec.seats_min}..{spec.seats_max} seats, got {game.seats}"
    )
    assert spec.baselines, "expected at least one baseline: a faulty seat falls back on the first"
    assert len(set(spec.baselines)) == len(spec.baselines), f"expected distinct names, got {spec.baselines}"
    for name, value in game.parameters.items():
        assert value is None or isinstance(value, bool | int | float | str | list | dict), (
            f"parameter {name}: expected a JSON value, got {value!r}"
        )


def decisions_are_well_formed(game: AnyGame, walks: Sequence[Walk]) -> None:
    """Seats ascending and distinct, kinds named; nobody decides after the end."""
    for each in walks:
        assert each.positions, f"seed {each.seed}: expected at least one phase, got none"
        assert game.decisions(each.final) == (), f"seed {each.seed}: expected nobody to decide after the end"
        for position in each.positions:
            seats = [decision.seat for decision in position.decisions]
            assert seats == sorted(set(seats)), f"{position.place}: expected ascending seats, got {seats}"
            assert set(seats) <= set(range(game.seats)), (
                f"{position.place}: expected known seats, got {seats}"
            )
            assert all(d.kind for d in position.decisions), f"{position.place}: expected a kind for each"


def default_and_samples_are_legal(game: AnyGame, walks: Sequence[Walk]) -> None:
    """The default, every listed action and every sample are legal by both accounts."""
    for position, decision in places(walks):
        rng = stream(position.seed, "testing", "legal", position.phase, decision.seat)
        listed = legal_actions(decision.legal, rng)
        with contextlib.suppress(TypeError):  # not countable
            assert len(decision.legal) == len(listed), (
                f"{position.place}, seat {decision.seat}: expected {len(decision.legal)} actions as len "
                f"says, got {len(listed)} by iteration"
            )
        for action in (decision.default, *listed, decision.legal.sample(rng)):
            reason = game.why_illegal(position.state, decision.seat, action)
            assert reason is None, f"{position.place}, seat {decision.seat}: {action} is listed but {reason}"
            assert action in decision.legal, (
                f"{position.place}, seat {decision.seat}: why_illegal accepts {action}, `in legal` does not"
            )


def step_leaves_its_argument_unchanged(game: AnyGame, walks: Sequence[Walk]) -> None:
    """A step is a function: same arguments, same result, and the arguments stay as they were."""
    for each in walks:
        for position, actions in zip(each.positions, each.actions, strict=True):
            before = snapshot(position.state), snapshot(actions)
            first = snapshot(game.step(position.state, actions))
            second = snapshot(game.step(position.state, actions))
            assert (snapshot(position.state), snapshot(actions)) == before, (
                f"{position.place}: expected step to leave its arguments unchanged, it changed them"
            )
            assert first == second, f"{position.place}: expected the same from the same step, got another"


def results_are_finite_and_bounded(game: AnyGame, walks: Sequence[Walk]) -> None:
    """One result a seat with the same statistics, finite scores within the spec's bounds."""
    for each in walks:
        _check_results(game, each.final, len(each.positions), f"seed {each.seed}")


def _check_results(game: AnyGame, final: object, num_phases: int, place: str) -> None:
    results = game.results(final)
    low = -math.inf if game.spec.score_min is None else game.spec.score_min
    high = math.inf if game.spec.score_max is None else game.spec.score_max
    assert results.reason, f"{place}: expected a reason for the end, got none"
    assert results.phases == num_phases, f"{place}: expected {num_phases} phases, got {results.phases}"
    assert len(results.seats) == game.seats, f"{place}: expected {game.seats} seats, got {len(results.seats)}"
    for seat, result in enumerate(results.seats):
        assert math.isfinite(result.score), (
            f"{place}, seat {seat}: expected a finite score, got {result.score}"
        )
        assert low <= result.score <= high, f"{place}, seat {seat}: score {result.score} not in {low}..{high}"
        assert all(math.isfinite(v) for v in (*result.rank_key, *result.statistics.values())), (
            f"{place}, seat {seat}: expected finite figures, got {result}"
        )
    assert len({len(result.rank_key) for result in results.seats}) == 1, (
        f"{place}: rank keys differ in length"
    )
    names = {tuple(result.statistics) for result in results.seats}
    assert len(names) == 1, f"{place}: expected the same statistics for every seat, got {names}"


def same_seed_gives_the_same_episode(game: AnyGame, walks: Sequence[Walk]) -> None:
    """Playing a seed again gives the same states, decisions and results."""
    for each in walks:
        again = walk(game, each.seed)
        assert len(again.positions) == len(each.positions), f"seed {each.seed}: another number of phases"
        for one, other in zip(each.positions, again.positions, strict=True):
            assert picture_hash(one.state) == picture_hash(other.state), (
                f"{one.place}: expected the same state from the same seed and actions, got another"
            )
        assert snapshot(game.results(each.final)) == snapshot(game.results(again.final)), (
            f"seed {each.seed}: expected the same results, got others"
        )


def chance_comes_from_the_seed_alone(game: AnyGame, walks: Sequence[Walk]) -> None:
    """Neither Python's nor numpy's global generator is drawn from."""
    before = random.getstate(), repr(np.random.get_state())  # noqa: NPY002 - it is what must stay still
    walk(game, walks[0].seed, "global generators")
    for position in walks[0].positions:
        for decision in position.decisions:
            for name in game.spec.baselines:
                game.baseline(name, position.state, decision.seat, position.seed)
    after = random.getstate(), repr(np.random.get_state())  # noqa: NPY002 - as above
    assert after == before, "expected chance from the seed alone, a global generator was drawn from"


def stop_ends_the_episode_at_any_phase(game: AnyGame, walks: Sequence[Walk]) -> None:
    """The clock may end an episode at any open phase; it is then over, with sound results."""
    for each in walks:
        for position in each.positions:
            before = snapshot(position.state)
            final = game.stop(position.state).next
            assert snapshot(position.state) == before, f"{position.place}: stop changed its argument"
            assert game.decisions(final) == (), f"{position.place}: expected the end after stop"
            _check_results(game, final, position.phase, f"{position.place}, stopped")


def illegal_actions_are_explained(game: AnyGame, walks: Sequence[Walk]) -> None:
    """What was legal elsewhere is legal here too, or refused with a reason and an explanation."""
    played = [
        (seat, action) for each in walks for actions in each.actions for seat, action in actions.items()
    ]
    for position, decision in places(walks):
        for seat, action in played[:: max(1, len(played) // 20)]:
            reason = game.why_illegal(position.state, decision.seat, action)
            if reason is not None:
                told = game.explain_illegal(position.state, decision.seat, action, reason)
                place = f"{position.place}, seat {decision.seat}"
                assert isinstance(told, str), f"{place}: expected a text for {action} of seat {seat}"
                assert told.strip(), f"{place}: expected an explanation of {reason!r}, got an empty one"


def baselines_are_legal_and_pure(game: AnyGame, walks: Sequence[Walk]) -> None:
    """At any position every baseline decides legally, the same each time, and changes nothing."""
    for position, decision in places(walks):
        before = snapshot(position.state)
        for name in game.spec.baselines:
            first, again = (
                game.baseline(name, position.state, decision.seat, position.seed) for _ in range(2)
            )
            place = f"{position.place}, seat {decision.seat}, baseline {name}"
            assert first == again, f"{place}: expected the same decision twice, got {first} and {again}"
            reason = game.why_illegal(position.state, decision.seat, first)
            assert reason is None, f"{place}: {first} is not legal: {reason}"
        assert snapshot(position.state) == before, f"{position.place}: a baseline changed the state"
    with _refused("an unknown baseline"):
        game.baseline("no such baseline", walks[0].positions[0].state, 0, 0)


@contextlib.contextmanager
def _refused(what: str) -> Iterator[None]:
    try:
        yield
    except InputError:
        return
    raise AssertionError(f"expected an InputError for {what}, got none")


def hidden_things_do_not_show(game: AnyGame, walks: Sequence[Walk]) -> None:
    """What a seat sees, on the wire and in its prompt too, is the same in a world it can't tell apart."""
    for position, decision in places(walks):
        rng = np.random.Generator(np.random.PCG64([position.phase, decision.seat]))
        other = game.resample_hidden(position.state, decision.seat, rng)
        seen, also = (game.observe(state, decision.seat) for state in (position.state, other))
        place = f"{position.place}, seat {decision.seat}"
        assert game.observation_to_wire(seen) == game.observation_to_wire(also), (
            f"{place}: hidden things show"
        )
        assert snapshot(seen) == snapshot(also), f"{place}: hidden things show in the observation object"
        assert game.prompt(seen) == game.prompt(also), f"{place}: hidden things show in the prompt"
        legal = [
            next(d for d in game.decisions(state) if d.seat == decision.seat)
            for state in (position.state, other)
        ]
        listed = [legal_actions(d.legal, stream(0, "testing", "hidden")) for d in legal]
        assert listed[0] == listed[1], f"{place}: hidden things show in the legal actions"


def states_pickle(game: AnyGame, walks: Sequence[Walk]) -> None:
    """A state and an observation come back from pickle as they were, and play on the same."""
    for each in walks:
        for position, actions in zip(each.positions, each.actions, strict=True):
            copy = pickle.loads(pickle.dumps(position.state))  # noqa: S301 - our own bytes
            assert picture_hash(copy) == picture_hash(position.state), f"{position.place}: pickle changed it"
            played = game.step(position.state, actions).next
            assert picture_hash(game.step(copy, actions).next) == picture_hash(played), (
                f"{position.place}: a pickled state plays on differently"
            )
