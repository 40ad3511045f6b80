"""What the repository promises about itself."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def test_the_two_commands_of_the_readme_are_targets_of_the_makefile():
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE)
    for command in re.findall(r"^make ([a-z]+)", README, re.MULTILINE):
        assert command in targets
    assert {"run", "test"} <= {*re.findall(r"^make ([a-z]+)", README, re.MULTILINE)}


def test_continuous_integration_runs_what_the_readme_says():
    assert (ROOT / ".ci" / "run").read_text().rstrip().endswith("make test")


def test_every_make_target_has_its_line_of_help():
    shown = subprocess.run(
        ["make", "-s", "help"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony
    assert {*re.findall(r"make ([\w-]+)", shown)} >= {*phony[1].split()}


def test_the_lock_names_versions_and_no_address():
    lines = [
        x
        for x in (ROOT / "requirements.lock").read_text().splitlines()
        if x and not x.lstrip().startswith("#")
    ]
    assert len(lines) > 50
    for line in lines:
        assert re.match(r"[a-z0-9._-]+(\[[a-z0-9,-]+\])?==[^ ]+( ;.*)?$", line, re.IGNORECASE), line


def test_every_dependency_is_pinned():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = project["project"]["dependencies"] + project["dependency-groups"]["dev"]
    pinned = {re.split(r"[=\[ ]", x)[0] for x in (ROOT / "requirements.lock").read_text().splitlines()}
    for requirement in wanted:
        assert re.split(r"[<>=\[ ]", requirement)[0] in pinned


def local_links(page):
    found = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
    return [link for link in found if "://" not in link and not link.startswith("mailto:")]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda p: p.name
)
def test_every_link_of_a_page_leads_somewhere(page):
    for link in local_links(page):
        assert (page.parent / link).exists(), f"{page.name} links to {link}, which is not there"


def test_importing_the_package_is_cheap():
    code = (
        "import sys, cogeval, cogeval.errors, cogeval.cli\n"
        "print(*sorted({'ray', 'mlflow', 'pyarrow', 'numpy', 'hydra', 'scipy'} & {*sys.modules}))"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == ""
