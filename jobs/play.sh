#!/bin/sh
# Plays the run RUN_ID under RUN_ROOT on the Ray cluster that runs here, or goes on with it if it is there:
# what a scheduler may start again after a lost node. The arguments are those of `cogeval run`.
#   RUN_ROOT=/shared/runs RUN_ID=ladder-7 jobs/play.sh game=cogz schedule.blocks=1000
set -eu
: "${RUN_ROOT:?expected a directory that all nodes share, or a URI such as s3://bucket/runs}"
: "${RUN_ID:?expected a name for the run}"

# By its whole name: `status` takes the beginning of one too, which may be another run's.
found=$(cogeval status "$RUN_ID" "run.root=$RUN_ROOT" --json 2>/dev/null || true)
if printf '%s' "$found" | grep -q "\"run_id\": *\"$RUN_ID\""; then
  exec cogeval resume "$RUN_ID" "run.root=$RUN_ROOT" cluster.address=auto --quiet
fi
exec cogeval run --quiet cluster=running "run.root=$RUN_ROOT" "run.id=$RUN_ID" "$@"
