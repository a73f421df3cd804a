"""Runs the case csv in tf.data, with one thread: with CsvDataset ("csv-dataset"), and with the lines
of a batch decoded together ("decode-csv")."""

import os

import csv_case
import fashion_mnist

MODES = ("csv-dataset", "decode-csv")


def dataset(tf, path, options):
    """Returns a dataset of batches: features and labels."""
    columns = [tf.constant([], tf.float32)] * options.columns
    if options.mode == "csv-dataset":
        rows = tf.data.experimental.CsvDataset(path, columns, header=True).batch(options.batch)
    else:
        lines = tf.data.TextLineDataset(path).skip(1).batch(options.batch)
        rows = lines.map(lambda batch: tuple(tf.io.decode_csv(batch, columns)))
    return rows.map(lambda *values: (tf.stack(values[:-1], axis=1), values[-1]))


def read(path, options):
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    settings = tf.data.Options()
    settings.threading.private_threadpool_size = 1
    settings.autotune.enabled = False

    @tf.function
    def count():
        rows = tf.constant(0)
        for features, _ in dataset(tf, path, options).with_options(settings):
            rows += tf.shape(features)[0]
        return rows

    return int(count())


def main():
    options = csv_case.flags(MODES, __doc__)
    if options.mode == "best":
        fashion_mnist.best_of(MODES, measure="mb_per_cpu_s")
    else:
        import tensorflow as tf
        csv_case.measure(f"tensorflow-{tf.__version__}", options, lambda path: read(path, options))


main()
