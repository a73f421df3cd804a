"""Runs the case ps-train in TensorFlow: trains 784-512-512-10 with SGD and parameter servers, as
processes on this machine.

In asynchronous mode, tries ParameterServerStrategy with its ClusterCoordinator ("coordinator", and
with ten steps per call "coordinator-10"), and between-graph replication with a
MonitoredTrainingSession ("session"). In synchronous mode, runs the session with
SyncReplicasOptimizer. Prints the result with the most samples per CPU-second, and all results as
"tried".
"""

import argparse
import json
import os
import sys
import time

import fashion_mnist
import local_cluster

VARIANTS = {"async": ("coordinator", "coordinator-10", "session"), "sync": ("session",)}
WIDTHS = (784, 512, 512, fashion_mnist.CLASSES)
LEARNING_RATE = 0.1


def flags():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--ps", type=int, default=1)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--mode", choices=tuple(VARIANTS), default="async")
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--variant", choices=VARIANTS["async"])
    return parser.parse_args()


def launch(options):
    counts = {"worker": options.workers, "ps": options.ps}
    leader = ("worker", 0)
    if options.variant.startswith("coordinator"):
        counts["chief"], leader = 1, ("chief", 0)
    addresses = iter(local_cluster.free_addresses(sum(counts.values())))
    cluster = {kind: [next(addresses) for _ in range(count)] for kind, count in counts.items()}
    result = local_cluster.run(cluster, leader, sys.argv)
    samples = result["steps"] * options.batch
    line = {
        "case": "ps-train", "peer": result["peer"], "variant": options.variant, "mode": options.mode,
        "workers": options.workers, "ps": options.ps, "batch": options.batch,
        "wall_s": round(result["wall_s"], 3), "cpu_s": round(result["cpu_s"], 2),
        "peak_rss_mb": round(result["peak_rss_mb"], 1), "steps": result["steps"],
        "samples_per_s": round(samples / result["wall_s"], 1),
        "samples_per_cpu_s": round(samples / result["cpu_s"], 1), "final_loss": round(result["loss"], 6),
    }
    print(json.dumps(line), flush=True)


# ---- the tasks of the cluster

def initial_values():
    import numpy

    random = numpy.random.default_rng(1)
    values = []
    for rows, cols in zip(WIDTHS, WIDTHS[1:]):
        limit = numpy.sqrt(6 / (rows + cols))
        values.append(random.uniform(-limit, limit, (rows, cols)).astype(numpy.float32))
        values.append(numpy.zeros(cols, numpy.float32))
    return values


def mean_loss(tf, variables, x, y):
    for kernel, bias in zip(variables[:-2:2], variables[1:-2:2]):
        x = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, kernel), bias))
    logits = tf.nn.bias_add(tf.matmul(x, variables[-2]), variables[-1])
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))


def batches(tf, batch, index=0, count=1):
    """Yields shuffled batches of the worker's share of the data, without end. The data is in
    memory."""
    images, labels = fashion_mnist.load("train")
    x, y = tf.constant(images[index::count]), tf.constant(labels[index::count])
    size = int(y.shape[0])

    def epoch(_):
        order = tf.random.shuffle(tf.range(size))
        starts = tf.data.Dataset.range(0, size - batch + 1, batch, output_type=tf.int32)
        return starts.map(lambda start: order[start:start + batch])

    def gather(at):
        return (tf.ensure_shape(tf.gather(x, at), [batch, 784]), tf.ensure_shape(tf.gather(y, at), [batch]))

    options = tf.data.Options()
    options.threading.private_threadpool_size = 1
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    return tf.data.Dataset.range(1 << 40).flat_map(epoch).map(gather).with_options(options).prefetch(2)


def member(options):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import tensorflow as tf

    config = json.loads(os.environ["TF_CONFIG"])
    kind, index = config["task"]["type"], config["task"]["index"]
    if kind == "chief":
        coordinate(tf, options)
    elif kind == "worker" and options.variant == "session":
        work_in_session(tf, options, config["cluster"], index)
    else:
        serve(tf, config["cluster"], kind, index).join()


def session_config(tf, filters=()):
    # Use one thread for the kernels. Use two threads for the graph, because the coordinator's
    # workers hang if there is only one.
    return tf.compat.v1.ConfigProto(intra_op_parallelism_threads=1, inter_op_parallelism_threads=2,
                                    device_filters=list(filters))


