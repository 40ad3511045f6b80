"""Each shared check catches the fault that it is there for, in words that name the place."""

from __future__ import annotations

import asyncio
import functools
import time

import msgspec
import numpy as np
import pytest

from cogeval.core.agent import Reply
from cogeval.core.game import Results, Step
from cogeval.games.cogchemists import Cogchemists
from cogeval.games.cogchemists.state import Action
from cogeval.testing.checks import GAME_CHECKS, REPLY_CHECKS, check_agent, check_game
from cogeval.testing.replies import write_cogchemists_reply
from cogeval.testing.walks import walk

replace = msgspec.structs.replace


class BackwardSeats(Cogchemists):
    def decisions(self, state):
        return super().decisions(state)[::-1]


class IllegalDefault(Cogchemists):
    def decisions(self, state):
        return tuple(replace(d, default=Action("sell", 0, 0)) for d in super().decisions(state))


class Forgetful(Cogchemists):
    """Its steps depend on how many were made before."""

    num_steps = 0

    def step(self, state, actions):
        self.num_steps += 1
        step = super().step(state, actions)
        return Step(replace(step.next, words=(self.num_steps, 1)), step.resolved, step.events)


class OwnLuck(Cogchemists):
    num_starts = 0

    def initial_state(self, seed):
        self.num_starts += 1
        return super().initial_state(seed + self.num_starts)


class GlobalLuck(Cogchemists):
    def step(self, state, actions):
        np.random.random()  # noqa: NPY002 - the fault
        return super().step(state, actions)


class Endless(Cogchemists):
    def stop(self, state):
        return Step(state, state, ())


class NoScore(Cogchemists):
    def results(self, state):
        results = super().results(state)
        return Results(
            results.reason, results.phases, tuple(replace(s, score=float("nan")) for s in results.seats)
        )


class TooHigh(Cogchemists):
    spec = replace(Cogchemists.spec, score_max=0.0)


class CheatingBaseline(Cogchemists):
    def baseline(self, name, state, seat, seed):
        super().baseline(name, state, seat, seed)
        return Action("buy", artifact="telescope")


class MoodyBaseline(Cogchemists):
    num_asked = 0

    def baseline(self, name, state, seat, seed):
        self.num_asked += 1
        legal = list(self.decisions(state)[seat].legal)
        return legal[self.num_asked % len(legal)]


class Leak(Cogchemists):
    """Tells everybody the hidden chemistry by the aliases."""

    def observe(self, state, seat):
        return super().observe(replace(state, names=tuple(map(str, state.chemistry[:4]))), seat)


class Mute(Cogchemists):
    def prompt(self, observation):
        return replace(super().prompt(observation), user=" ")


class Crashing(Cogchemists):
    def parse_reply(self, state, seat, reply):
        return super().parse_reply(state, seat, {"action": reply["action"]})


class Misreading(Cogchemists):
    def parse_reply(self, state, seat, reply):
        return replace(super().parse_reply(state, seat, reply), signature=-1)


class LossyWire(Cogchemists):
    def action_from_wire(self, value):
        return replace(super().action_from_wire(value), b=-1)


FAULTS = {
    BackwardSeats: ("decisions_are_well_formed", "expected ascending seats"),
    IllegalDefault: ("default_and_samples_are_legal", "is listed but wrong_phase"),
    Forgetful: ("step_leaves_its_argument_unchanged", "expected the same from the same step"),
    OwnLuck: ("same_seed_gives_the_same_episode", "expected the same state"),
    GlobalLuck: ("chance_comes_from_the_seed_alone", "global generator"),
    Endless: ("stop_ends_the_episode_at_any_phase", "expected the end after stop"),
    NoScore: ("results_are_finite_and_bounded", "expected a finite score, got nan"),
    TooHigh: ("results_are_finite_and_bounded", r"not in -inf\.\.0\.0"),
    CheatingBaseline: ("baselines_are_legal_and_pure", "is not legal"),
    MoodyBaseline: ("baselines_are_legal_and_pure", "expected the same decision twice"),
    Leak: ("hidden_things_do_not_show", "hidden things show"),
    Mute: ("prompts_render", "expected text"),
    Crashing: ("bad_replies_raise_action_errors_only", "expected an action or an ActionError"),
    Misreading: ("schemas_admit_every_legal_action", "expected Action"),
    LossyWire: ("actions_survive_the_wire", "back from the wire"),
}


