"""The shared checks: `check_game` for every game, `check_agent` for every agent.

Invariant: a check asks the same of everybody and needs nothing but the public protocols; it fails with
an AssertionError that names the place and both sides. Must not know any game or agent by name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Final, TypeAlias

from cogeval.core.game import AnyGame
from cogeval.testing import episode_checks, reply_checks
from cogeval.testing.agent_checks import check_agent
from cogeval.testing.replies import WRITE_REPLY, WriteReply
from cogeval.testing.walks import Walk, walk

__all__ = ["GAME_CHECKS", "REPLY_CHECKS", "Check", "check_agent", "check_game"]


Check: TypeAlias = Callable[[AnyGame, Sequence[Walk]], None]
"""(game, random episodes of it) -> None, or AssertionError."""

GAME_CHECKS: Final[tuple[Check, ...]] = (
    episode_checks.spec_is_sound,
    episode_checks.decisions_are_well_formed,
    episode_checks.default_and_samples_are_legal,
    episode_checks.step_leaves_its_argument_unchanged,
    episode_checks.results_are_finite_and_bounded,
    episode_checks.same_seed_gives_the_same_episode,
    episode_checks.chance_comes_from_the_seed_alone,
    episode_checks.stop_ends_the_episode_at_any_phase,
    episode_checks.illegal_actions_are_explained,
    episode_checks.baselines_are_legal_and_pure,
    episode_checks.hidden_things_do_not_show,
    episode_checks.states_pickle,
    reply_checks.actions_survive_the_wire,
    reply_checks.observations_survive_the_wire,
    reply_checks.prompts_render,
    reply_checks.observations_do_not_tell_the_seed,
    reply_checks.bad_replies_raise_action_errors_only,
)
"""Every game passes every one of these."""

REPLY_CHECKS: Final = (
    reply_checks.schemas_admit_every_legal_action,
    reply_checks.spoken_text_harms_nobody,
)
"""And these, which need to know how an action is written as a reply."""


def check_game(
    game: AnyGame, seeds: Iterable[int] = (0, 1, 2), *, write_reply: WriteReply | None = None
) -> None:
    """Runs all shared checks on random episodes of a game.

    Args:
        game: rules and parameters.
        seeds: of the episodes; signed 64-bit integers.
        write_reply: writes a legal action as a reply; None: the one of `replies.WRITE_REPLY`.

    Raises:
        AssertionError: when a check fails; a note names the check and the game.
    """
    write = write_reply or WRITE_REPLY.get(game.spec.name)
    assert write is not None, f"expected write_reply for {game.spec.name}, which is not in WRITE_REPLY"
    walks = [walk(game, seed) for seed in seeds]
    checks = {check.__name__: check for check in GAME_CHECKS}
    for with_writer in REPLY_CHECKS:
        checks[with_writer.__name__] = functools.partial(with_writer, write=write)
    for name, check in checks.items():
        try:
            check(game, walks)
        except AssertionError as error:
            error.add_note(f"check {name} of game {game.spec.name} with {dict(game.parameters)}")
            raise