def serve(tf, cluster, kind, index, filters=()):
    return tf.distribute.Server(tf.train.ClusterSpec(cluster), job_name=kind, task_index=index, protocol="grpc",
                                config=session_config(tf, filters))


def coordinate(tf, options):
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(2)
    strategy = tf.distribute.ParameterServerStrategy(tf.distribute.cluster_resolver.TFConfigClusterResolver())
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        variables = [tf.Variable(value) for value in initial_values()]
    iterator = iter(coordinator.create_per_worker_dataset(lambda: batches(tf, options.batch)))
    steps_a_call = 10 if options.variant == "coordinator-10" else 1

    @tf.function
    def steps(iterator):
        for _ in tf.range(steps_a_call):
            x, y = next(iterator)
            with tf.GradientTape() as tape:
                loss = mean_loss(tf, variables, x, y)
            for variable, gradient in zip(variables, tape.gradient(loss, variables)):
                tf.raw_ops.ResourceApplyGradientDescent(var=variable.handle, alpha=LEARNING_RATE, delta=gradient)

    def run(calls):
        for _ in range(calls):
            coordinator.schedule(steps, args=(iterator,))
        coordinator.join()

    run(2 * options.workers)
    result = {"peer": f"tensorflow-{tf.__version__}", "steps": 0}
    with local_cluster.measured(result):
        end = time.perf_counter() + options.seconds
        while time.perf_counter() < end:
            run(16 * options.workers)
            result["steps"] += 16 * options.workers * steps_a_call
    images, labels = (part[:fashion_mnist.LOSS_EXAMPLES] for part in fashion_mnist.load("train"))
    result["loss"] = float(mean_loss(tf, [tf.constant(v.numpy()) for v in variables], images, labels))
    local_cluster.report(result)
    os._exit(0)  # the coordinator's threads would keep the process alive


def work_in_session(tf, options, cluster, index):
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    me, chief = f"/job:worker/task:{index}", index == 0
    server = serve(tf, cluster, "worker", index, ["/job:ps", me])
    with v1.device(v1.train.replica_device_setter(worker_device=me, cluster=tf.train.ClusterSpec(cluster))):
        step = v1.train.get_or_create_global_step()
        variables = [v1.get_variable(f"v{i}", initializer=value) for i, value in enumerate(initial_values())]
        with v1.device(me):
            iterator = v1.data.make_initializable_iterator(batches(tf, options.batch, index, options.workers))
            v1.add_to_collection(v1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
            x, y = iterator.get_next()
        loss = mean_loss(tf, variables, x, y)
        optimizer, hooks = v1.train.GradientDescentOptimizer(LEARNING_RATE), []
        if options.mode == "sync":
            optimizer = v1.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=options.workers,
                                                       total_num_replicas=options.workers)
            hooks.append(optimizer.make_session_run_hook(chief))
        train = optimizer.minimize(loss, global_step=step)
        going = v1.get_variable("going", initializer=0, trainable=False)
        arrive = v1.assign_add(going, 1, use_locking=True)

    with v1.train.MonitoredTrainingSession(master=server.target, is_chief=chief, hooks=hooks,
                                           config=session_config(tf, ["/job:ps", me]),
                                           log_step_count_steps=None) as session:
        raw = session._tf_sess()  # runs steps without the session's hooks
        for _ in range(3):
            session.run(train)
        raw.run(arrive)
        while not chief:
            session.run(train)  # until the launcher ends the process
        while raw.run(going) < options.workers:
            session.run(train)
        for _ in range(fashion_mnist.WARM_UP_STEPS):
            session.run(train)
        result = {"peer": f"tensorflow-{tf.__version__}"}
        with local_cluster.measured(result):
            first, end = raw.run(step), time.perf_counter() + options.seconds
            while time.perf_counter() < end:
                last_loss = session.run([train, loss])[1]
            gradients = options.workers if options.mode == "sync" else 1
            result["steps"] = int(raw.run(step) - first) * gradients
            result["loss"] = float(last_loss)
        local_cluster.report(result)
        os._exit(0)  # closing the session would wait for the queues of synchronous mode


if __name__ == "__main__":
    parsed = flags()
    if "TF_CONFIG" in os.environ:
        member(parsed)
    elif parsed.variant:
        launch(parsed)
    else:
        fashion_mnist.best_of(VARIANTS[parsed.mode], "variant")
