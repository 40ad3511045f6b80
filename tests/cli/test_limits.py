"""A run that pauses at its spending cap says so, and goes on with a higher one."""

import re
from pathlib import Path

import pytest

from cogeval.agents import AGENTS
from cogeval.cli.composing import Composer
from cogeval.cluster.connection import connected
from cogeval.cluster.plan import ClusterOptions
from cogeval.config import build_experiment, conf_dir, config_from_yaml, config_to_yaml, read_config
from cogeval.store.spend import paused_entry

FAULTY = Path(__file__).parents[1] / "cluster" / "faulty"
LIMITED = (
    "game.rounds=3", "schedule=rotations", "schedule.blocks=6", "tracking=off", "cluster.workers=1",
    "cluster.episodes_in_flight=1", f"agent_paths=[{FAULTY}]", "~pool.agents",
)  # fmt: skip


def experiment_of(*overrides):
    return build_experiment(read_config(Composer(conf_dir()).compose(list(overrides))))


@pytest.mark.cluster
def test_a_run_pauses_with_its_own_exit_code_and_resumes_with_a_higher_cap(cogeval, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(FAULTY))
    paying = __import__("paying_agents")
    monkeypatch.setitem(AGENTS, "paying", paying.paying_agent)
    agent = f"+pool.agents.payer={{kind: paying, cost_usd: 0.01, log: {tmp_path / 'log'}}}"
    with connected(ClusterOptions(workers=1)):
        paused = cogeval("run", *LIMITED, agent, "limits.spend_usd=0.5", "--json")
        assert paused.code == 3
        assert (paused.json["paused"], paused.json["complete"]) == (True, False)
        said = re.search(
            r"paused: spent \$0\.48 of \$0\.50; 2 of 6 episodes recorded\. "
            r"Go on with: cogeval (resume \S+ limits\.spend_usd=1\.6)$",
            paused.err.strip(),
        )
        assert said, paused.err

        status = cogeval("status", "latest", "--json").json
        assert (status["state"], status["spent_usd"], status["cap_usd"]) == ("paused", 0.48, 0.5)
        shown = cogeval("status", "latest").out
        assert "$0.48 of $0.50, its spending cap" in shown
        assert "limits.spend_usd=" in shown

        # An episode costs $0.24: one that cannot end is not begun, whoever asks.
        short = cogeval("resume", "latest", "limits.spend_usd=0.7")
        assert short.code == 2
        assert (
            "limits.spend_usd=0.7 leaves $0.22, as $0.48 are spent, and an episode costs $0.24" in short.err
        )
        assert cogeval("status", "latest", "--json").json["spent_usd"] == 0.48

        # What a resume was given alone is in the command that goes on after it, under another cap.
        some = cogeval("resume", "latest", "limits.spend_usd=0.8", "cluster.episodes_in_flight=1")
        assert some.code == 3
        again = r"cogeval (resume \S+ cluster\.episodes_in_flight=1 limits\.spend_usd=1\.6)$"
        said = re.search(again, some.err.strip())
        assert said, some.err

        resumed = cogeval(*said[1].split(), "--json")
        assert (resumed.code, resumed.json["complete"], resumed.json["played"]) == (0, True, 3)

        assert cogeval("status", "latest", "--json").json["state"] == "complete"

        poor = cogeval("run", *LIMITED, agent, "limits.spend_usd=0.02", "cluster.episodes_in_flight=4")
        assert poor.code == 3
        assert "of $0.020; 0 of 6 episodes recorded. Up to 4 episodes a worker" in poor.err
        assert "set cluster.episodes_in_flight=1" in poor.err


def test_limits_are_no_part_of_what_is_played_and_runs_of_before_have_none():
    experiments = [
        experiment_of(),
        experiment_of("limits.spend_usd=1", "+limits.accounts.main.concurrency=2"),
    ]
    assert len({experiment.digest for experiment in experiments}) == 1
    text = config_to_yaml(experiments[0].config)
    before = config_from_yaml(text[: text.index("limits:")])
    assert before == experiments[0].config


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("+limits.accounts.main.concurency=1", "closest first: concurrency"),
        ("+limits.accounts.main.concurrency=0.5", r"limits\.accounts\.main\.concurrency: expected a whole"),
        ("+limits.accounts.main.tokens_per_minute=0", "a finite number of 1 or more"),
        ("+limits.accounts.main=50", r"limits\.accounts\.main: expected a mapping"),
        ("limits.spend_usd=0", r"limits\.spend_usd: expected a finite number above 0"),
    ],
)
def test_limits_that_limit_nothing_are_refused_by_name(cogeval, override, said):
    answer = cogeval("run", "--plan", override)
    assert answer.code == 2
    assert re.search(said, answer.err), answer.err


