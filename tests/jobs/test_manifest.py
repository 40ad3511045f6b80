"""The RayJob of KubeRay: valid by the fields of the API that it uses, and what it would start composes."""

import copy
import json
import re
import shlex

import pytest
import yaml
from job_fakes import JOBS, ROOT, put, run_with
from jsonschema import Draft202012Validator

from cogeval import __version__
from cogeval.cli.arguments import read_arguments
from cogeval.cli.settings import composer_of
from cogeval.cli.verbs import VERBS
from cogeval.config import read_config

SCHEMA = json.loads((ROOT / "tests" / "jobs" / "rayjob.schema.json").read_text())
MANIFEST = yaml.safe_load((JOBS / "rayjob.yaml").read_text())
SPEC = MANIFEST["spec"]
CLUSTER = SPEC["rayClusterSpec"]


def findings(manifest):
    return [error.message for error in Draft202012Validator(SCHEMA).iter_errors(manifest)]


def pods():
    return [CLUSTER["headGroupSpec"], *CLUSTER["workerGroupSpecs"]]


def containers():
    return [group["template"]["spec"]["containers"][0] for group in pods()]


def test_the_manifest_has_the_fields_of_the_api() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert findings(MANIFEST) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["spec"].pop("entrypoint"),
        lambda m: m["spec"].update(entryPoint="cogeval run"),
        lambda m: m.update(apiVersion="ray.io/v1alpha1"),
        lambda m: m["spec"]["rayClusterSpec"]["headGroupSpec"]["rayStartParams"].update(port=6379),
        lambda m: m["spec"]["rayClusterSpec"]["workerGroupSpecs"][0].pop("template"),
    ],
)
def test_a_misspelt_or_missing_field_is_found(change) -> None:
    changed = copy.deepcopy(MANIFEST)
    change(changed)
    assert findings(changed)


def test_the_entrypoint_plays_a_run_where_every_pod_can_write(tmp_path) -> None:
    script, *overrides = shlex.split(SPEC["entrypoint"])
    assert f"COPY --chown=root:root jobs {script.rpartition('/')[0]}" in (ROOT / "Dockerfile").read_text()
    variables = yaml.safe_load(SPEC["runtimeEnvYAML"])["env_vars"]
    put(tmp_path, "cogeval", code=1)
    _, calls = run_with(tmp_path, str(JOBS / script.rpartition("/")[2]), *overrides, **variables)
    given = read_arguments(VERBS["run"], calls[-1][2:])
    config = read_config(composer_of(given).compose(given.overrides))
    mounted = {mount["mountPath"] for container in containers() for mount in container["volumeMounts"]}
    assert {config.run.root} == mounted
    assert (config.cluster.address, config.run.id, config.tracking.enabled) == ("auto", "ladder-7", False)


def test_the_manifest_names_the_ray_and_the_cogeval_of_this_checkout() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    (ray,) = re.findall(r"^ray(?:\[[a-z,]+\])?==(\S+)", lock, re.MULTILINE)
    assert CLUSTER["rayVersion"] == ray
    assert {container["image"].rpartition(":")[2] for container in containers()} == {__version__}


def test_every_pod_runs_as_the_user_of_the_image_and_gets_keys_from_a_secret() -> None:
    (user,) = re.findall(r"^USER (\d+):\d+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    for group, container in zip(pods(), containers(), strict=True):
        assert group["template"]["spec"]["securityContext"]["runAsUser"] == int(user)
        assert [source["secretRef"]["name"] for source in container["envFrom"]] == ["model-keys"]
        assert not [variable for variable in container["env"] if "KEY" in variable["name"]]
        assert container["resources"]["requests"] == container["resources"]["limits"]
