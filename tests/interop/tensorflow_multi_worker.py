"""Trains a model with TensorFlow's MultiWorkerMirroredStrategy, as one of the workers. Run it once
per task of TF_CONFIG. Each worker uses its part of every global batch. Prints the loss of each
step, summed over the workers, as JSON.

    TF_CONFIG=… python tensorflow_multi_worker.py ARRAYS.npz STEPS BATCH MODEL

ARRAYS has the features x, the labels y, and the model's weights w0, w1, … in Keras' order. BATCH is
the number of examples that all workers together use per step. MODEL is a key of models."""
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


def main(path, kind, steps, batch):
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    workers = strategy.num_replicas_in_sync
    rank = strategy.cluster_resolver.task_id + (strategy.cluster_resolver.task_type != "chief")
    arrays = np.load(path)
    x, y = arrays["x"], arrays["y"]

    def parts():
        """Yields this worker's part of each batch, and the size of the batch."""
        while True:
            for at in range(0, len(x), batch):
                size = min(batch, len(x) - at)
                sizes = [size // workers + (r < size % workers) for r in range(workers)]
                first = at + sum(sizes[:rank])
                yield x[first:first + sizes[rank]], y[first:first + sizes[rank]], size

    signature = tuple(tf.TensorSpec([None, *a.shape[1:]], a.dtype) for a in (x, y)) + (tf.TensorSpec([], tf.int64),)
    data = strategy.distribute_datasets_from_function(
        lambda _: tf.data.Dataset.from_generator(parts, output_signature=signature))
    with strategy.scope():
        model = keras.Sequential([keras.Input((28, 28)), keras.layers.Flatten(), *models[kind]()])
        model.set_weights([arrays[f"w{i}"] for i in range(len(model.weights))])
        optimizer = keras.optimizers.Adam(0.001)
        optimizer.build(model.trainable_variables)

    def replica_step(x, y, total):
        with tf.GradientTape() as tape:
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, model(x, training=True))
            loss = tf.reduce_sum(losses) / tf.cast(total, tf.float32)  # 0 for a worker without examples
        optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        return loss

    @tf.function
    def step(batch):
        return strategy.reduce(tf.distribute.ReduceOp.SUM, strategy.run(replica_step, args=batch), axis=None)

    losses = [float(step(part)) for part, _ in zip(data, range(steps))]
    print(json.dumps(losses))


main(sys.argv[1], sys.argv[-1], *map(int, sys.argv[2:-1]))
