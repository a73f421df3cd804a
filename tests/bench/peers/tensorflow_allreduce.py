"""Runs the case allreduce with TensorFlow's collective operations, with their RING implementation
over gRPC, as MultiWorkerMirroredStrategy uses them. Each rank is a process."""

import json
import os
import resource
import socket
import statistics
import subprocess
import sys
import time

import allreduce_case

TURNS = 5
# The operations of allreduce_case that TensorFlow's ring has.
OPERATIONS = ("all_reduce", "all_gather", "broadcast")
LEADER = "/job:worker/replica:0/task:0"


def rounds_for(arguments, bytes_):
    return arguments.rounds or min(200, max(4, (100 << 20) // (bytes_ + 1)))


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Group:
    """The collective operations of one rank. The ranks' operations with the same instance key belong together."""

    def __init__(self, tf, ranks, rank):
        self.tf, self.ranks, self.rank, self.key = tf, ranks, rank, 0

    def new_key(self):
        self.key += 1
        return self.key

    def _common(self):
        return {"group_size": self.ranks, "group_key": 1, "instance_key": self.new_key(),
                "communication_hint": "ring", "timeout_seconds": 300}

    def function(self, operation, elements, rounds):
        """Returns a function that performs the operation `rounds` times, in the graph."""
        tf, ops = self.tf, self.tf.raw_ops
        common = self._common()
        part = elements // self.ranks

        def once(values):
            if operation == "all_reduce":
                return ops.CollectiveReduce(input=values, merge_op="Add", final_op="Id", subdiv_offsets=[0], **common)
            if operation == "all_gather":
                return ops.CollectiveGather(input=values[:part], shape=[part * self.ranks], **common)
            if self.rank == 0:
                return ops.CollectiveBcastSend(input=values, shape=[elements], **common)
            return ops.CollectiveBcastRecv(T=tf.float32, shape=[elements], **common)

        @tf.function
        def run(values):
            for _ in tf.range(rounds):
                values.assign(once(values.read_value()))  # the values are zeros
            return values[0]

        return run


def turn(barrier, run, values):
    barrier()
    start, cpu = time.monotonic(), cpu_seconds()
    run(values).numpy()
    return time.monotonic() - start, cpu_seconds() - cpu


def measure(tf, group, arguments, bytes_):
    elements = max(1, bytes_ // 4 // arguments.ranks) * arguments.ranks
    rounds = rounds_for(arguments, bytes_)
    values, one = tf.Variable(tf.zeros([elements])), tf.Variable(tf.zeros([arguments.ranks]))
    run = group.function(arguments.operation, elements, rounds)
    meet = group.function("all_reduce", arguments.ranks, 1)

    def barrier():
        meet(one).numpy()

    turn(barrier, run, values)  # compiles the graph and opens the connections
    turns = [turn(barrier, run, values) for _ in range(TURNS)]
    return {"bytes": bytes_, "rounds": rounds * TURNS,
            "seconds": statistics.median(wall for wall, _ in turns) / rounds, "cpu": sum(cpu for _, cpu in turns)}


def rank_main(arguments, rank, addresses):
    """Measures all sizes on one rank, and prints the results, one JSON line per size."""
    allreduce_case.bind(arguments, rank)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf
    from tensorflow.core.protobuf import config_pb2
    from tensorflow.python.eager import context

    tf.config.threading.set_intra_op_parallelism_threads(1)
    context.context().configure_collective_ops(
        scoped_allocator_enabled_ops=(), use_nccl_communication=False, collective_leader=LEADER)
    cluster = tf.train.ClusterSpec({"worker": addresses})
    server = tf.train.ServerDef(cluster=cluster.as_cluster_def(), job_name="worker", task_index=rank, protocol="grpc",
                                default_session_config=config_pb2.ConfigProto())
    server.default_session_config.experimental.collective_group_leader = LEADER
    context.context().enable_collective_ops(server)
    with tf.device(f"/job:worker/task:{rank}/device:CPU:0"):
        group = Group(tf, arguments.ranks, rank)
        for bytes_ in arguments.bytes:
            print(json.dumps(measure(tf, group, arguments, bytes_)), flush=True)
    sys.stdin.read()  # the other ranks may still need this rank's server


def free_addresses(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    addresses = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
    for each in sockets:
        each.close()
    return addresses


def launch(arguments):
    """Starts the ranks, and prints the slowest time of each size and the CPU time of all ranks."""
    addresses = free_addresses(arguments.ranks)
    processes = [subprocess.Popen([sys.executable, *sys.argv], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                  env={**os.environ, "ALLREDUCE_RANK": json.dumps([rank, addresses])})
                 for rank in range(arguments.ranks)]
    try:
        for _ in arguments.bytes:
            lines = [process.stdout.readline() for process in processes]
            if not all(lines):
                raise SystemExit("a rank has failed; see above")
            results = [json.loads(line) for line in lines]
            allreduce_case.report(arguments, "tensorflow ring", results[0]["bytes"], results[0]["rounds"],
                                  max(result["seconds"] for result in results),
                                  sum(result["cpu"] for result in results))
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main():
    arguments = allreduce_case.parse(__doc__, ["tcp"])
    if arguments.operation not in OPERATIONS:
        raise SystemExit(f"TensorFlow's ring has no {arguments.operation}; it has {', '.join(OPERATIONS)}")
    if "ALLREDUCE_RANK" in os.environ:
        rank_main(arguments, *json.loads(os.environ["ALLREDUCE_RANK"]))
    else:
        launch(arguments)


main()
