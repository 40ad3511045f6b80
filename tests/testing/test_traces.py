"""The conformance runner: what it accepts, what it catches and how it says so."""

from __future__ import annotations

import copy
import gzip
import json
from collections import Counter

import pytest

from cogeval.testing import traces
from cogeval.testing.compare import Difference, plain, show_path
from cogeval.testing.trace_cogchemists import rebuild_order
from cogeval.testing.trace_files import Record
from cogeval.testing.trace_random import rebuild_vector

BASELINES = ("assayer", "quack")
MUD_BASELINES = ("factor", "magpie")
VECTOR = plain(rebuild_vector({"seed": "-42"}))
ORDER = plain(rebuild_order({}))
REPLY = {
    "phase": "market",
    "payload": {"action": "Publish", "a": "gra", "signature": "R+G-B+", "say": "hm", "notes": "n"},
    "ok": True,
    "action": {
        "action": "publish",
        "a": 5,
        "b": -1,
        "signature": 5,
        "artifact": "",
        "say": "hm",
        "notes": "n",
    },
}
REFUSED = {"phase": "lab", "payload": {"action": "dance"}, "ok": False, "error": "no such action"}
MUD_REPLY = {
    "payload": {"action": " I wait. ", "say": "hm", "notes": "a\r\nb", "mood": 1},
    "ok": True,
    "decision": {"sentence": "I wait.", "say": "hm", "notes": "a  b"},
}
MUD_REFUSED = {"payload": {"action": "\u00a0"}, "ok": False, "error": "action is empty"}
MUD_NO_OBJECT = {"payload": [1, 2], "ok": False, "error": "no object"}


# What a record is recognised by: spoilt, the file is refused (exit code 2) or read as another kind.
IDENTITY = ("game", "phase", "payload")


# A bond for no turns is nobody's, whoever is named: these show.
UNBOUND = {"retainerOf": 6, "retainerTurns": 5}


def first_difference(record):
    kind = next((kind for kind in traces.KINDS if kind.recognises(record)), None)
    if kind is None:
        return Difference(IDENTITY, "a known kind", "none")
    return next(traces.check_record(Record("line 1", record), kind, Counter()), None)


def kind_of(path):
    return tuple(part for part in path if isinstance(part, str) and not part.isdecimal())


