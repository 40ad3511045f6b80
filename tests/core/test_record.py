"""The record of an episode: ranks, shares, canonical JSON, digests and identities."""

from __future__ import annotations

import asyncio
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy import Bid, Bids, bids, sits

from cogeval.core.agent import Reply
from cogeval.core.episode import play
from cogeval.core.record import (
    ActionCodec,
    canonical_json,
    episode_digest,
    episode_id,
    experiment_key,
    run_digest,
    seat_ranks,
    seat_shares,
)

keys = st.tuples(st.integers(-2, 2).map(float), st.integers(0, 1).map(float))
tables = st.lists(st.tuples(keys, st.booleans()), min_size=1, max_size=7)


def better(a: tuple[Any, bool], b: tuple[Any, bool]) -> bool:
    """Brute force: a did strictly better than b."""
    return (not a[1] and b[1]) or (not a[1] and not b[1] and a[0] > b[0])


@given(tables)
def test_a_rank_is_the_number_of_seats_that_did_better(table: list[tuple[Any, bool]]) -> None:
    ranks = seat_ranks([key for key, _ in table], [gone for _, gone in table])
    assert list(ranks) == [sum(better(other, mine) for other in table) for mine in table]


@given(tables)
def test_a_share_is_seats_beaten_and_half_the_ties(table: list[tuple[Any, bool]]) -> None:
    shares = seat_shares(seat_ranks([key for key, _ in table], [gone for _, gone in table]))
    if len(table) == 1:
        assert shares == (0.5,)
        return
    for i, mine in enumerate(table):
        others = table[:i] + table[i + 1 :]
        points = sum(1.0 if better(mine, o) else 0.0 if better(o, mine) else 0.5 for o in others)
        assert shares[i] == pytest.approx(points / len(others))
    assert sum(shares) == pytest.approx(len(table) / 2)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_canonical_json_reads_back_and_is_ascii(value: Any) -> None:
    text = canonical_json(value)
    assert text.isascii()
    assert json.loads(text) == value
    assert canonical_json(json.loads(text)) == text


def test_canonical_json_sorts_keys_and_refuses_what_json_has_not() -> None:
    assert canonical_json({"b": 1, "a": [1.0, "é"]}) == '{"a":[1.0,"\\u00e9"],"b":1}'
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json(float("nan"))


@given(st.lists(st.tuples(st.integers(0, 9), st.text(max_size=5)), min_size=2, max_size=6), st.integers())
def test_the_digest_is_that_of_the_whole_objects_canonical_json(
    said: list[tuple[int, str]], seed: int
) -> None:
    turns = iter(said[: len(said) // 2 * 2])
    game = Bids(2, len(said) // 2)
    both = sits(lambda request: Reply(Bid(*next(turns))))
    episode = asyncio.run(play(game, seed, [both, both]))
    whole = {
        "game": "bids",
        "version": "1",
        "parameters": {"seats": 2, "phases": game.phases},
        "seed": seed,
        "actions": [
            [a.phase, a.seat, {"amount": a.action.amount, "say": a.action.say}] for a in episode.attempts
        ],
        "reason": "complete",
        "scores": [s.score for s in episode.results.seats],
    }
    assert episode.digest == hashlib.sha256(canonical_json(whole).encode()).hexdigest()
    codec = ActionCodec(game)
    played = [(a.phase, a.seat, codec.canonical(a.action)[1]) for a in episode.attempts]
    assert episode_digest(game, seed, played, episode.results) == episode.digest


def test_a_runs_digest_does_not_depend_on_the_order_of_episodes() -> None:
    digests = [hashlib.sha256(bytes([i])).digest() for i in range(5)]
    assert run_digest(digests) == run_digest(reversed(digests))
    assert run_digest(digests) != run_digest(digests[1:])
    assert run_digest(digests) != run_digest([*digests, digests[0]])


def test_an_episodes_identity_counts_everything_that_makes_it_another_experiment() -> None:
    def identity(game: Any = None, seed: int = 0, agents: tuple[str, ...] = ("a", "b"),
                 decision_s: float = 1, replicate: int = 0) -> str:  # fmt: skip
        key = experiment_key(game or Bids(2, 1), {"decision_s": decision_s})
        return episode_id(key, seed, agents, replicate)

    variants = [identity(), identity(Bids(2, 2)), identity(seed=1), identity(agents=("b", "a")),
                identity(decision_s=2), identity(replicate=1)]  # fmt: skip
    assert len(set(variants)) == len(variants)
    assert identity() == identity(Bids(2, 1))
    assert len(identity()) == 32


def test_the_codec_forgets_rather_than_grows() -> None:
    codec = ActionCodec(Bids())
    for i in range(40_000):
        codec.canonical(Bid(i))
    codec.canonical(Bid(1, "x" * 5000))
    assert len(codec._known) <= 16_384
    assert all(len(text) <= 1024 for _, (_, text) in codec._known.values())


def test_the_journal_holds_the_accepted_action_of_every_seat_and_phase() -> None:
    replies = iter([Reply(Bid(11)), Reply(Bid(4)), Reply(Bid(5))])
    episode = asyncio.run(play(Bids(2, 2), 0, [sits(lambda request: next(replies)), bids(1)]))
    assert episode.journal() == [{0: Bid(4), 1: Bid(1)}, {0: Bid(5), 1: Bid(1)}]
