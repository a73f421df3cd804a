"""Trains on Fashion-MNIST in TensorFlow as fast as TensorFlow can: with raw ops, and with the loop over
an epoch's steps inside the graph, so that Python does not slow it down. Tries the step with XLA
("graph-loop-xla") and without ("graph-loop")."""

import os
import resource

import fashion_mnist

MODES = ("graph-loop", "graph-loop-xla")


def glorot(random, shape):
    """Returns initial values for a kernel [size…, inputs, outputs]."""
    import numpy

    field = int(numpy.prod(shape[:-2]))
    limit = numpy.sqrt(6 / (field * (shape[-2] + shape[-1])))
    return random.uniform(-limit, limit, shape).astype(numpy.float32)


def make_mlp(tf, random, options):
    """Returns the variables, and a function that maps images [n, 784] to logits."""
    widths = [784, *options.hidden, fashion_mnist.CLASSES]
    variables = []
    for rows, cols in zip(widths, widths[1:]):
        variables += [tf.Variable(glorot(random, (rows, cols))), tf.Variable(tf.zeros([cols]))]

    def logits(x):
        for kernel, bias in zip(variables[:-2:2], variables[1:-2:2]):
            x = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, kernel), bias))
        return tf.nn.bias_add(tf.matmul(x, variables[-2]), variables[-1])

    return variables, logits


def make_cnn(tf, random, _):
    """Like make_mlp, but for the model of //tests/bench:cnn."""
    variables = []
    for shape in ((5, 5, 1, 32), (5, 5, 32, 64), (7 * 7 * 64, 1024), (1024, fashion_mnist.CLASSES)):
        variables += [tf.Variable(glorot(random, shape)), tf.Variable(tf.zeros(shape[-1:]))]

    def logits(x):
        x = tf.reshape(x, [-1, 28, 28, 1])
        for kernel, bias in zip(variables[:4:2], variables[1:4:2]):
            x = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(x, kernel, 1, "SAME"), bias))
            x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = tf.reshape(x, [-1, 7 * 7 * 64])
        x = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, variables[4]), variables[5]))
        return tf.nn.bias_add(tf.matmul(x, variables[6]), variables[7])

    return variables, logits


def make_optimizer(tf, name, variables):
    """Returns a function that applies gradients to the variables."""
    ops = tf.raw_ops
    slots = [(tf.Variable(tf.zeros_like(v)), tf.Variable(tf.zeros_like(v))) for v in variables]
    powers = tf.Variable(0.9), tf.Variable(0.999)

    def sgd(gradients):
        for variable, gradient in zip(variables, gradients):
            ops.ResourceApplyGradientDescent(var=variable.handle, alpha=0.1, delta=gradient)

    def adam(gradients):
        for variable, (m, v), gradient in zip(variables, slots, gradients):
            ops.ResourceApplyAdam(var=variable.handle, m=m.handle, v=v.handle, beta1_power=powers[0].read_value(),
                                  beta2_power=powers[1].read_value(), lr=1e-3, beta1=0.9, beta2=0.999,
                                  epsilon=1e-7, grad=gradient)
        powers[0].assign(powers[0] * 0.9)
        powers[1].assign(powers[1] * 0.999)

    return sgd if name == "sgd" else adam


def train(options, make_model):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import numpy
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(options.threads)
    images, labels = fashion_mnist.load("train")
    random = numpy.random.default_rng(1)
    variables, logits = make_model(tf, random, options)
    apply = make_optimizer(tf, options.optimizer, variables)

    def mean_loss(x, y):
        return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits(x)))

    @tf.function(jit_compile=options.mode.endswith("xla"))
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = mean_loss(x, y)
        apply(tape.gradient(loss, variables))

    all_images, all_labels, batch = tf.constant(images), tf.constant(labels), options.batch

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([], tf.int32)])
    def loop(order, steps):
        for i in tf.range(steps):
            at = order[i * batch:(i + 1) * batch]
            step(tf.ensure_shape(tf.gather(all_images, at), [batch, 784]),
                 tf.ensure_shape(tf.gather(all_labels, at), [batch]))

    per_epoch = len(labels) // batch

    def run(steps):
        while steps > 0:
            now = min(steps, per_epoch)
            loop(tf.constant(random.permutation(len(labels)).astype(numpy.int32)), tf.constant(now))
            steps -= now
        variables[-1].numpy()

    run(fashion_mnist.WARM_UP_STEPS)
    steps = max(1, int(options.epochs * per_epoch))
    watch = fashion_mnist.Stopwatch()
    run(steps)
    wall, cpu = watch.elapsed()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    first = fashion_mnist.LOSS_EXAMPLES
    loss = mean_loss(images[:first], labels[:first]).numpy()
    images, labels = fashion_mnist.load("t10k")
    right = (numpy.argmax(logits(images).numpy(), axis=1) == labels).mean()
    fashion_mnist.report(f"tensorflow-{tf.__version__}", options, steps, wall, cpu, peak, loss, right)


def main(case, make_model):
    options = fashion_mnist.flags(MODES, case)
    if options.mode == "best":
        fashion_mnist.best_of(MODES)
    else:
        train(options, make_model)
