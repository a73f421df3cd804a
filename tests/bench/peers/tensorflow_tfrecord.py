"""Runs the case tfrecord in tf.data, with one thread: parses the records of a batch together
with parse_example, which is faster than parsing them one by one."""

import argparse
import json
import os
import resource
import struct
import tempfile

import fashion_mnist

SHUFFLE_BUFFER = 10_000  # tf.data shuffles only within a buffer


def flags():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=500_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--folder", default="/tmp")
    return parser.parse_args()


def varint(number):
    encoded = bytearray()
    while number >= 0x80:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(encoded + bytes([number]))


def field(number, content):
    """Returns a length-delimited field of a protobuf message."""
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def write(tf, path, options):
    """Writes the examples of tests/bench/tfrecord.cc. Encodes them without tf.train.Example, which
    would take minutes."""
    names = [field(1, f"feature_{i}".encode()) for i in range(options.features)]
    with tf.io.TFRecordWriter(path) as writer:
        for example in range(options.examples):
            single = field(2, field(1, struct.pack("<f", example)))
            entries = (field(1, name + field(2, single if i % 2 else field(3, field(1, varint(example * i)))))
                       for i, name in enumerate(names))
            writer.write(field(1, b"".join(entries)))


def main():
    options = flags()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    features = {f"feature_{i}": tf.io.FixedLenFeature([], tf.float32 if i % 2 else tf.int64)
                for i in range(options.features)}
    settings = tf.data.Options()
    settings.threading.private_threadpool_size = 1
    settings.autotune.enabled = False

    def measure(what, records):
        parsed = records.batch(options.batch).map(lambda batch: tf.io.parse_example(batch, features))

        @tf.function
        def count():
            examples = tf.constant(0)
            for batch in parsed.with_options(settings):
                examples += tf.size(batch["feature_0"])
            return examples

        count.get_concrete_function()  # compiles the graph
        watch = fashion_mnist.Stopwatch()
        examples = int(count())
        wall, cpu = watch.elapsed()
        print(json.dumps({
            "case": "tfrecord", "peer": f"tensorflow-{tf.__version__}", "what": what, "features": options.features,
            "examples": examples, "examples_per_s": round(examples / wall, 1), "wall_s": round(wall, 5),
            "cpu_s": round(cpu, 5),
            "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 2),
            "load1": os.getloadavg()[0]}), flush=True)

    with tempfile.NamedTemporaryFile(dir=options.folder, suffix=".tfrecord") as file:
        write(tf, file.name, options)
        records = tf.data.TFRecordDataset(file.name)
        first = tf.io.parse_single_example(next(iter(records.skip(7))), features)
        if len(features) > 3 and (int(first["feature_2"]), float(first["feature_3"])) != (14, 7):
            raise SystemExit(f"the file is wrong: expected 14 and 7 in example 7, got {first}")
        measure("in order", records)
        measure(f"shuffled in a buffer of {SHUFFLE_BUFFER}", records.shuffle(SHUFFLE_BUFFER))


main()
