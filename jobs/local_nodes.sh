#!/usr/bin/env bash
# Plays a run on a cluster of NODES nodes on this machine (Linux), a rehearsal of a real one:
#   NODES=3 CPUS_PER_NODE=2 jobs/local_nodes.sh game=cogz schedule.blocks=200
# With RUN_ID=ladder-7 the run is called so, and gone on with if it is there.
# The cluster is its own: free ports, its own token and directory, and gone when the run ends.
set -euo pipefail
nodes=${NODES:-3}
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
home=$(mktemp -d "${TMPDIR:-/tmp}/cogeval-nodes-XXXXXX") # a short path: sockets lie in it
pids=()

# By process id: `ray stop` would end every Ray of this machine.
# shellcheck disable=SC2329 # the trap calls it
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
  wait
  for ((second = 0; second < 30; second++)); do # what `ray start` had started ends a moment after it
    pgrep -f "$home" >/dev/null || break
    sleep 1
  done
  rm -rf "$home"
}
trap finish EXIT
trap 'exit 143' TERM

say() { echo "local_nodes.sh: $*" >&2; }

# Ray gives a node's start half a minute, which may be too little on a busy machine: there are two tries.
start_node() { # which one, how to find the head, then how it joins
  local node=$1 found=("$2" "$3") log try
  shift 3
  for try in 1 2; do
    say "starting node $node of $nodes$([[ $try == 1 ]] || echo ', once more')"
    log="$home/node-$node-$try.log"
    [[ $node != 1 ]] || rm -f "$home/ray_current_cluster" # a failed head's
    ray start "$@" --block --node-ip-address=127.0.0.1 --num-cpus="${CPUS_PER_NODE:-1}" --temp-dir="$home" \
      --object-store-memory=100000000 --dashboard-agent-listen-port=0 >"$log" 2>&1 &
    pids+=($!)
    address=$(python "$here/wait_for_nodes.py" "${found[@]}" --pid "$!" --log "$log" "$node") && return
    kill "$!" 2>/dev/null || true
    wait "$!" || true
    unset 'pids[-1]'
  done
  exit 1
}

RAY_AUTH_TOKEN=$(od -An -N32 -tx1 /dev/urandom | tr -d ' \n')
export RAY_AUTH_TOKEN RAY_AUTH_MODE=token RAY_USAGE_STATS_ENABLED=0
unset RAY_ADDRESS
free=$(python -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
start_node 1 --address-file "$home/ray_current_cluster" \
  --head --port=0 --ray-client-server-port="$free" --include-dashboard=false
for ((node = 2; node <= nodes; node++)); do start_node "$node" --address "$address" --address="$address"; done
root=()
for word in "$@"; do [[ $word != run.root=* ]] || root=("$word"); done
say "$nodes nodes are up at $address; from another terminal, in this directory:"
say "  cogeval status latest --watch${root[*]:+ $(printf '%q' "${root[@]}")}"

run_id() { # of the run with that name, or that begins so, or is the latest; nothing where there is none
  cogeval status "$1" "${root[@]}" --json 2>/dev/null | sed -n 's/.*"run_id": *"\([^"]*\)".*/\1/p'
}
words=(run cluster.address="$address" "$@")
if [[ -n ${RUN_ID:-} ]]; then
  words+=(run.id="$RUN_ID")
  # A run has its own configuration: of the arguments only where it is, and how much is shown, are for `resume`.
  if [[ $(run_id "$RUN_ID") == "$RUN_ID" ]]; then
    words=(resume "$RUN_ID" "${root[@]}" cluster.address="$address")
    for word in "$@"; do [[ $word != --quiet && $word != --json ]] || words+=("$word"); done
  fi
fi
cogeval "${words[@]}" &
run=$!
pids+=("$run")
code=0
{ wait "$run"; } 2>/dev/null || code=$? # else bash writes of its death into the line of its progress
if ((code > 128 && code != 130 && code != 141)); then # a signal ended it before it could say anything
  printf '\n' >&2
  say "the run was ended by signal $((code - 128)); what had ended of it is kept, go on with one of:"
  id=$(run_id "${RUN_ID:-latest}" || true)
  say "  RUN_ID=${id:-RUN} jobs/local_nodes.sh${root[*]:+ $(printf '%q' "${root[@]}")}"
  say "  cogeval resume ${id:-RUN}${root[*]:+ $(printf '%q' "${root[@]}")} cluster.address=null"
fi
exit "$code"