def walk(value, path=()):
    """Every named field with its path, containers before what is inside."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield (*path, key), item
            if (*path, key) != ("payload",):
                yield from walk(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from walk(item, (*path, i))


def objects(value, path=()):
    """Every object with its path."""
    if isinstance(value, dict):
        yield path
        for key, item in value.items():
            if key != "payload":
                yield from objects(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from objects(item, (*path, i))


def at(value, path):
    for part in path:
        value = value[part]
    return value


def change(holder, key):
    """Changes one scalar under `holder[key]`, the last one in a list; gives the path to it."""
    value = holder[key]
    if isinstance(value, list):
        if not value:
            value.append(0)
            return (key, 0)
        return (key, *change(value, len(value) - 1))
    if isinstance(value, bool):
        holder[key] = not value
    elif isinstance(value, int | float):
        holder[key] = value + 1
    elif isinstance(value, str):
        holder[key] = "x" + value
    else:
        holder[key] = [value]
    return (key,)


def is_input(record, path):
    """What the replay is fed with: a change shows in its consequences, not at its own place."""
    if path[:1] in [
        ("seed",),
        ("config",),
        ("policies",),
        ("deadlineAfterPhases",),
        ("deadlineAfterTurns",),
        ("payload",),
        ("phase",),
    ]:
        return True
    if path[:1] == ("steps",) and path[2:3] == ("decisions",) and len(path) > 4 and path[-1] != "legalAtOpen":
        return record["policies"][path[3]] not in BASELINES
    if path[:1] == ("steps",) and path[2:3] in (("says",), ("notes",)) and len(path) > 3:
        patched = record["steps"][path[1]].get("patch")
        return patched or record["policies"][path[3]] not in MUD_BASELINES
    return path[:1] == ("steps",) and path[2:3] in (("sentences",), ("patch",))


def is_caught(difference, path, *, anywhere=False):
    """True when there is a difference, and it lies at the path or inside of it."""
    if difference is None:
        return False
    if difference.path is IDENTITY:
        return path[0] in IDENTITY
    return anywhere or difference.path[: len(path)] == path


def is_by_presence(path):
    return path[-1] in ("legalText", "error")


def samples(records, paths_of):
    """For every kind of place, the first and the last one in the records."""
    found = {}
    for number, record in enumerate(records):
        for path in paths_of(record):
            kind = kind_of(path)
            if path[:1] == ("steps",) and is_input(record, path):
                kind = (*kind, "an input")
            found.setdefault(kind, []).append((number, path))
    return [place for places in found.values() for place in {places[0]: 0, places[-1]: 0}]


@pytest.fixture(scope="module")
def records(own_records, cogmud_records):
    return [*own_records, *cogmud_records, REPLY, REFUSED, MUD_REPLY, MUD_REFUSED, VECTOR, ORDER]


def test_our_own_traces_replay_without_difference(own_traces, cogmud_traces, capsys):
    assert traces.main([str(own_traces), str(cogmud_traces)]) == 0
    assert "no differences" in capsys.readouterr().out


@pytest.mark.parametrize(
    "record",
    [REPLY, REFUSED, MUD_REPLY, MUD_REFUSED, MUD_NO_OBJECT, VECTOR, ORDER],
    ids=["reply", "refused", "mud_reply", "mud_refused", "mud_no_object", "vector", "order"],
)
def test_other_kinds_of_records_replay_without_difference(record):
    assert first_difference(record) is None


def test_a_changed_value_in_any_named_field_is_caught_at_its_place(records):
    missed = []
    places = samples(records, lambda r: [p for p, item in walk(r) if not isinstance(item, dict)])
    for number, path in places:
        if path[-1] in ("decisions", "results", "seals", "verdicts", "steps", "newPublicFacts") and at(
            records[number], path
        ):
            continue  # lists of objects: their fields are changed one by one
        if path == ("policies",):
            continue  # informative: the test below changes a baseline's name
        record = copy.deepcopy(records[number])
        holder = at(record, path[:-1])
        if is_by_presence(path):
            holder[path[-1]] = 5
            changed = path
        elif path[-1] in UNBOUND and "patch" in path:
            holder[path[-1]] = UNBOUND[path[-1]]
            changed = path
        else:
            changed = (*path[:-1], *change(holder, path[-1]))
        difference = first_difference(record)
        if not is_caught(difference, changed, anywhere=is_input(records[number], changed)):
            missed.append((number, show_path(changed), difference and difference.field))
    assert not missed
    assert len(places) > 200  # every field that the format names, at least twice


def test_a_removed_field_is_caught_at_its_place(records):
    missed = []
    for number, path in samples(records, lambda r: [p for p, _ in walk(r)]):
        record = copy.deepcopy(records[number])
        del at(record, path[:-1])[path[-1]]
        difference = first_difference(record)
        if not is_caught(difference, path, anywhere=path[0] in IDENTITY):
            missed.append((number, show_path(path), difference and difference.field))
    assert not missed


def test_an_unknown_field_is_caught_at_its_place(records):
    missed = []
    for number, path in samples(records, objects):
        record = copy.deepcopy(records[number])
        at(record, path)["surprise"] = 1
        difference = first_difference(record)
        if difference is None or difference.path != (*path, "surprise"):
            missed.append((number, show_path(path), difference and difference.field))
    assert not missed


def test_an_item_more_in_any_list_is_caught(records):
    missed = []
    lists = samples(records, lambda r: [p for p, item in walk(r) if isinstance(item, list) and item])
    for number, path in lists:
        record = copy.deepcopy(records[number])
        items = at(record, path)
        items.append(
            5 if path[-1] == "probes" or "patch" in path else copy.deepcopy(items[-1])
        )  # a probe more is a question more, and a patch may well be made twice
        difference = first_difference(record)
        if not is_caught(difference, path):
            missed.append((number, show_path(path), difference and difference.field))
    assert not missed


def test_a_baselines_name_is_binding(own_records):
    record = copy.deepcopy(own_records[0])
    seat = record["policies"].index("assayer")
    record["policies"][seat] = "random"
    difference = first_difference(record)
    assert difference is not None
    assert difference.path[-1] == "scripted"


@pytest.mark.parametrize("payload_change", [{"a": "nothing"}, {"signature": "+-"}, {"say": "other"}])
def test_another_reply_reads_differently(payload_change):
    assert first_difference(REPLY | {"payload": REPLY["payload"] | payload_change}) is not None


def test_the_first_difference_names_file_line_seed_step_seat_and_field(own_records, tmp_path, capsys):
    broken = copy.deepcopy(own_records[:2])
    result = broken[1]["steps"][2]["results"][1]
    result["potion"] = "BEER"
    broken[1]["steps"][4]["after"]["coin"][3] += 1
    file = tmp_path / "broken.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in broken))
    assert traces.main([str(file)]) == 1
    out = capsys.readouterr().out
    place = f"{file}, line 2, seed {broken[1]['seed']}, step 2, seat {result['seat']}"
    assert out.startswith(f'{place}: steps[2].results[1].potion: expected "BEER", got ')
    assert "2 differences" in out
    assert "steps[4]" not in out
    assert traces.main([str(file), "--all"]) == 1
    assert (
        f"line 2, seed {broken[1]['seed']}, step 4, seat 3: steps[4].after.coin[3]" in capsys.readouterr().out
    )


@pytest.mark.parametrize("name", ["traces.jsonl", "no_ending", "traces.jsonl.gz"])
def test_kinds_are_recognised_by_content(name, own_traces, tmp_path):
    data = own_traces.read_bytes()
    file = tmp_path / name
    file.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert traces.main([str(file)]) == 0


@pytest.mark.parametrize(
    "text", [json.dumps([VECTOR, VECTOR]), json.dumps([VECTOR], indent=1), json.dumps(ORDER)]
)
def test_whole_json_documents_are_read(text, tmp_path, capsys):
    file = tmp_path / "document.json"
    file.write_text(text)
    assert traces.main([str(file)]) == 0
    capsys.readouterr()


UNREADABLE = {
    "missing.jsonl": None,
    "not_gzip.jsonl.gz": b'{"game": "cogchemists"}',
    "cut_short.jsonl.gz": gzip.compress(b'{"game": "cogchemists"}' * 50)[:40],
    "damaged.gz": gzip.compress(b"x" * 500)[:12] + b"\xff" * 60,
    "not_json.jsonl": b"seed,coin\n1,2\n",
    "cut_line.jsonl": json.dumps(REPLY).encode() + b'\n{"phase": ',
    "not_utf8.jsonl": b'{"game": "\xff"}',
    "empty.jsonl": b"",
    "blank.jsonl": b"\n \n",
    "nothing.json": b"[]",
    "unknown.jsonl": b'{"game": "chess"}\n',
    "number.json": b"5",
    "numbers.jsonl": b"[5]\n",
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_unreadable_input_is_one_clear_line_and_exit_code_2(name, tmp_path, capsys):
    file = tmp_path / name
    if UNREADABLE[name] is not None:
        file.write_bytes(UNREADABLE[name])
    assert traces.main([str(file)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"{file}: ")
    assert captured.err.count("\n") == 1
    assert "expected" in captured.err
    assert "got" in captured.err


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("seed",), "7"),
        (("seed",), True),
        (("config", "rounds"), 11),
        (("config", "talk"), 1),
        (("steps", 0, "decisions", 0, "a"), None),
        (("steps", 0, "decisions", 0), []),
        (("steps",), {}),
        (("steps", 1, "probes", 0, 5), 3),
        (("policies",), "abcd"),
        (("deadlineAfterPhases",), None),
    ],
)
def test_unusable_inputs_are_differences_not_crashes(path, value, own_records):
    record = copy.deepcopy(own_records[0])
    at(record, path[:-1])[path[-1]] = value
    assert first_difference(record) is not None


def test_our_own_traces_reach_every_verb_outcome_reason_and_fact(own_records):
    steps = [step for record in own_records for step in record["steps"]]
    results = [result for step in steps for result in step["results"]]
    verbs = {result["action"] for result in results}
    outcomes = {result["outcome"] for result in results}
    reasons = {probe[-1] for step in steps for probe in step["probes"]}
    facts = {fact["kind"] for step in steps for fact in step["after"]["newPublicFacts"]}
    known = {
        "already_claimed",
        "already_endorsed",
        "already_owned",
        "bad_signature",
        "missing_card",
        "no_coin",
    }
    known |= {"no_such_theory", "own_theory", "unknown_action", "unknown_artifact", "unknown_ingredient"}
    known |= {"wrong_phase"}
    assert verbs >= {"forage", "test_student", "test_self", "transmute", "pass"}
    assert verbs >= {"sell", "publish", "endorse", "debunk", "buy"}
    assert outcomes >= {"ok", "hit", "miss", "poisoned", "glowed", "burned", "survived"}
    assert {o.removeprefix("rejected:") for o in outcomes if o.startswith("rejected:")} == known
    assert reasons == known | {"artifacts_disabled", ""}
    assert facts == {"mixFull", "mixSign", "notSig"}
    assert any(result["discarded"] for result in results)
    assert any(record["deadlineAfterPhases"] >= 0 for record in own_records)
    assert any(v["endorsers"] for record in own_records for v in record["exhibition"]["verdicts"])
