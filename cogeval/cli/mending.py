"""What to do about an agent that fails its check, in words for the kind of agent that it is.

Invariant: every kind of failure has words for every kind of agent, and none speaks of what that kind of
agent does not have.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cogeval.agents import AgentEntry
from cogeval.agents.actor.build import ActorAgent
from cogeval.agents.process.seat import ProcessAgent

_ILLEGAL: Final = "The action is not legal at that moment."
_LATE: Final = "It took too long."
_OTHERWISE: Final = "It is declared deterministic, and decided two things about one observation."
_UNREADABLE: Final = "The reply holds nothing that the game can read as an action."

PYTHON: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "constructor": (
            "It could not be made.",
            "The constructor gets the parameters of the pool and, where it names them, seat, rng and game. "
            "It runs once for each seat of each episode: load files from where workers find them too.",
        ),
        "exception": (
            "decide() raised an exception.",
            "In a run that is a fault: the fallback decides instead. --debug shows the traceback. Often "
            "an observation has something that the agent did not expect (an empty list, None, a last round).",
        ),
        "no reply": (
            "decide() gave no reply that holds an action.",
            "Return Reply(action), or Reply(payload={...}) for the game to read; Reply is in "
            "cogeval.core.agent. An action alone, a dict or None is no reply; of what a model writes, the "
            "JSON object is the payload.",
        ),
        "late": (
            _LATE,
            "In a run it would be timed out after deadlines.decision_s, or, if it is declared deterministic, "
            "hold up its worker. Think less, look at request.budget_s, and put waits that are not thinking "
            "into `with request.timer.queued():`. --limit allows more here.",
        ),
        "unreadable": (
            _UNREADABLE,
            "Take actions from request.decision.legal, or write the payload as "
            "game.reply_schema(request.decision) describes it. In a run it is asked once more, with this as "
            "request.hint.",
        ),
        "illegal": (
            _ILLEGAL,
            "Ask `action in request.decision.legal`, choose from list(request.decision.legal) where the game "
            "can count them, or fall back on request.decision.default, which always is.",
        ),
        "not repeatable": (
            _OTHERWISE,
            "Take chance from rng (an argument of the constructor) alone; beware of the order of sets, of "
            "the clock, and of what class or module attributes keep between episodes. If it is a model or "
            "must be random, declare deterministic: false.",
        ),
        "seed told": (
            "The observation tells the episode's seed.",
            "That is the game's fault and not the agent's: `observe` must hide it.",
        ),
    }
)
"""Kind of failure -> (what it is, how to mend it), for a Python class in this process."""

PLACED: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        **PYTHON,
        "constructor": (
            "It could not be made in its process.",
            "Its module is imported and its constructor is called in an empty directory, with an almost "
            "empty environment and within its limits: name files absolutely or relative to the module "
            "(Path(__file__).parent), take settings from the pool's parameters, and raise limits.memory_mb "
            "or limits.start_s if it needs more. `placement: inline` makes it without all that.",
        ),
        "exception": (
            "decide() raised an exception, or its process ended.",
            "In a run that is a fault: the fallback decides instead, and stderr is kept with it. Often an "
            "observation has something that the agent did not expect (an empty list, None, a last round), "
            "or a limit was reached (limits.memory_mb, cpu_s, file_mb, open_files).",
        ),
        "late": (
            _LATE,
            "In a run it would be timed out after deadlines.decision_s, or after 60 s if it is declared "
            "deterministic, and its process ended. Think less, look at request.budget_s, and load in the "
            "constructor, which is not think time. --limit allows more here.",
        ),
    }
)
"""The same for a Python class with `placement: process`."""

ACTED: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        **PYTHON,
        "constructor": (
            "It could not be made for its seat actor.",
            "One object serves every seat. Its module is imported and its constructor is called once in each "
            "replica, with the pool's parameters, and with the game if it asks for it.",
        ),
        "exception": (
            "It raised an exception, or decide_many() did not give one reply for each request.",
            "In a run that is a fault of the one decision: a batch that fails is asked again in halves. "
            "Often an observation has something that the agent did not expect (an empty list, None, a last "
            "round).",
        ),
        "not repeatable": (
            _OTHERWISE,
            "Take chance from request.seed alone, and what a seat is to remember from request.memory: the "
            "one object serves many seats, in any order, and another may take over. If it is a model or "
            "must be random, declare deterministic: false.",
        ),
    }
)
"""The same for a Python class with `placement: actor`."""

PROGRAM: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        "constructor": (
            "The program could not be started.",
            'It must answer the message `hello` with a line {"type": "ready"}, flushed, within start_s. It '
            "runs in an empty directory: what it reads belongs into files, variables that it needs into env. "
            "docs/agent-protocol.md has whole examples.",
        ),
        "exception": (
            "The program failed: it ended, broke a limit, spoke out of turn or said so itself.",
            "In a run that is a fault: the fallback decides instead, and a fresh process is started for the "
            "next decision. Look at its stderr; print nothing to stdout but one answer an observation.",
        ),
        "no reply": (
            'The answer is no JSON object {"type": "action", ...} with an action or a reply.',
            'Write {"type": "action", "action": ...} with an action as legal and default have it, or '
            '{"type": "action", "reply": {...}} for the game to read, on one line, and flush it.',
        ),
        "late": (
            _LATE,
            "In a run it would be timed out after deadlines.decision_s (the field budget_s of the "
            "observation), or after 60 s if it is declared deterministic, and killed. Think less, load "
            "before you answer `hello`, which is not think time, and flush each line. --limit allows more "
            "here.",
        ),
        "unreadable": (
            _UNREADABLE,
            "Take one of the field legal of the observation, or default, as it is. In a run it is asked once "
            "more, with this in the field hint.",
        ),
        "illegal": (
            _ILLEGAL,
            "Choose from the field legal of the observation, where it is there, or fall back on default, "
            "which always is. In a run it is asked once more, with the reason in the field hint.",
        ),
        "not repeatable": (
            _OTHERWISE,
            "Seed your generator with the field random of `hello` and with nothing else; beware of the "
            "clock, of the order of sets, and of what a kept process remembers of other episodes. If it "
            "must be random, declare deterministic: false.",
        ),
        "seed told": PYTHON["seed told"],
    }
)
"""The same for a program."""

MODEL: Final[Mapping[str, tuple[str, str]]] = MappingProxyType(
    {
        **PYTHON,
        "constructor": (
            "It could not be made.",
            "Look at its pool entry: the key's variable (api_key_env), base_url, the prompt file.",
        ),
        "exception": (
            "The model's service did not answer, or refused.",
            "In a run that is a fault: the fallback decides instead. Look at the key, base_url, the model's "
            "name and the account's limits.",
        ),
        "no reply": (
            "The model wrote no JSON object.",
            "Say in the prompt that it must answer with one, and give it enough max_tokens to finish. It was "
            "asked once more, with this as a hint, as in a run.",
        ),
        "late": (
            _LATE,
            "In a run it would be timed out after deadlines.decision_s. Lower max_tokens, choose a faster "
            "model, or raise deadlines.decision_s. --limit allows more here.",
        ),
        "unreadable": (
            _UNREADABLE,
            "Say in the prompt what the answer looks like. It was asked once more, with this as a hint, as "
            "in a run.",
        ),
        "illegal": (
            _ILLEGAL,
            "The prompt lists what is legal; say in it that nothing else is. It was asked once more, with "
            "the reason as a hint, as in a run.",
        ),
        "not repeatable": (_OTHERWISE, "A model seldom repeats itself: declare deterministic: false."),
    }
)
"""The same for a model behind an API."""


def words_for(agent: AgentEntry) -> Mapping[str, tuple[str, str]]:
    """Kind of failure -> (what it is, how to mend it), in words for this agent."""
    made = agent.seated.agent
    if isinstance(made, ProcessAgent):
        return PROGRAM if made.setup is None else PLACED
    if isinstance(made, ActorAgent):
        return ACTED
    return MODEL if agent.seated.is_model and agent.kind != "python" else PYTHON
