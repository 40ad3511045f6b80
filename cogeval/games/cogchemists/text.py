"""What a model seat reads: the rules and the reply form once, then the table as it stands.

Invariant: everything comes from the observation. A change of wording changes what model seats decide,
never what the rules do.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Final

from cogeval.core.game import Prompt
from cogeval.games.cogchemists.constants import (
    INGREDIENTS,
    NOTES_CAP,
    SAY_CAP,
    SIGNATURES,
)
from cogeval.games.cogchemists.deduction import Fact, MixFull, MixSign
from cogeval.games.cogchemists.state import Act, Action, Seal
from cogeval.games.cogchemists.view import Observation


def prompt(observation: Observation) -> Prompt:
    """System and user text for the seat."""
    system = _system(observation.rounds, observation.talk, observation.artifacts)
    return Prompt(system=system, user=_user(observation))


@functools.cache
def _system(rounds: int, talk: bool, artifacts: bool) -> str:
    remarks = (
        f'"say" is a remark of at most {SAY_CAP} characters that everybody hears in the next phase.'
        if talk
        else 'Nobody can speak at this table: leave "say" empty.'
    )
    return _RULES.format(
        rounds=rounds,
        ingredients=", ".join(f"{i} {name}" for i, name in enumerate(INGREDIENTS)),
        signatures=", ".join(f"{i} {name}" for i, name in enumerate(SIGNATURES)),
        shop=_SHOP if artifacts else "",
        remarks=remarks,
        notes_cap=NOTES_CAP,
    )


_SHOP: Final = """\
- buy artifact=mortar (4 coin): your tests then spend only ingredient a; b stays in your hand.
- buy artifact=press (5 coin): publishing gives you 3 reputation, and each of your seals pays 2 coin.
"""

_RULES: Final = """\
You hold one of four seats in Cogchemists, a game of deduction and publishing over {rounds} rounds.
Your score is your reputation plus 0.2 for each coin; the highest score wins. Reputation may fall below zero.

THE CHEMISTRY. Each of eight ingredients has its own one of eight signatures, hidden from everybody.
Ingredients, by index: {ingredients}.
Signatures, by index: {signatures}.
Mix two ingredients and compare their signatures. If they differ in exactly one of red, green and blue, the
potion has that colour; its sign is + when the two aspects that they share have equal signs, - when these are
opposite. In every other case, also for twice the same ingredient, the potion is MUD.

A ROUND has two phases, lab and market. In each of them all four seats choose one action at the same time,
without seeing the others' choices; the actions then take effect in the order of initiative, which moves on
by one seat each round. If an earlier seat's action has made yours impossible, you get 1 coin instead.
When a round opens, every standing seal pays its author 1 coin, and one potion is announced to be in demand.

LAB ACTIONS
- forage: draw two cards, seen by all; you hold at most six, what is beyond is lost.
- test_student a b (1 coin): mix two of your cards; only you learn the potion.
- test_self a b: the same for free, but you drink it: negative costs you 2 reputation, positive earns 1, and
  the table learns whether it was positive, negative or mud.
- transmute a: turn one card into 2 coin.
- pass: 1 coin.

MARKET ACTIONS
- sell a b: the table sees the potion of two of your cards. In demand: 6 coin and 1 reputation; otherwise
  2 coin and -1 reputation.
- publish a signature (1 coin): pin a seal that claims this signature for an ingredient without a standing
  seal; 2 reputation at once.
- endorse a (1 coin, paid to the author): back a rival's standing seal on a.
- debunk a b (1 coin): attack a rival's standing seal on a with your card b. The table sees what a and b
  really make. If the claim predicts another potion, the seal burns: you gain 3, the author loses 4, each
  endorser 1. If the claim predicts that potion, you lose 2 and the author gains 1, even when it is wrong.
{shop}- pass: 1 coin.
Cards that you use are spent. Twice the same ingredient takes two copies.

THE END. After the last round the chemistry is revealed. Each standing seal that is true gives its author 5
and each endorser 2; each that is false costs its author 6 and each endorser 3.

YOUR GRID, shown each phase, lists the signatures that each ingredient can still have. It is worked out
exactly from the public facts and from your own tests.

