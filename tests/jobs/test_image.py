"""The image: pinned, not run as root, with nothing in it that the Dockerfile does not name."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from job_fakes import ROOT

DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def instructions(name):
    joined = re.sub(r"\\\n\s*", " ", DOCKERFILE)
    return [line.split(" ", 1)[1] for line in joined.splitlines() if line.startswith(f"{name} ")]


def test_the_dockerfile_passes_hadolint() -> None:
    hadolint = shutil.which("hadolint", path=str(Path(sys.executable).parent))
    assert hadolint, "make setup installs it"
    command = [hadolint, "--no-color", str(ROOT / "Dockerfile")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_base_is_pinned_to_a_python_that_the_project_runs_on() -> None:
    (base,) = instructions("ARG")
    version = re.fullmatch(r"PYTHON=(\d+)\.(\d+)\.\d+-slim-[a-z]+", base)
    assert version, base
    assert instructions("FROM") == ["python:${PYTHON} AS build", "python:${PYTHON}"]
    assert (3, 11) <= (int(version[1]), int(version[2])) <= (3, 13)


def test_the_image_runs_as_a_numbered_user_that_owns_no_code() -> None:
    assert instructions("USER") == ["10001:10001"]
    assert DOCKERFILE.index("\nUSER ") > DOCKERFILE.rindex("\nCOPY ")
    final = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]
    copies = re.findall(r"^COPY (.*)$", final, re.MULTILINE)
    assert copies
    assert all("--chown=root:root" in copy for copy in copies)
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["cogeval"]


def test_the_image_installs_the_versions_of_the_lock_and_keeps_no_cache() -> None:
    (install,) = [line for line in instructions("RUN") if "pip install" in line]
    assert "PIP_CONSTRAINT=/src/constraints.txt" in install
    assert "--no-cache-dir" in install
    extras = re.search(r'"\.\[([a-z,]+)\]"', install)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert extras
    assert {*extras[1].split(",")} <= {*project["optional-dependencies"]}


def test_the_constraints_have_every_line_of_the_lock_without_extras() -> None:
    (script,) = re.findall(r"RUN sed '([^']+)' requirements.lock", DOCKERFILE)
    command = ["sed", script, str(ROOT / "requirements.lock")]
    done = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line for line in done.splitlines() if line and not line.lstrip().startswith("#")]
    assert len(lines) > 50
    assert not [line for line in lines if "[" in line]


def test_what_the_dockerfile_copies_is_all_that_a_build_sees() -> None:
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert ignored[0] == "*"
    seen = {line.removeprefix("!") for line in ignored if line.startswith("!")}
    copied = {
        word.removesuffix("/")
        for copy in instructions("COPY")
        if "--from" not in copy
        for word in copy.split()[:-1]
        if not word.startswith("--")
    }
    assert copied == seen
    assert all((ROOT / name).exists() for name in seen)
