#!/usr/bin/env bash
# Submits a run to a Ray cluster through its job server, follows its output and exits as it does:
#   RAY_API_SERVER_ADDRESS=http://HEAD:8265 RUN_ROOT=/shared/runs jobs/ray_job.sh game=cogz schedule.blocks=1000
# The directory that you stand in travels along, so that your agents and --config-dir are found on every
# node; what else the nodes get is in ray_job.yaml.
set -euo pipefail
: "${RUN_ROOT:?expected a directory that all nodes share, or a URI such as s3://bucket/runs}"
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Ray's nodes and drivers use a token as soon as there is one; its job commands only when they are told to.
if [[ -z ${RAY_AUTH_MODE:-} ]] && [[ -n ${RAY_AUTH_TOKEN:-} || -e ${HOME:-}/.ray/auth_token ]]; then
  export RAY_AUTH_MODE=token
fi

echo "submitting; while it plays, from any machine that reads $RUN_ROOT:" >&2
echo "  cogeval status latest --watch $(printf '%q' "run.root=$RUN_ROOT")" >&2
exec ray job submit --working-dir . --runtime-env "$here/ray_job.yaml" -- \
  cogeval run --quiet cluster=running "run.root=$RUN_ROOT" "$@"
