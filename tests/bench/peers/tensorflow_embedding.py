"""Runs the case embedding in TensorFlow, on its sparse path: the gradient of the table is an
IndexedSlices, and only its rows are updated. The loop over the steps is inside the graph."""

import argparse
import json
import os
import resource

import fashion_mnist

WARM_UP_STEPS = 20
BATCHES = 16  # each with its own ids, used in turn


def flags():
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("rows", 1_000_000), ("cols", 64), ("batch", 4096), ("ids", 1), ("steps", 300),
                        ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--optimizer", choices=("sgd", "adagrad"), default="adagrad")
    return parser.parse_args()


def main():
    options = flags()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import numpy
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    random = numpy.random.default_rng(1)
    ids = tf.constant(random.integers(options.rows, size=(BATCHES, options.batch, options.ids), dtype=numpy.int32))
    table = tf.Variable(random.uniform(-0.05, 0.05, (options.rows, options.cols)).astype(numpy.float32))
    kernel = tf.Variable(random.uniform(-0.3, 0.3, (options.cols, 1)).astype(numpy.float32))
    bias = tf.Variable(tf.zeros([1]))
    variables = [table, kernel, bias]
    accumulators = [tf.Variable(tf.fill(variable.shape, 0.1)) for variable in variables]
    loss = tf.Variable(0.0)
    ops = tf.raw_ops

    def apply(variable, accumulator, gradient):
        if isinstance(gradient, tf.IndexedSlices):
            # Add up the rows of an id that occurs several times, as Keras 2 does.
            indices, positions = tf.unique(gradient.indices)
            rows = tf.math.unsorted_segment_sum(gradient.values, positions, tf.size(indices))
            if options.optimizer == "sgd":
                ops.ResourceScatterSub(resource=variable.handle, indices=indices, updates=rows * 0.01)
            else:
                ops.ResourceSparseApplyAdagradV2(var=variable.handle, accum=accumulator.handle, lr=0.001, epsilon=1e-7,
                                                 grad=rows, indices=indices)
        elif options.optimizer == "sgd":
            ops.ResourceApplyGradientDescent(var=variable.handle, alpha=0.01, delta=gradient)
        else:
            ops.ResourceApplyAdagradV2(var=variable.handle, accum=accumulator.handle, lr=0.001, epsilon=1e-7,
                                       grad=gradient)

    @tf.function
    def train(steps):
        for step in tf.range(steps):
            with tf.GradientTape() as tape:
                mean = tf.reduce_mean(tf.gather(table, ids[step % BATCHES]), axis=1)
                value = tf.reduce_mean(tf.square(tf.matmul(mean, kernel) + bias - 1))
            for parts in zip(variables, accumulators, tape.gradient(value, variables)):
                apply(*parts)
            loss.assign(value)

    train(tf.constant(WARM_UP_STEPS))
    watch = fashion_mnist.Stopwatch()
    train(tf.constant(options.steps))
    final = loss.numpy()
    wall, cpu = watch.elapsed()
    print(json.dumps({
        "case": "embedding", "peer": f"tensorflow-{tf.__version__}", "rows": options.rows, "cols": options.cols,
        "optimizer": options.optimizer, "batch": options.batch, "ids": options.ids, "threads": options.threads,
        "steps": options.steps, "lookups_per_s": round(options.steps * options.batch * options.ids / wall, 1),
        "step_ms": round(1e3 * wall / options.steps, 4), "final_loss": round(float(final), 6),
        "wall_s": round(wall, 5), "cpu_s": round(cpu, 5),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 2),
        "load1": os.getloadavg()[0]}), flush=True)


main()
