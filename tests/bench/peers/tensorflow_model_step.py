"""Computes the gradients of a model in TensorFlow: as a graph, and with XLA ("graph-xla"). Keras
reads the file that our program reads."""

import os

import fashion_mnist
import model_step

MODES = ("graph", "graph-xla")


def compute(options):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import keras
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    text = (model_step.ROOT / model_step.CASES[options.case][0]).read_text()
    model = keras.models.model_from_json(text)
    inputs = tf.constant(model_step.noise(options))

    @tf.function(jit_compile=options.mode.endswith("xla"))
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True)))
        return loss, tape.gradient(loss, model.trainable_variables)

    model_step.measure(f"tensorflow-{tf.__version__}", options, lambda: step(inputs)[0].numpy())


def main(case):
    options = model_step.flags(MODES, case)
    if options.mode == "best":
        fashion_mnist.best_of(MODES)
    else:
        compute(options)
