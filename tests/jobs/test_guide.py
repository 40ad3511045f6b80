"""docs/cluster.md does as it says: its commands are read, composed and called, its figures are sums."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from job_fakes import JOBS, ROOT, put, run_with
from ray.scripts import scripts

from cogeval.cli.arguments import read_arguments
from cogeval.cli.settings import composer_of
from cogeval.cli.verbs import VERBS
from cogeval.config import read_config

PAGE = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8")
LINES = [
    line.strip()
    for block in re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)
    for line in block.splitlines()
    if line.strip()
] + re.findall(r"`(cogeval (?:run|status) [^`]+)`", PAGE)
JOB_LINES = [line for line in LINES if "jobs/" in line]


def words_of(line):
    """A command line as variables and words."""
    words = shlex.split(line)
    variables = dict(word.split("=", 1) for word in words if re.fullmatch(r"[A-Z_]+=.*", word))
    return variables, words[len(variables) :]


@pytest.mark.parametrize("line", [line for line in LINES if line not in JOB_LINES])
def test_every_command_of_the_page_is_read_and_composed(line: str) -> None:
    _, verb, *rest = shlex.split(line)
    given = read_arguments(VERBS[verb], rest)
    if verb == "run":
        read_config(composer_of(given).compose(given.overrides))


@pytest.mark.parametrize("line", JOB_LINES)
def test_every_job_of_the_page_hands_its_words_to_a_run(line: str, tmp_path: Path) -> None:
    variables, (script, *overrides) = words_of(line)
    assert (ROOT / script).is_file()
    for name in ("ray", "cogeval"):
        put(tmp_path, name)
    put(tmp_path, "python", says="127.0.0.1:6379")
    _, calls = run_with(tmp_path, str(ROOT / script), *overrides, **variables)
    last = next(call for call in calls if "cogeval" in call)  # nodes start beside it, in any order
    words = last[last.index("cogeval") + 2 :]
    given = read_arguments(VERBS["run"], words)
    assert {*overrides} <= {*given.overrides}
    config = read_config(composer_of(given).compose(given.overrides))
    assert config.cluster.address in ("auto", "127.0.0.1:6379")
    assert config.run.root == variables.get("RUN_ROOT", "runs")


def test_the_page_names_every_file_of_jobs() -> None:
    named = {*re.findall(r"`jobs/([\w.]+)`", PAGE)}
    there = {path.name for path in JOBS.iterdir() if path.is_file()}
    assert named == there - {"wait_for_nodes.py"}  # the others call it


def test_every_key_that_the_page_names_is_one_of_the_configuration() -> None:
    documented = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    for key in re.findall(r"`((?:cluster|store|run|deadlines|limits)\.[\w.]+)(?:=[^`]*)?`", PAGE):
        assert f"`{key}`" in documented, key


def test_the_example_of_the_page_is_a_sum() -> None:
    calls_a_minute, latency_s = 30_000, 4
    under_way = calls_a_minute * latency_s / 60
    assert (
        f"For {calls_a_minute:,} calls a minute at {latency_s} s a call, {under_way:,.0f} calls must" in PAGE
    )
    assert f"four seats at once: {under_way / 4:.0f} episodes" in PAGE
    assert f"COGZ one at a time: {under_way:,.0f} episodes" in PAGE
    assert f"At 20 ms of work a call that is {60 / 0.02:,.0f} a minute: ten CPUs" in PAGE
    assert calls_a_minute / (60 / 0.02) == 10


def test_the_memory_of_the_page_is_what_its_formula_gives() -> None:
    (formula,) = re.findall(r"^(\d+) \+ workers x \((\d+) \+ ([\d.]+) x .*$", PAGE, re.MULTILINE)
    node, worker, each = (float(number) for number in formula)
    assert "3,144 MB" in PAGE
    assert round(node + 8 * (worker + each * 63 + 2 * 64)) == 3144


def files_of(page, folder):
    """Writes the files that a page says to save."""
    for name, text in re.findall(r"this as `([\w/.]+)`:\n\n```\w+\n(.*?)```", page, re.DOTALL):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


def shell_blocks(page):
    return re.findall(r"```sh\n(.*?)```", page, re.DOTALL)


STORE = (ROOT / "docs" / "store.md").read_text(encoding="utf-8")
AGENTS = (ROOT / "docs" / "agents.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("block", [*shell_blocks(PAGE), *shell_blocks(STORE)])
def test_every_block_of_shell_can_be_read_and_ends_only_what_it_started(block: str) -> None:
    subprocess.run(["bash", "-n"], input=block, text=True, check=True)
    assert not re.search(r"ray stop|pkill|killall", block)


def test_the_cluster_of_the_page_is_started_with_options_that_ray_has() -> None:
    started = [line for block in shell_blocks(PAGE) for line in block.splitlines() if "--" in line]
    known = {option for parameter in scripts.start.params for option in parameter.opts}
    ours = {"--address-file", "--pid", "--log"}  # of wait_for_nodes.py
    given = {*re.findall(r"(?<=[ (])--[a-z-]+", "\n".join(started))} - ours
    assert {"--head", "--temp-dir", "--dashboard-port"} <= given <= known


def test_the_object_store_of_the_page_is_the_one_of_the_tests_and_its_configuration_composes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = shell_blocks(STORE)
    server = (ROOT / "tests" / "store" / "s3_server.py").read_text()
    command = block.partition("\nweed ")[2].partition(">")[0]
    for option in re.findall(r"(?<=\s)(-[\w.]+)", command):
        assert option in server, option
    files_of(STORE, tmp_path)
    monkeypatch.chdir(tmp_path)
    here = STORE.partition("### One on this machine")[2].partition("\n### ")[0]
    run, status = re.findall(r"^cogeval .*$", here, re.MULTILINE)
    given = read_arguments(VERBS["run"], shlex.split(run)[2:])
    config = read_config(composer_of(given).compose(given.overrides))
    assert config.run.root.startswith("s3://bucket/evaluations?")
    assert shlex.split(status)[3] == f'run.root="{config.run.root}"'
    read_arguments(VERBS["status"], shlex.split(status)[2:])


def test_the_shared_agent_of_the_page_fits_on_two_cores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files_of(AGENTS, tmp_path)
    monkeypatch.chdir(tmp_path)
    (line,) = re.findall(r"`(cogeval run [^`]*pool=together[^`]*)`", AGENTS)
    given = read_arguments(VERBS["run"], shlex.split(line)[2:])
    config = read_config(composer_of(given).compose(given.overrides))
    asked = config.pool.agents["together"]["actor"]
    assert (asked["replicas"] + asked["spares"]) * asked["cpus"] + config.cluster.workers <= 2
    assert not {"gpus", "memory_mb"} & {*asked}
