"""What bad input gets: one line with the way out, exit code 2, no traceback; nothing is left behind."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from cogeval.cli import playing, session
from cogeval.cli.environment import check_packages
from cogeval.errors import InputError, RunError


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        ("game=cogchemist", "unknown game 'cogchemist'; known, closest first: cogchemists"),
        ("pool=rando", "unknown pool 'rando'; known, closest first: random"),
        ("schedule=rotation", "unknown schedule 'rotation'; known, closest first: rotations"),
        ("experiment=first", "unknown experiment 'first'; known, closest first: first_ladder"),
        ("schedule.design=round", "unknown schedule.design 'round'; known, closest first: round_robin"),
        ("schedule.block=3", "unknown schedule key 'block'; known, closest first: blocks"),
        ("seeed=1", "unknown key 'seeed'; known, closest first: seed"),
        ("game.round=4", "unknown game key 'round'; known, closest first: rounds"),
        ("+game.round=4", "unknown parameter of cogchemists 'round'; known, closest first: rounds"),
        ("+schedule.block=4", "'block'; known, closest first: blocks"),
        ("pool.agents.quak.kind=random", "unknown pool.agents key 'quak'; known, closest first: quack"),
        ("+pool.agents.x.kind=randm", "pool.agents.x: 'randm'; known, closest first: random"),
        ("+pool.agents.x={kind: baseline, baseline: quak}", "'quak'; known, closest first: quack"),
        ("+pool.agents.random.sed=1", "unknown parameter of agent kind random in pool.agents.random: 'sed'"),
        ("game.rounds=2", "expected rounds of cogchemists as a whole number 3..10, got 2"),
        ("game.rounds=11", "expected rounds of cogchemists as a whole number 3..10, got 11"),
        ("schedule.blocks=-1", "expected schedule.blocks of at least 1, got -1"),
        ("schedule.blocks=many", "schedule.blocks: expected int, got 'many'"),
        ("~schedule.blocks", "schedule.blocks: expected a value, got none; set it with schedule.blocks="),
        ("+pool.agents.x=3", "pool.agents.x: expected a mapping, got 3"),
        ("pool.agents.quack=3", "pool.agents.quack: expected a mapping, got 3"),
        ("~pool", "pool.agents: expected at least one agent, got none; name a pool, as pool=random"),
        ("pool=/etc/passwd", "unknown pool '/etc/passwd'; known, closest first: "),
        ("cluster.workers=1025", "cluster.workers: expected at most 1024 on one machine, got 1025"),
        ("store.shard_mb=inf", "store.shard_mb: expected a finite number above 0, got inf"),
        ("tracking.uri='http://host/?access_token=hush'", "tracking.uri holds a password, token or key"),
        ("tracking.uri=http://host/?key=hush", "got 'tracking.uri=http://host/?key=***'"),
        ("tracking.uri=htp://host", "tracking.uri: expected an address of MLflow's (http, https)"),
        ("+pool.agents.quack.api_key=${oc.env:HUSH}", "pool.agents.quack.api_key: a run keeps its config"),
        ("+pool.agents.quack.all=[{auth_token: hush}]", "pool.agents.quack.all.auth_token: a run keeps"),
        ("run.id=-x", "expected a plain directory name as the run id, got '-x': 1 to 100 letters"),
        ("run.id='a b'", "expected a plain directory name as the run id, got 'a b'"),
        ("run.id='a=b'", "expected a plain directory name as the run id, got 'a=b'"),
        ("cluster.workers=0", "cluster.workers: expected a finite number above 0, got 0"),
        ("deadlines.decision_s=inf", "deadlines.decision_s: expected a finite number above 0, got inf"),
        ("store.shard_mb=nan", "store.shard_mb: expected a finite number above 0, got nan"),
        ("deadlines.play_fraction=2", "deadlines.play_fraction: expected a number in (0, 1], got 2"),
        ("rating.confidence=95", "rating.confidence: expected a number in (0, 1), got 95"),
        ("rating.anchor_elo=nan", "rating.anchor_elo: expected a finite number, got nan"),
        ("deadlines.on_fault=basline", "deadlines.on_fault 'basline'; known, closest first: baseline"),
        ("rating.anchor=quak", "'quak'; known, closest first: quack"),
        ("seed", "expected KEY=VALUE, got 'seed'; for example seed=0"),
        ("=3", "expected KEY=VALUE, got '=3'; for example seed=0"),
        ("schedule.seeds=[1", "expected KEY=VALUE, got 'schedule.seeds=[1', whose value cannot be read"),
        ("seed=1,2", "seed=1,2 names several values: add -m to play one run for each"),
        ("+seed=1", "+seed=1: it is there already; write seed=1 to change it"),
        ("seed.x=1", "seed is a single value and has no key 'x'"),
        ("schedule=null", "schedule=null: expected the name of an option after the ="),
        ("run.root=${nothing}", "nothing"),
        ("hydra.run.dir=x", "hydra.run.dir has no effect"),
        ("tracking.uri=http://me:hush@host", "tracking.uri holds a password"),
        ("agent_paths=[nowhere]", "agent_paths: expected directories, got 'nowhere'"),
        ("'seed=1'", "expected KEY=VALUE, got 'seed=1' with quotes of its own"),
        ("'run.root=\"a b\"'", "write 'run.root=\"a b\"'"),
        ("run.id=../x", "expected a plain directory name as the run id, got '../x'"),
    ],
)  # fmt: skip
def test_wrong_input_of_run_is_one_line_with_the_known_names(
    cogeval, tmp_path: Path, overrides: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HUSH", "hush-hush")
    answer = cogeval("run", overrides)
    assert answer.code == 2
    assert answer.out == ""
    assert answer.err.startswith("cogeval: ")
    assert answer.err.count("\n") == 1
    assert said in answer.err
    assert "hush" not in answer.err
    assert list(tmp_path.iterdir()) == []


def test_a_pool_with_too_few_agents_for_the_design_is_refused(cogeval) -> None:
    answer = cogeval("run", "~pool.agents.quack", "~pool.agents.random", "~pool.agents.assayer")
    assert answer.code == 2
    assert "pool.agents: expected at least one agent, got none" in answer.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("agents:\n  a: {kind: random\n", "/pool/mine.yaml, line 3: cannot be read as YAML: "),
        ("agents:\n  a: {}\n  a: {}\n", "/pool/mine.yaml, line 3: cannot be read as YAML: found dup"),
        ("agents:\n  null: {kind: random}\n", "pool=mine: agents: expected text as each key"),
        ("", "pool.agents: expected at least one agent, got none; name a pool, as pool=random"),
        ("agents: 3\n", "pool.agents: expected a mapping, got 3"),
        ("agents:\n  -x: {kind: random}\n", "and no - first, got '-x'"),
        ("agents:\n  a=b: {kind: random}\n", "without =, control characters and line ends"),
        ('agents:\n  "a\\nb": {kind: random}\n', r"got 'a\nb'"),
    ],
)  # fmt: skip
def test_a_pool_file_that_cannot_be_read_is_one_line_that_names_the_place(
    cogeval, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "conf" / "pool").mkdir(parents=True)
    (tmp_path / "conf" / "pool" / "mine.yaml").write_text(text)
    answer = cogeval("run", "--config-dir", str(tmp_path / "conf"), "pool=mine")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert said in answer.err


def test_only_our_own_and_the_users_configurations_are_offered(cogeval) -> None:
    answer = cogeval("run", "--config-name", "nope")
    assert answer.code == 2
    assert answer.err.endswith("'nope'; known, closest first: config\n")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("x = 1\nraise SystemExit(3)\n", "raised SystemExit: 3 ({file}, line 2)"),
        ("\n\n1 / 0\n", "raised ZeroDivisionError: division by zero ({file}, line 3)"),
        ("def f(:\n", "raised SyntaxError: invalid syntax ({file}, line 1)"),
        (
            "import no_such_module\n",
            "raised ModuleNotFoundError: No module named 'no_such_module' ({file}, l",
        ),
        ("Other = 1\n", "{file} has no 'Agent'"),
    ],
)
def test_an_agents_module_that_fails_is_named_with_its_line(
    cogeval, tmp_path: Path, source: str, said: str
) -> None:
    module = f"failing_{abs(hash(source))}"
    (tmp_path / f"{module}.py").write_text(source)
    answer = cogeval("run", f"+pool.agents.mine={{_target_: {module}.Agent}}")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert answer.err.startswith(f"cogeval: pool.agents.mine: _target_ '{module}.Agent' cannot be imported: ")
    assert said.format(file=tmp_path / f"{module}.py") in answer.err


def test_a_misspelt_key_of_a_reading_command_is_refused(cogeval, make_run) -> None:
    make_run(done=0, name="mine")
    for wrong in ("run.rootx=3", "run.root.x=3"):
        answer = cogeval("status", "mine", "run.root=runs", wrong)
        assert answer.code == 2
        assert f"cogeval status takes only the keys run.root, got '{wrong}'" in answer.err


def test_jobs_of_a_sweep_that_would_be_one_run_are_refused_before_anything_is_played(
    cogeval, tmp_path: Path
) -> None:
    answer = cogeval("run", "-m", "seed=1,2", "run.id=same")
    assert (answer.code, answer.out) == (2, "")
    assert "run.id: expected another one for each job of a sweep, got 'same' for several" in answer.err
    assert list(tmp_path.iterdir()) == []


def test_a_directory_in_place_of_the_lock_is_named(cogeval, make_run) -> None:
    run = make_run(done=2, name="mine")
    (run.path / "lock").mkdir()
    assert cogeval("status", "mine").code == 0
    answer = cogeval("resume", "mine")
    assert answer.code == 2
    assert (
        answer.err
        == "cogeval: expected a lock file or nothing at runs/mine/lock, got a directory; remove it\n"
    )


def test_a_run_that_another_process_drives_is_not_said_to_go_on_by_resuming(
    cogeval, make_run, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(done=2, name="mine")
    shutil.rmtree(run.shards_path)

    def driven(*_: object, **__: object) -> None:
        raise InputError("run mine is being driven by process 1")

    monkeypatch.setattr(session, "_driven", driven)
    answer = cogeval("resume", "mine", "--quiet")
    assert (answer.code, answer.err) == (2, "cogeval: run mine is being driven by process 1\n")
    assert run.shards_path.is_dir()  # without it every episode would fail and become void


def test_an_unknown_verb_lists_the_verbs_closest_first(cogeval) -> None:
    answer = cogeval("rum", "seed=1")
    assert answer.code == 2
    assert answer.err.startswith("cogeval: unknown verb 'rum'; known, closest first: r")
    assert "for example cogeval run seed=1" in cogeval("seed=1").err


def test_an_unwritable_run_directory_is_named(cogeval, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a directory")
    answer = cogeval("run", f"run.root={tmp_path}/file/runs", "tracking=off")
    assert answer.code == 2
    assert "expected a directory that can be written as run.root" in answer.err
    assert "give another with run.root=DIR" in answer.err


def test_a_run_id_that_exists_is_never_overwritten(cogeval, make_run) -> None:
    run = make_run(done=0, name="mine")
    before = (run.path / "manifest.json").read_bytes()
    answer = cogeval("run", "run.id=mine", "tracking=off")
    assert answer.code == 2
    assert "run mine exists in runs and is never overwritten" in answer.err
    assert "go on with `cogeval resume mine`" in answer.err
    make_run("run.root=other", done=0, name="mine")
    answer = cogeval("run", "run.id=mine", "tracking=off", "run.root=other")
    assert "go on with `cogeval resume mine run.root=other`" in answer.err
    assert (run.path / "manifest.json").read_bytes() == before


def test_a_run_that_is_not_there_lists_those_that_are(cogeval, make_run) -> None:
    assert "no runs in runs: make one with `cogeval run`" in cogeval("status", "latest").err
    make_run(done=0, name="monday")
    make_run(done=0, name="tuesday")
    answer = cogeval("status", "monda_")
    assert answer.code == 2
    assert "unknown run in runs 'monda_'; known, closest first: monday, tuesday" in answer.err
    assert cogeval("status", "mon").code == 0
    assert "expected a RUN" in cogeval("status").err
    assert "expected one RUN, got 'monday' 'tuesday'" in cogeval("status", "monday", "tuesday").err


@pytest.mark.parametrize("flags", [("--cfg", "job", "--plan"), ("--resolve",), ("--plan", "--info")])
def test_flags_that_exclude_each_other_are_refused(cogeval, flags: tuple[str, ...]) -> None:
    assert cogeval("run", *flags).code == 2


def test_a_package_that_is_too_old_or_missing_is_named_with_the_command_that_mends_it() -> None:
    needs = ["ray>=2.50", "numpy>=2.0,<3", "extra>=1; extra == 'dev'"]
    check_packages(needs, {"ray": "2.60.0", "numpy": "2.4.6"}.__getitem__)
    with pytest.raises(InputError) as caught:
        check_packages(needs, {"ray": "2.9.3", "numpy": "2.0"}.__getitem__)
    assert str(caught.value) == (
        "cogeval needs ray >=2.50, this is 2.9.3; install it with: python -m pip install 'ray>=2.50'"
    )
    with pytest.raises(InputError, match=r"numpy .*this is 3\.1"):
        check_packages(needs, {"ray": "2.60", "numpy": "3.1"}.__getitem__)
    with pytest.raises(InputError, match="which is not installed"):
        check_packages(["no-such-package>=1"])
    check_packages()


def test_our_own_failure_is_code_1_and_shows_its_traceback_only_with_debug(
    cogeval, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise KeyError("odd\nthing\x1b[31m")

    monkeypatch.setattr(playing, "build_experiment", broken)
    answer = cogeval("run")
    assert answer.code == 1
    assert answer.err.startswith("cogeval: internal error: KeyError: ")
    assert "run again with --debug" in answer.err
    assert answer.err.count("\n") == 1
    assert "\x1b" not in answer.err
    assert "Traceback" in cogeval("run", "--debug").err


def test_a_run_error_is_code_1_and_a_note_is_part_of_the_line(
    cogeval, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        error = RunError("no room to write x")
        error.add_note("to go on: cogeval resume y")
        raise error

    monkeypatch.setattr(playing, "build_experiment", full)
    answer = cogeval("run")
    assert answer.code == 1
    assert answer.err == "cogeval: no room to write x; to go on: cogeval resume y\n"


def test_ctrl_c_outside_of_playing_is_code_130(cogeval, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(playing, "build_experiment", interrupted)
    answer = cogeval("run")
    assert (answer.code, answer.err) == (130, "cogeval: interrupted\n")


def test_a_reader_that_goes_away_is_no_error() -> None:
    import subprocess
    import sys

    reading, writing = os.pipe()
    os.close(reading)
    code = "import sys; from cogeval.cli import main; sys.exit(main(['run', '--cfg', 'all']))"
    done = subprocess.run([sys.executable, "-c", code], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")
