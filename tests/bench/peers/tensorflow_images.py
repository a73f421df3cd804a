"""Runs the case images in tf.data, with the same images and the same flags. Before it measures, it
compares the first batch with the one of //tests/bench:images, if --first-batch names its file.

Decodes with the accurate inverse DCT, as this project does ("tfrecord" and "folder"), and with the
fast one, which is TensorFlow's default and may differ by several of 255 ("tfrecord, fast DCT")."""

import argparse
import json
import os
import pathlib
import resource
import tempfile

import fashion_mnist
import numpy as np


def flags():
    parser = argparse.ArgumentParser(description="Decodes JPEG images of 500 × 375 pixels into batches")
    parser.add_argument("--images", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--folder", default="/tmp")
    parser.add_argument("--first-batch", help="a file that //tests/bench:images has written")
    return parser.parse_args()


def picture(number):
    """Returns the same image as tests/bench/images.cc."""
    y, x, c = (axis.astype(np.uint32) for axis in np.mgrid[0:375, 0:500, 0:3])
    noise = (x * 7919 + y * 104729 + c * 1299709 + np.uint32(number * 15485863 % 2**32)) * np.uint32(2654435761)
    wave = np.sin((x * (number % 7 + 3) + y * (c + 2)) / 40)
    return (128 + 70 * wave + 20 * np.sin(x * y / 900) + (noise >> 16) % 25 - 12.0).astype(np.uint8)


def check_first_batch(ours, theirs):
    """Ends the program unless all pixels, from 0 to 255, differ by at most 1."""
    ours = np.fromfile(ours, np.float32).reshape(theirs.shape)
    worst = float(np.abs(ours - theirs).max())
    print(json.dumps({"case": "images", "peer": "tensorflow", "what": "first batch", "images": len(theirs),
                      "largest_difference": round(worst, 4), "load1": os.getloadavg()[0]}), flush=True)
    if worst > 1:
        raise SystemExit(f"the images of the first batch differ by up to {worst} of 255; expected at most 1")


def main():
    options = flags()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf
    tf.config.threading.set_intra_op_parallelism_threads(options.threads)
    tf.config.threading.set_inter_op_parallelism_threads(options.threads)

    def decode(content, dct="INTEGER_ACCURATE"):
        image = tf.io.decode_jpeg(content, channels=3, dct_method=dct)
        return tf.image.resize(image, (options.size, options.size))

    def parse(record, dct="INTEGER_ACCURATE"):
        features = {"image": tf.io.FixedLenFeature([], tf.string)}
        return decode(tf.io.parse_single_example(record, features)["image"], dct)

    def measure(what, data):
        settings = tf.data.Options()
        settings.threading.private_threadpool_size = options.threads
        settings.autotune.enabled = False
        watch, images = fashion_mnist.Stopwatch(), 0
        for batch in data.batch(options.batch).repeat(options.epochs).with_options(settings):
            images += len(batch)
        wall, cpu = watch.elapsed()
        print(json.dumps({
            "case": "images", "peer": "tensorflow", "what": what, "images": images, "threads": options.threads,
            "images_per_s": round(images / wall, 1), "wall_s": round(wall, 5), "cpu_s": round(cpu, 5),
            "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 2),
            "load1": os.getloadavg()[0],
        }), flush=True)

    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = f"{folder}/images.tfrecord"
        with tf.io.TFRecordWriter(path) as writer:
            for i in range(options.images):
                jpeg = tf.io.encode_jpeg(picture(i), quality=90).numpy()
                pathlib.Path(folder, f"{i}.jpg").write_bytes(jpeg)
                feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[jpeg]))
                writer.write(tf.train.Example(
                    features=tf.train.Features(feature={"image": feature})).SerializeToString())
        threads = options.threads if options.threads > 1 else None
        if options.first_batch:
            records = tf.data.TFRecordDataset(options.first_batch + ".tfrecord").map(parse).batch(options.batch)
            check_first_batch(options.first_batch, next(iter(records)).numpy())
        measure("tfrecord", tf.data.TFRecordDataset(path).map(parse, num_parallel_calls=threads))
        measure("tfrecord, fast DCT",
                tf.data.TFRecordDataset(path).map(lambda record: parse(record, "INTEGER_FAST"),
                                                  num_parallel_calls=threads))
        files = tf.data.Dataset.from_tensor_slices([f"{folder}/{i}.jpg" for i in range(options.images)])
        measure("folder", files.map(lambda name: decode(tf.io.read_file(name)), num_parallel_calls=threads))


if __name__ == "__main__":
    main()
