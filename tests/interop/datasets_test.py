"""Compares the order of the examples after operators on datasets with that of tf.data. run.sh runs
it."""
import random
import unittest

from harness import as_array, tool

import numpy as np
import tensorflow as tf


def build(tree):
    """Returns the tf.data.Dataset for a tree of operators. The tree has the form that interop_tool
    reads."""
    if "range" in tree:
        return tf.data.Dataset.range(*tree["range"])
    if "select" in tree:
        return build(tree["select"]).skip(tree["skip"]).take(tree["take"]).repeat(tree["repeat"])
    if "concatenate" in tree:
        data = build(tree["concatenate"][0])
        for part in tree["concatenate"][1:]:
            data = data.concatenate(build(part))
        return data
    # Datasets of datasets: interleave chooses among the branches by number.
    branches = [build(part) for part in tree["interleave"]]
    sizes = [len(list(branch)) for branch in branches]
    values = tf.constant([value for branch in branches for value in branch.as_numpy_iterator()], tf.int64)
    begins = tf.constant(np.cumsum([0] + sizes[:-1]), tf.int64)
    ends = tf.constant(np.cumsum(sizes), tf.int64)
    return tf.data.Dataset.range(len(branches)).interleave(
        lambda i: tf.data.Dataset.from_tensor_slices(values[begins[i]:ends[i]]),
        cycle_length=tree["cycle"], block_length=tree["block"])


class Datasets(unittest.TestCase):
    def setUp(self):
        self.random = random.Random(11)

    def tree(self, depth):
        kind = "range" if depth == 0 else self.random.choice(["range", "select", "concatenate", "interleave"])
        if kind == "range":
            first = self.random.randrange(1000)
            return {"range": [first, first + self.random.randint(6, 20)], "name": "x"}
        if kind == "select":
            # Keep at least one example, because the runtime's datasets, unlike those of tf.data,
            # are never empty.
            return {"select": self.tree(depth - 1), "skip": self.random.randrange(2),
                    "take": self.random.choice([-1, 4, 100]), "repeat": self.random.randint(1, 3)}
        parts = [self.tree(0 if kind == "interleave" else depth - 1) for _ in range(self.random.randint(1, 5))]
        if kind == "concatenate":
            return {"concatenate": parts}
        return {"interleave": parts, "cycle": self.random.randint(1, 4), "block": self.random.randint(1, 3)}

    def test_the_order_is_that_of_tf_data(self):
        for _ in range(40):
            tree = self.tree(3)
            expected = list(build(tree).as_numpy_iterator())
            with self.subTest(tree=tree):
                np.testing.assert_array_equal(as_array(tool("read-dataset", tree)["x"]), expected)

    def test_zip_ends_with_the_smallest_dataset(self):
        tree = {"zip": [{"range": [0, 9], "name": "x"}, {"range": [100, 104], "name": "y"}]}
        expected = list(tf.data.Dataset.zip(tf.data.Dataset.range(9), tf.data.Dataset.range(100, 104)))
        ours = tool("read-dataset", tree)
        np.testing.assert_array_equal(as_array(ours["x"]), [int(x) for x, _ in expected])
        np.testing.assert_array_equal(as_array(ours["y"]), [int(y) for _, y in expected])


if __name__ == "__main__":
    unittest.main()
