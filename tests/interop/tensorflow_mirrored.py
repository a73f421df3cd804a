"""Trains a model with TensorFlow's MirroredStrategy on logical CPUs. This is a separate process,
because the CPUs must be configured before TensorFlow starts. Prints the loss of each step as JSON.

    python tensorflow_mirrored.py ARRAYS.npz REPLICAS STEPS BATCH MODEL

ARRAYS has the features x, the labels y, and the model's weights w0, w1, … in Keras' order. MODEL is
a key of models."""
import json
import sys

import numpy as np
import tensorflow as tf
import keras

L = keras.layers
models = {
    "dense": lambda: [L.Dense(16, activation="tanh"), L.Dense(10)],
    "synchronized": lambda: [L.Dense(16, use_bias=False), L.BatchNormalization(synchronized=True),
                             L.Activation("tanh"), L.Dense(10)],
}


def main(path, kind, replicas, steps, batch):
    [cpu] = tf.config.list_physical_devices("CPU")
    tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * replicas)
    strategy = tf.distribute.MirroredStrategy([f"/cpu:{i}" for i in range(replicas)])
    arrays = np.load(path)
    with strategy.scope():
        model = keras.Sequential([keras.Input((28, 28)), keras.layers.Flatten(), *models[kind]()])
        model.set_weights([arrays[f"w{i}"] for i in range(len(model.weights))])
        optimizer = keras.optimizers.Adam(0.001)
        optimizer.build(model.trainable_variables)

    def replica_step(x, y, total):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, training=True))
            loss = tf.reduce_sum(losses) / tf.cast(total, tf.float32)  # 0 in a replica without examples
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    @tf.function
    def step(part, total):
        losses = strategy.run(replica_step, args=(*part, total))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    data = tf.data.Dataset.from_tensor_slices((arrays["x"], arrays["y"])).batch(batch)
    sizes = [min(batch, len(arrays["x"]) - at) for at in range(0, len(arrays["x"]), batch)]
    losses = []
    while len(losses) < steps:
        for part, size in zip(strategy.experimental_distribute_dataset(data), sizes):
            losses.append(float(step(part, tf.constant(size))))
    print(json.dumps(losses[:steps]))


main(sys.argv[1], sys.argv[-1], *map(int, sys.argv[2:-1]))