REPLY with one JSON object and nothing else, all values strings:
{{"action": "", "a": "", "b": "", "signature": "", "artifact": "", "say": "", "notes": ""}}
Ingredients by name or index, signatures like R+G-B+, "" for whatever your action does not take.
{remarks}
"notes" is your private memory of at most {notes_cap} characters: it replaces the old notes, "" keeps them."""


def _user(observation: Observation) -> str:
    me, names = observation.seat, observation.names
    sections = (
        f"Round {observation.round + 1} of {observation.rounds}, {observation.phase}. "
        f"In demand: {observation.demand}. "
        f"Initiative: {', '.join(names[seat] for seat in observation.initiative)}. You are {names[me]}.",
        "SEATS\n" + "\n".join(_seat_line(observation, seat) for seat in range(len(names))),
        "YOUR HAND\n" + (", ".join(INGREDIENTS[card] for card in observation.hand) or "empty"),
        "SEALS\n" + _lines(_seal_line(seal, names) for seal in observation.seals),
        "PUBLIC FACTS\n" + _lines(map(_fact_line, observation.public_facts)),
        "YOUR OWN TESTS\n" + _lines(map(_fact_line, observation.private_facts)),
        f"YOUR GRID ({observation.chemistries} chemistries left)\n" + _grid(observation),
        "WHAT HAPPENED\n" + _lines(_act_line(act, names) for act in observation.record),
        "REMARKS\n"
        + _lines(f"{name}: {say}" for name, say in zip(names, observation.heard, strict=True) if say),
        "YOUR NOTES\n" + (observation.notes or "none"),
        "YOUR LEGAL ACTIONS (choose one)\n" + _legal(observation),
    )
    return "\n\n".join(sections)


def _lines(lines: Iterable[str]) -> str:
    return "\n".join(lines) or "none"


def _seat_line(observation: Observation, seat: int) -> str:
    owned = [
        name
        for name, column in (("mortar", observation.mortar), ("press", observation.press))
        if column[seat]
    ]
    published = ", ".join(INGREDIENTS[a] for a in observation.published[seat])
    return (
        f"{observation.names[seat]}: score {observation.scores[seat]:.1f}, "
        f"reputation {observation.reputation[seat]}, coin {observation.coin[seat]}, "
        f"cards {observation.num_cards[seat]}, artifacts {', '.join(owned) or 'none'}, "
        f"published {published or 'nothing'}"
    )


def _seal_line(seal: Seal, names: tuple[str, ...]) -> str:
    endorsers = ", ".join(names[seat] for seat in seal.endorsers)
    burned = f" by {names[seal.burned_by]}" if seal.burned_by >= 0 else ""
    return (
        f"{INGREDIENTS[seal.ingredient]} is {SIGNATURES[seal.claim]}, by {names[seal.author]}: "
        f"{seal.status}{burned}, endorsed by {endorsers or 'nobody'}, survived {seal.vindications} attacks"
    )


def _fact_line(fact: Fact) -> str:
    if isinstance(fact, MixFull):
        return f"{INGREDIENTS[fact.a]} + {INGREDIENTS[fact.b]} = {fact.potion}"
    if isinstance(fact, MixSign):
        return f"{INGREDIENTS[fact.a]} + {INGREDIENTS[fact.b]} is {fact.sign}"
    return f"{INGREDIENTS[fact.a]} is not {SIGNATURES[fact.signature]}"


def _grid(observation: Observation) -> str:
    return "\n".join(
        f"{name}: {' '.join(SIGNATURES[s] for s in candidates)}"
        for name, candidates in zip(INGREDIENTS, observation.grid, strict=True)
    )


def _named_fields(verb: str, a: int, b: int, signature: int, artifact: str) -> str:
    """An action as a model would write its fields; what is out of range is left out."""
    words = [verb]
    words += [f'{field}="{INGREDIENTS[value]}"' for field, value in (("a", a), ("b", b)) if 0 <= value < 8]
    if 0 <= signature < 8:
        words.append(f"signature={SIGNATURES[signature]}")
    if artifact:
        words.append(f"artifact={artifact}")
    return " ".join(words)


def named_action(action: Action) -> str:
    """An action in the words of a reply."""
    return _named_fields(action.action, action.a, action.b, action.signature, action.artifact)


def _act_line(act: Act, names: tuple[str, ...]) -> str:
    drawn = f", drew {', '.join(INGREDIENTS[card] for card in act.draws)}" if act.draws else ""
    lost = f" (lost {', '.join(INGREDIENTS[card] for card in act.discarded)})" if act.discarded else ""
    made = f", made {act.potion}" if act.potion else ""
    attempt = _named_fields(act.action, act.a, act.b, act.signature, act.artifact)
    return f"{act.round + 1} {act.phase}, {names[act.seat]}: {attempt} - {act.outcome}{made}{drawn}{lost}"


def _legal(observation: Observation) -> str:
    """One line a legal action, except that a whole row of signatures shares one."""
    lines: list[str] = []
    for action in observation.moves:
        line = _legal_line(action)
        if not lines or lines[-1] != line:
            lines.append(line)
    return "\n".join(lines)


def _legal_line(action: Action) -> str:
    if action.action == "publish":  # all eight signatures are legal together
        return f'publish a="{INGREDIENTS[action.a]}" signature=any of the eight'
    return _named_fields(action.action, action.a, action.b, action.signature, action.artifact)
