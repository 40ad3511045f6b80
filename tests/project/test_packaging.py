"""The project as it is installed: conf/ is found from a checkout, from a wheel, and from a Ray worker."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONF_FILES = sorted(p.relative_to(ROOT / "conf").as_posix() for p in (ROOT / "conf").rglob("*.yaml"))
ASK = "from cogeval.config import conf_dir; print(conf_dir())"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel built from this checkout, without a network."""
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = out.glob("*.whl")
    return built


def test_a_checkout_uses_the_conf_beside_the_package():
    from cogeval.config import conf_dir

    assert conf_dir() == ROOT / "conf"


def test_the_wheel_carries_conf_rules_and_types(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert [
        n.removeprefix("cogeval/conf/") for n in sorted(names) if n.startswith("cogeval/conf/")
    ] == CONF_FILES
    assert "cogeval/py.typed" in names
    assert "cogeval/games/cogchemists/RULES.md" in names
    assert not [n for n in names if n.startswith(("tests/", "conf/", "benchmarks/"))]


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The wheel unpacked where nothing of the checkout can be found."""
    site = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(site)
    return site


def run_python(site, code, cwd):
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(site)!r})\n{code}"]
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


def test_an_installed_wheel_uses_the_conf_inside_it(installed, tmp_path):
    assert run_python(installed, ASK, tmp_path) == str(installed / "cogeval" / "conf")


def test_an_installed_wheel_composes_a_run(installed, tmp_path):
    code = "from cogeval.cli import main; sys.exit(main(['run', '--cfg', 'job', 'seed=5']))"
    assert "seed: 5" in run_python(installed, code, tmp_path)


def test_an_installed_wheel_finds_the_prompts_and_prices_of_models(installed, tmp_path):
    code = (
        "from cogeval.agents import build_agent; from cogeval.games import make_game; "
        "model = {'kind': 'llm', 'provider': 'openai', 'model': 'gpt-5'}; "
        "agent = build_agent('x', make_game('cogz'), model).seated.agent; "
        "print(agent.price_in({}) is not None, 'ADVICE' in agent.prompt.system_after)"
    )
    assert run_python(installed, code, tmp_path) == "True True"


@pytest.mark.cluster
def test_a_ray_worker_finds_the_same_conf():
    import ray

    from cogeval.cluster.connection import connected
    from cogeval.cluster.plan import ClusterOptions
    from cogeval.config import conf_dir

    with connected(ClusterOptions(workers=1)):
        assert ray.get(ray.remote(conf_dir).remote()) == ROOT / "conf"