MODEL = "+pool.agents.m={kind:llm,provider:openai,model:gpt-5-mini,base_url:'http://localhost:1/v1'}"


def test_a_typed_limit_that_no_agent_of_the_pool_is_under_is_refused_and_the_accounts_named(cogeval):
    typed = "+limits.accounts.localhost1.concurrency=2"
    answer = cogeval("run", "--plan", MODEL, typed)
    assert answer.code == 2
    assert "unknown account in limits.accounts" in answer.err
    assert "'localhost1'; known, closest first: localhost_1" in answer.err
    assert cogeval("run", "--plan", typed).code == 2
    assert cogeval("run", "--plan", MODEL, "+limits.accounts.localhost_1={concurrency: 2}").code == 0
    assert cogeval("run", "--plan", MODEL, "+limits.accounts.localhost1={concurrency: 2}").code == 2


def test_a_file_of_limits_that_several_pools_share_is_only_warned_of(cogeval, tmp_path):
    limits = tmp_path / "mine" / "limits" / "shared.yaml"
    limits.parent.mkdir(parents=True)
    limits.write_text("accounts:\n  localhost_1: {concurrency: 2}\n  other: {concurrency: 3}\n")
    shared = ("--config-dir", str(tmp_path / "mine"), "limits=shared")
    answer = cogeval("run", "--plan", MODEL, *shared)
    assert answer.code == 0
    assert "no agent of the pool uses other; they use localhost_1" in answer.err


def test_the_jobs_of_a_sweep_share_limits_but_some_agent_is_under_each(cogeval):
    server = "+pool.agents.m={kind:llm,provider:openai,model:gpt-5-mini,base_url:'http://localhost:1/v1'"
    accounts = f"{server},account:one}},{server.lstrip('+').partition('=')[2]},account:two}}"
    jobs = ("run", "-m", "--plan", accounts, "schedule.blocks=1")
    assert (
        cogeval(*jobs, "+limits.accounts.one.concurrency=2", "+limits.accounts.two.concurrency=2").code == 0
    )
    answer = cogeval(*jobs, "+limits.accounts.three.concurrency=2")
    assert answer.code == 2
    assert "'three'; known, closest first:" in answer.err


def test_the_command_that_a_refused_resume_names_says_where_the_run_is(make_run, cogeval, tmp_path):
    run = make_run(done=2)
    with run.lock():
        run.append_log(paused_entry(4.0, 3.5))
    elsewhere = tmp_path / "elsewhere"
    run.path.parent.rename(elsewhere)
    answer = cogeval("resume", run.run_id, f"run.root={elsewhere}", "limits.spend_usd=3")
    assert answer.code == 2
    assert f"cogeval resume {run.run_id} run.root=" in answer.err.replace("\n", " ")


def test_what_changes_the_episodes_cannot_be_changed_beside_the_limits(make_run, cogeval):
    make_run(done=2)
    answer = cogeval("resume", "latest", "limits.spend_usd=2", "deadlines.decision_s=1")
    assert answer.code == 2
    assert "deadlines" in answer.err


def test_a_paused_run_is_paused_until_somebody_goes_on(make_run, cogeval):
    run = make_run(done=2)
    with run.lock():
        run.append_log(paused_entry(4.0, 3.5))
    status = cogeval("status", "latest", "--json").json
    assert (status["state"], status["spent_usd"], status["cap_usd"]) == ("paused", 4.0, 3.5)
    with run.lock():
        run.append_log({"event": "dispatch", "worker": "w", "indexes": [[2, 2]], "alone": False})
    status = cogeval("status", "latest", "--json").json
    assert (status["state"], status["spent_usd"], status["cap_usd"]) == ("interrupted", 4.0, None)


def test_a_cap_over_a_model_that_nobody_knows_the_price_of_is_refused(cogeval) -> None:
    model = "+pool.agents.m={kind:llm,provider:openai,model:nobodys,base_url:'http://localhost:1/v1'}"
    answer = cogeval("run", "--plan", model, "limits.spend_usd=1")
    assert answer.code == 2
    assert "pool.agents.m: no price is known for its model" in answer.err
