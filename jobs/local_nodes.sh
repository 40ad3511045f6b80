#!/usr/bin/env bash
# Plays a run on a cluster of NODES nodes on this machine (Linux), a rehearsal of a real one:
#   NODES=3 CPUS_PER_NODE=2 jobs/local_nodes.sh game=cogz schedule.blocks=200
# The cluster is its own: free ports, its own token and directory, and gone when the run ends.
set -euo pipefail
nodes=${NODES:-3}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=$(mktemp -d "${TMPDIR:-/tmp}/cogeval-nodes-XXXXXX") # a short path: sockets lie in it
pids=()

# By process id: `ray stop` would end every Ray of this machine.
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait
  for ((second = 0; second < 30; second++)); do # what `ray start` had started ends a moment after it
    pgrep -f "$home" >/dev/null || break
    sleep 1
  done
  rm -rf "$home"
}
failed() {
  cat "$home/nodes.log" >&2
  exit 1
}
trap finish EXIT
trap 'exit 143' TERM

start_node() {
  ray start "$@" --block --node-ip-address=127.0.0.1 --num-cpus="${CPUS_PER_NODE:-1}" --temp-dir="$home" \
    --object-store-memory=100000000 --dashboard-agent-listen-port=0 >>"$home/nodes.log" 2>&1 &
  pids+=($!)
}

RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_TOKEN RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0
unset RAY_ADDRESS
free=$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
start_node --head --port=0 --ray-client-server-port="$free" --include-dashboard=false
wait_for() { python "$here/wait_for_nodes.py" --head-pid "${pids[0]}" "$@"; }
address=$(wait_for --address-file "$home/ray_current_cluster" 1) || failed
for ((node = 1; node < nodes; node++)); do start_node --address="$address"; done
wait_for --address "$address" "$nodes" >/dev/null || failed

cogeval run cluster.address="$address" "$@" &
run=$!
pids+=("$run")
wait "$run"