@pytest.mark.parametrize("faulty", FAULTS)
def test_a_faulty_game_is_caught_by_its_check(faulty):
    name, message = FAULTS[faulty]
    game = faulty(rounds=3)
    walks = [walk(game, 0)]
    checks = {check.__name__: check for check in GAME_CHECKS}
    for check in REPLY_CHECKS:
        checks[check.__name__] = functools.partial(check, write=write_cogchemists_reply)
    with pytest.raises(AssertionError, match=message):
        checks[name](game, walks)


def test_check_game_notes_the_check_and_the_game():
    with pytest.raises(AssertionError) as caught:
        check_game(Mute(rounds=3), seeds=(0,))
    assert caught.value.__notes__ == [
        "check prompts_render of game cogchemists with {'rounds': 3, 'talk': True, 'artifacts': True}"
    ]


def test_a_game_needs_a_writer_of_replies():
    class Newcomer(Cogchemists):
        spec = replace(Cogchemists.spec, name="newcomer")

    with pytest.raises(AssertionError, match="expected write_reply for newcomer"):
        check_game(Newcomer(rounds=3), seeds=(0,))


class Quick:
    def __init__(self, seat, rng):
        self.rng = rng

    def decide(self, request):
        return Reply(request.decision.default)


class Asynchronous(Quick):
    async def decide(self, request):
        await asyncio.sleep(0)
        return Reply(request.decision.default)


class Unlawful(Quick):
    def decide(self, request):
        return Reply(Action("dance"))


class Wordless(Quick):
    def decide(self, request):
        return Reply()


class Unreadable(Quick):
    def decide(self, request):
        return Reply(payload={"action": "dance"})


class Elsewhere(Quick):
    def decide(self, request):
        return request.decision.default


class Slow(Quick):
    def decide(self, request):
        started = time.monotonic()
        while time.monotonic() - started < 0.01:
            pass
        return Reply(request.decision.default)


class Moody(Quick):
    num_asked = 0

    def decide(self, request):
        legal = list(request.decision.legal)
        Moody.num_asked += 1
        return Reply(legal[Moody.num_asked % len(legal)])


class Plain:
    """Its constructor asks for nothing."""

    def decide(self, request):
        return Reply(request.decision.default)


class Player:
    """Its constructor asks for the game, and takes a parameter of its own."""

    def __init__(self, game, depth=1):
        assert game.seats == 4
        self.depth = depth

    def decide(self, request):
        return Reply(list(request.decision.legal)[-self.depth])


@pytest.mark.parametrize(
    "agent",
    [Quick, Asynchronous, Plain, Player, functools.partial(Player, depth=2), lambda rng: Quick(0, rng)],
    ids=["seat and rng", "async", "nothing", "game", "partial", "function"],
)
def test_a_sound_agent_passes_whatever_its_constructor_asks_for(agent):
    check_agent(agent, Cogchemists(rounds=3), seeds=(0,), deterministic=True)


class Raising(Plain):
    def decide(self, request):
        raise KeyError("what I remember")


class Unborn(Plain):
    def __init__(self, seat):
        if seat == 2:
            raise OSError("no model file")


class Typeless(Plain):
    def decide(self, request):
        return Reply({"action": "pass"})


@pytest.mark.parametrize(
    ("agent", "message"),
    [
        (Unlawful, "unknown_action"),
        (Wordless, "expected an action or a payload"),
        (Unreadable, "cannot be read"),
        (Elsewhere, "expected a Reply, got Action"),
        (Slow, "expected a reply within"),
        (Moody, "declared deterministic, decided .* and then "),
        (Raising, "expected a Reply, got KeyError: 'what I remember'"),
        (Unborn, "expected an agent, got OSError: no model file"),
        (Typeless, "expected an action of cogchemists, got {'action': 'pass'}"),
    ],
)
def test_a_faulty_agent_is_caught(agent, message):
    with pytest.raises(AssertionError, match=r"^seed 0, phase \d+, seat \d: .*" + message):
        check_agent(
            agent,
            Cogchemists(rounds=3),
            seeds=(0,),
            deterministic=True,
            limit_s=0.005 if agent is Slow else 10.0,
        )
