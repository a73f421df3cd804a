"""Compares losses and metrics with Keras 3 in float64. run.sh runs it."""
import functools
import re
import tempfile
import unittest

from harness import as_json, tool, train

import numpy as np
import tensorflow as tf
import keras

from initializers_test import DOCS
from interop_test import variables
from random_models_test import differences, in_type

RNG = np.random.default_rng(11)
STEPS = (6, 3, 4)


def softmax(x):
    return (np.exp(x) / np.exp(x).sum(-1, keepdims=True)).astype(np.float32)


def one_hot(classes):
    return np.eye(STEPS[-1], dtype=np.float32)[classes]


SCORES = RNG.standard_normal(STEPS).astype(np.float32)
OTHERS = RNG.standard_normal(STEPS).astype(np.float32)
ONES = (RNG.random(STEPS) > 0.5).astype(np.float32)
CLASSES = RNG.integers(0, STEPS[-1], STEPS[:-1])
SOME_CLASSES = np.where(RNG.random(STEPS[:-1]) > 0.6, -1, CLASSES)
ROWS, PROBABILITIES = one_hot(CLASSES), softmax(SCORES)
WIDE_ROWS = RNG.standard_normal((8, 5))

UNIT = np.float32(WIDE_ROWS / np.linalg.norm(WIDE_ROWS, axis=-1, keepdims=True))
GROUPS = np.array([0, 1, 2, 0, 1, 1, 9, -3])
# Labels with repetitions, of different lengths, and none.
SPOKEN = RNG.standard_normal((5, 12, 6)).astype(np.float32)
SPELLED = np.array([[1, 2, 3, 4, 5], [2, 2, 2, 0, 0], [5, 0, 0, 0, 0], [0, 0, 0, 0, 0], [3, 3, 4, 4, 0]])

# Name, arguments, prediction, labels.
LOSSES = [
    ("sparse_categorical_crossentropy", {}, PROBABILITIES, CLASSES),
    ("sparse_categorical_crossentropy", {"from_logits": True}, SCORES, CLASSES),
    ("sparse_categorical_crossentropy", {"ignore_class": 1}, PROBABILITIES, CLASSES),
    ("sparse_categorical_crossentropy", {"ignore_class": -1}, PROBABILITIES, SOME_CLASSES),
    ("sparse_categorical_crossentropy", {"ignore_class": 255, "from_logits": True}, SCORES,
     np.where(SOME_CLASSES < 0, 255, SOME_CLASSES)),
    ("categorical_crossentropy", {}, PROBABILITIES, ROWS),
    ("categorical_crossentropy", {"from_logits": True, "label_smoothing": 0.2}, SCORES, ROWS),
    ("binary_crossentropy", {}, PROBABILITIES, ONES),
    ("binary_crossentropy", {"label_smoothing": 0.2}, PROBABILITIES, ONES),
    ("binary_crossentropy", {"from_logits": True}, SCORES, ONES),
    ("binary_focal_crossentropy", {}, PROBABILITIES, ONES),
    ("binary_focal_crossentropy", {"from_logits": True, "gamma": 1.5, "alpha": 0.4, "apply_class_balancing": True,
                                   "label_smoothing": 0.1}, SCORES, ONES),
    ("categorical_focal_crossentropy", {}, PROBABILITIES, ROWS),
    ("categorical_focal_crossentropy", {"from_logits": True, "gamma": 3.0, "alpha": 0.4, "label_smoothing": 0.1},
     SCORES, ROWS),
    ("categorical_generalized_cross_entropy", {"q": 0.5}, PROBABILITIES, CLASSES),
    ("categorical_generalized_cross_entropy", {"q": 0.9}, PROBABILITIES, CLASSES),
    ("mean_squared_error", {}, SCORES, OTHERS),
    ("mean_absolute_error", {}, SCORES, OTHERS),
    ("mean_absolute_percentage_error", {}, SCORES, OTHERS),
    ("mean_squared_logarithmic_error", {}, SCORES, OTHERS),
    ("huber", {}, SCORES, OTHERS),
    ("huber", {"delta": 0.4}, SCORES, OTHERS),
    ("log_cosh", {}, SCORES * 20, OTHERS),
    ("poisson", {}, PROBABILITIES, np.abs(OTHERS)),
    ("kl_divergence", {}, PROBABILITIES, softmax(OTHERS)),
    ("cosine_similarity", {}, SCORES, OTHERS),
    ("hinge", {}, SCORES, ONES),
    ("hinge", {}, SCORES, OTHERS),
    ("squared_hinge", {}, SCORES, 2 * ONES - 1),
    ("categorical_hinge", {}, SCORES, ROWS),
    *[("dice", arguments, PROBABILITIES, ONES)
      for arguments in ({}, {"axis": [1, 2]}, {"axis": [-1]}, {"axis": [1]}, {"axis": [0, 1]}, {"axis": [-3, 2, 1]})],
    ("dice", {}, PROBABILITIES[:, 0, 0], ONES[:, 0, 0]),
    *[("tversky", arguments, PROBABILITIES, ONES)
      for arguments in ({}, {"alpha": 0.3, "beta": 0.9}, {"axis": [1, 2], "beta": 2.0}, {"axis": [0, 2], "alpha": 1.5})],
    *[("circle", arguments, UNIT, GROUPS)
      for arguments in ({}, {"gamma": 5.0}, {"gamma": 12.0, "margin": 0.25}, {"margin": 0.0, "gamma": 1.0})],
    # Distances of about 0 depend on rounding, so the vectors are shorter.
    *[("circle", {"gamma": 7.0, "remove_diagonal": remove}, UNIT * np.float32(0.9), GROUPS) for remove in (True, False)],
    ("circle", {"gamma": 7.0}, UNIT, np.array([7, 7, 7, -2, 7, 7, 7, 7])),
    ("circle", {"gamma": 7.0}, UNIT[:4], np.array([3, 1, 2, 4])),
    ("ctc", {}, SPOKEN, SPELLED),
    ("ctc", {}, SPOKEN[:, :7], SPELLED[:, :3]),
    ("ctc", {}, SPOKEN, SPELLED[:, :1]),
    ("ctc", {}, SPOKEN * 30, SPELLED),
]
METRICS = [
    (keras.metrics.BinaryAccuracy, "accuracy", PROBABILITIES[..., :1], ONES[..., :1]),
    (keras.metrics.SparseCategoricalAccuracy, "accuracy", PROBABILITIES, CLASSES),
    (keras.metrics.CategoricalAccuracy, "accuracy", PROBABILITIES, ROWS),
    (keras.metrics.BinaryAccuracy, "binary_accuracy", PROBABILITIES, ONES),
    (keras.metrics.CategoricalAccuracy, "categorical_accuracy", PROBABILITIES, ROWS),
    (keras.metrics.SparseCategoricalAccuracy, "sparse_categorical_accuracy", PROBABILITIES, CLASSES),
    (keras.metrics.RootMeanSquaredError, "root_mean_squared_error", SCORES, OTHERS),
    (keras.metrics.R2Score, "r2_score", SCORES[:, 0], OTHERS[:, 0]),
    (keras.metrics.Precision, "precision", PROBABILITIES, ONES),
    (keras.metrics.Recall, "recall", PROBABILITIES, ONES),
    (keras.metrics.AUC, "auc", PROBABILITIES, ONES),
    (keras.metrics.AUC, "auc", PROBABILITIES, ONES * 0.5),
    (keras.metrics.TruePositives, "true_positives", PROBABILITIES, ONES),
    (keras.metrics.TrueNegatives, "true_negatives", PROBABILITIES, ONES),
    (keras.metrics.FalsePositives, "false_positives", PROBABILITIES, ONES),
    (keras.metrics.FalseNegatives, "false_negatives", PROBABILITIES, ONES),
    (keras.metrics.CosineSimilarity, "cosine_similarity", SCORES, OTHERS),
    (keras.metrics.BinaryCrossentropy, "binary_crossentropy", PROBABILITIES, ONES),
    (keras.metrics.KLDivergence, "kl_divergence", PROBABILITIES, softmax(OTHERS)),
    (keras.metrics.PearsonCorrelation, "pearson_correlation", SCORES, OTHERS),
    (keras.metrics.ConcordanceCorrelation, "concordance_correlation", SCORES, OTHERS),
    (keras.metrics.BinaryIoU, "binary_io_u", PROBABILITIES[..., :1], ONES[..., :1]),
]
WIDE = RNG.standard_normal((20, 12)).astype(np.float32)
LABELS = RNG.integers(0, 12, 20)
METRICS += [
    (keras.metrics.SparseTopKCategoricalAccuracy, "sparse_top_k_categorical_accuracy", WIDE, LABELS),
    (keras.metrics.TopKCategoricalAccuracy, "top_k_categorical_accuracy", WIDE,
     np.eye(12, dtype=np.float32)[LABELS]),
]


# The losses that are no metrics.
ONLY_LOSSES = ("dice", "tversky", "circle", "ctc")


def losses_as_metrics():
    """Returns (class, name, arguments, prediction, labels) for losses that are used as metrics. Keras has metrics with
    arguments, which with_arguments() returns, only of the plain cross-entropies."""
    for name, arguments, prediction, labels in LOSSES:
        # Keras' metric cosine_similarity is the negative of the loss, and is in METRICS. The function with `q` has no
        # default; that of the class is 0.5.
        if name not in ("cosine_similarity", *ONLY_LOSSES) and arguments in ({}, {"q": 0.5}):
            yield (functools.partial(keras.metrics.MeanMetricWrapper, getattr(keras.losses, name), **arguments), name,
                   {}, prediction, labels)


def documented():
    """Returns the names in the tables of losses and of metrics in docs/training-file.md."""
    with open(f"{DOCS}/training-file.md") as page:
        section = page.read().split("\n## Losses and metrics\n")[1].split("\n## ")[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def with_arguments():
    """Returns (class, name, arguments, prediction, labels)."""
    m, logits = keras.metrics, 3 * SCORES
    cases = [(m.BinaryAccuracy, "binary_accuracy", {"threshold": t}, PROBABILITIES, ONES) for t in (0.2, 0.31)]
    cases += [(m.TopKCategoricalAccuracy, "top_k_categorical_accuracy", {"k": k}, WIDE,
               np.eye(12, dtype=np.float32)[LABELS]) for k in (1, 3)]
    cases += [(m.SparseTopKCategoricalAccuracy, "sparse_top_k_categorical_accuracy", {"k": 2}, WIDE, LABELS)]
    for make, name in [(m.Precision, "precision"), (m.Recall, "recall")]:
        cases += [(make, name, arguments, PROBABILITIES, ONES)
                  for arguments in ({"thresholds": 0.2}, {"class_id": 0}, {"class_id": 2, "thresholds": [0.3]},
                                    {"thresholds": [0.2, 0.35, 0.5]}, {"thresholds": [0.0, 0.25, 0.5, 0.75, 1.0]},
                                    {"thresholds": [0.6, 0.1], "class_id": 1}, {"top_k": 1}, {"top_k": 2},
                                    {"top_k": 4}, {"top_k": 2, "class_id": 1}, {"top_k": 2, "thresholds": 0.4},
                                    {"top_k": 3, "thresholds": [0.1, 0.3], "class_id": 0})]
        # Equal scores: the first ones are the best.
        cases += [(make, name, {"top_k": k}, PROBABILITIES.round(1), ONES) for k in (1, 2, 3)]
        cases += [(make, name, {"top_k": 3}, softmax(WIDE), (WIDE > 0.5).astype(np.float32))]
    for make, name in [(m.TruePositives, "true_positives"), (m.TrueNegatives, "true_negatives"),
                       (m.FalsePositives, "false_positives"), (m.FalseNegatives, "false_negatives")]:
        cases += [(make, name, {"thresholds": given}, PROBABILITIES, ONES) for given in (0.3, [0.3], [0.1, 0.5])]
    cases += [(m.AUC, "auc", {"num_thresholds": n, "curve": curve, "summation_method": method}, PROBABILITIES, ONES)
              for n in (2, 3, 50, 200) for curve in ("ROC", "PR")
              for method in ("interpolation", "minoring", "majoring")]
    cases += [(m.AUC, "auc", {"from_logits": True}, logits, ONES)]
    cases += [(m.AUC, "auc", {"thresholds": given, "curve": curve}, PROBABILITIES, ONES)
              for given in ([0.5], [0.6, 0.2, 0.3], [0.0, 0.1, 0.9, 1.0], [0.25, 0.5, 0.75]) for curve in ("ROC", "PR")]
    cases += [(m.BinaryCrossentropy, "binary_crossentropy", {"from_logits": True, "label_smoothing": 0.2}, logits, ONES),
              (m.BinaryCrossentropy, "binary_crossentropy", {"label_smoothing": 0.1}, PROBABILITIES, ONES),
              (m.CategoricalCrossentropy, "categorical_crossentropy", {"from_logits": True, "label_smoothing": 0.3},
               logits, ROWS),
              (m.SparseCategoricalCrossentropy, "sparse_categorical_crossentropy", {"from_logits": True}, logits,
               CLASSES)]
    return cases + [*points_of_curves(), *f_scores(), *intersections_over_unions(), *losses_as_metrics()]


def points_of_curves():
    """Returns (class, name, arguments, prediction, labels) of the metrics that choose a point of a curve."""
    m = keras.metrics
    for make, name, given in [(m.PrecisionAtRecall, "precision_at_recall", "recall"),
                              (m.RecallAtPrecision, "recall_at_precision", "precision"),
                              (m.SensitivityAtSpecificity, "sensitivity_at_specificity", "specificity"),
                              (m.SpecificityAtSensitivity, "specificity_at_sensitivity", "sensitivity")]:
        for more in ({}, {"num_thresholds": 1}, {"num_thresholds": 2}, {"num_thresholds": 7}, {"class_id": 1}):
            for value in (0.0, 0.4, 0.7, 1.0):
                yield make, name, {given: value, **more}, PROBABILITIES, ONES
        # Probabilities that equal the first and the last threshold, and labels that no threshold separates.
        yield make, name, {given: 0.5, "num_thresholds": 3}, ONES, ONES
        yield make, name, {given: 0.6}, ONES, 1 - ONES
        yield make, name, {given: 0.6}, PROBABILITIES, np.zeros_like(ONES)


def f_scores():
    """Returns (class, name, arguments, prediction, labels) of the F-scores."""
    m, rows, several = keras.metrics, np.eye(12, dtype=np.float32)[LABELS], (WIDE[::-1] > 0.4).astype(np.float32)
    for average in ("micro", "macro", "weighted"):
        for prediction, labels, more in [(WIDE, rows, {}), (softmax(WIDE), several, {"threshold": 0.1}),
                                         (softmax(WIDE), several, {"threshold": 1.0}), (WIDE.round(), several, {}),
                                         (np.zeros_like(WIDE), several, {}), (WIDE, np.zeros_like(rows), {}),
                                         (softmax(WIDE)[:, :1], several[:, :1], {"threshold": 0.05})]:
            yield m.F1Score, "f1_score", {"average": average, **more}, prediction, labels
            yield m.FBetaScore, "fbeta_score", {"average": average, "beta": 2.5, **more}, prediction, labels
        yield m.FBetaScore, "fbeta_score", {"average": average, "beta": 0.5}, WIDE, several


def intersections_over_unions():
    """Returns (class, name, arguments, prediction, labels) of the intersections over unions."""
    m, rows = keras.metrics, np.eye(12, dtype=np.float32)[LABELS]
    # Also numbers that are no classes, and one between two classes.
    numbers, others = (np.float32(RNG.integers(-1, 5, (20, 1))) for _ in range(2))
    numbers[0], others[0] = 2.75, 2.0
    for target in ([0], [1, 0], [1]):
        for threshold in (0.2, 0.31):
            yield (m.BinaryIoU, "binary_io_u", {"target_class_ids": target, "threshold": threshold},
                   PROBABILITIES[..., :1], ONES[..., :1])
    for more in ({}, {"ignore_class": 2}, {"ignore_class": -1}):
        yield m.MeanIoU, "mean_io_u", {"num_classes": 4, **more}, numbers, others
        yield m.MeanIoU, "mean_io_u", {"num_classes": 4, "sparse_y_pred": False, **more}, SCORES, CLASSES
        yield (m.MeanIoU, "mean_io_u", {"num_classes": 12, "sparse_y_true": False, "sparse_y_pred": False, **more},
               WIDE, rows)
        yield m.MeanIoU, "mean_io_u", {"num_classes": 9, "sparse_y_pred": False, **more}, WIDE, LABELS
        yield m.OneHotMeanIoU, "one_hot_mean_io_u", {"num_classes": 12, **more}, WIDE, rows
        for target in ([3], [0, 2, 3], [1, 1]):
            yield m.IoU, "io_u", {"num_classes": 4, "target_class_ids": target, **more}, numbers, others
            yield (m.IoU, "io_u", {"num_classes": 4, "target_class_ids": target, "sparse_y_pred": False, **more},
                   SCORES, CLASSES)
            yield m.OneHotIoU, "one_hot_io_u", {"num_classes": 4, "target_class_ids": target, **more}, SCORES, ROWS


# Metrics that count elements rather than positions.
OF_ELEMENTS = {"precision_at_recall", "recall_at_precision", "sensitivity_at_specificity",
               "specificity_at_sensitivity", "io_u", "binary_io_u", "mean_io_u", "one_hot_io_u", "one_hot_mean_io_u",
               "precision", "recall", "auc", "true_positives", "true_negatives", "false_positives", "false_negatives"}

# The metrics that are compared for an output with a mask.
MASKED = [
    (keras.metrics.BinaryAccuracy, "binary_accuracy", PROBABILITIES, ONES),
    (keras.metrics.SparseCategoricalAccuracy, "sparse_categorical_accuracy", PROBABILITIES, CLASSES),
    (keras.metrics.MeanSquaredError, "mean_squared_error", SCORES, OTHERS),
    (keras.metrics.CosineSimilarity, "cosine_similarity", SCORES, OTHERS),
    (keras.metrics.CategoricalCrossentropy, "categorical_crossentropy", PROBABILITIES, ROWS),
    (keras.metrics.RootMeanSquaredError, "root_mean_squared_error", SCORES, OTHERS),
    (keras.metrics.Precision, "precision", PROBABILITIES, ONES),
    (keras.metrics.AUC, "auc", PROBABILITIES, ONES),
    (keras.metrics.PearsonCorrelation, "pearson_correlation", SCORES, OTHERS),
    (keras.metrics.ConcordanceCorrelation, "concordance_correlation", SCORES, OTHERS),
    (keras.metrics.BinaryIoU, "binary_io_u", PROBABILITIES[..., :1], ONES[..., :1]),
    (functools.partial(keras.metrics.PrecisionAtRecall, 0.5), {"name": "precision_at_recall", "recall": 0.5},
     PROBABILITIES, ONES),
    (functools.partial(keras.metrics.MeanIoU, 4, sparse_y_pred=False),
     {"name": "mean_io_u", "num_classes": 4, "sparse_y_pred": False}, SCORES, CLASSES),
]


class Losses(unittest.TestCase):
    def test_values_and_gradients_equal_keras(self):
        for name, arguments, prediction, labels in LOSSES:
            with self.subTest(loss=name, **arguments):
                got = tool("loss", {"loss": {"name": name, **arguments}, "prediction": as_json(prediction),
                                    "labels": as_json(labels)})
                compute = lambda floatx: in_type(floatx, lambda: self.keras(name, arguments, prediction.astype(floatx),
                                                                            labels))
                self.assertEqual(differences(got, compute("float64"), lambda: compute("float32"), 1e-5), [])

    @staticmethod
    def keras(name, arguments, prediction, labels):
        if labels.dtype == np.float32:
            labels = labels.astype(prediction.dtype)
        x = tf.Variable(prediction)
        with tf.GradientTape() as tape:
            values = getattr(keras.losses, name)(tf.constant(labels), x, **arguments)
            mean = tf.reduce_mean(values)
        if 0 in (axis % prediction.ndim for axis in arguments.get("axis", ())) or not values.shape.rank:
            values = tf.fill(len(prediction), mean)  # the value of each example is that of the batch
        return {"values": np.float64(values), "gradient": np.float64(tape.gradient(mean, x))}


class IgnoredClass(unittest.TestCase):
    """Compares a step of training in which some labels are ignored, with the settings of compile() in the file."""
    IGNORED = 9

    def model(self, masked):
        keras.utils.clear_session()
        keras.utils.set_random_seed(4)
        x = keras.Input((5, 3), name="x")
        h = keras.layers.Masking()(x) if masked else x
        model = keras.Model(x, keras.layers.Dense(4, name="head")(keras.layers.Dense(6, activation="tanh")(h)))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=self.IGNORED)
        model.compile(keras.optimizers.SGD(0.5), loss, run_eagerly=True, auto_scale_loss=False)
        return model

    def after_a_step(self, floatx, masked, weights, x, y):
        model = self.model(masked)
        model.set_weights(weights)
        model.train_on_batch(x.astype(floatx), y)
        return {name: np.float64(value) for name, value in variables(model).items()}

    def test_a_step_equals_that_of_keras(self):
        x = RNG.standard_normal((6, 5, 3)).astype(np.float32)
        y = RNG.integers(0, 4, (6, 5))
        y[RNG.random(y.shape) > 0.6] = self.IGNORED
        x[:, 3:] *= (RNG.random((6, 1, 1)) > 0.5).astype(np.float32)
        for masked in (False, True):
            with self.subTest(masked=masked), tempfile.TemporaryDirectory() as folder:
                model = self.model(masked)
                weights = model.get_weights()
                compute = lambda floatx: in_type(floatx, lambda: self.after_a_step(floatx, masked, weights, x, y))
                exact = compute("float64")
                model.save(f"{folder}/model.keras")
                np.savez(f"{folder}/train.npz", x=x, y=y)
                train({"model": {"file": f"{folder}/model.keras", "weights": f"{folder}/model.keras"}, "batch_size": 6,
                       "data": {"train": {"format": "npz", "file": f"{folder}/train.npz"}}, "max_steps": 1,
                       "model_dir": f"{folder}/run"})
                reader = tf.train.load_checkpoint(f"{folder}/run")
                got = {name: reader.get_tensor(name) for name in exact}
                self.assertEqual(differences(got, exact, lambda: compute("float32"), 1e-5), [])


def compiled(loss, shape, layers):
    """Returns a compiled model, whose layers are the results of functions."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(4)
    model = keras.Sequential([keras.Input(shape, name="x"), *[make() for make in layers]])
    model.compile(keras.optimizers.SGD(0.5), loss(), run_eagerly=True, auto_scale_loss=False)
    return model


def losses_of_batches():
    """Returns (what differs, loss, layers, labels, whether there are sample weights)."""
    pixels = [lambda: keras.layers.Dense(2, activation="sigmoid", name="head")]
    vectors = [keras.layers.Flatten, lambda: keras.layers.Dense(4, name="head"), keras.layers.UnitNormalization]
    logits = [lambda: keras.layers.Dense(4, name="head")]
    masks, groups = (RNG.random((6, 5, 2)) > 0.5).astype(np.float32), np.array([1, 2, 1, 7, 2, 1])
    texts = np.array([[1, 2], [3, 0], [1, 1], [0, 0], [2, 3], [3, 3]])
    for arguments in ({}, {"axis": (1, 2)}, {"reduction": "sum"}, {"reduction": "mean"}):
        for weighted in (False, True):
            yield f"dice {arguments}", functools.partial(keras.losses.Dice, **arguments), pixels, masks, weighted
    for arguments in ({"axis": -1}, {"axis": (0, 1)}, {"axis": (0, 1), "reduction": "sum"}):
        yield f"dice {arguments}", functools.partial(keras.losses.Dice, **arguments), pixels, masks, False
    yield "a function", lambda: "tversky", pixels, masks, False
    yield ("tversky", functools.partial(keras.losses.Tversky, alpha=0.3, beta=1.5, axis=[1, 2]), pixels, masks, True)
    for weighted in (False, True):
        yield ("circle", functools.partial(keras.losses.Circle, gamma=4.0, margin=0.3), vectors, groups, weighted)
        yield "ctc", keras.losses.CTC, logits, texts, weighted
    yield "circle, sum", functools.partial(keras.losses.Circle, gamma=2.0, reduction="sum"), vectors, groups, False


class Steps(unittest.TestCase):
    """Compares a step of training with losses of whole batches, of pairs and of sequences, with the settings of
    compile() in the file."""
    POINTS = RNG.standard_normal((6, 5, 3)).astype(np.float32)

    def after_a_step(self, floatx, loss, layers, weights, labels, sample_weights):
        model = compiled(loss, (5, 3), layers)
        model.set_weights(weights)
        model.train_on_batch(self.POINTS.astype(floatx), labels, sample_weight=sample_weights)
        return {name: np.float64(value) for name, value in variables(model).items()}

    def test_a_step_equals_that_of_keras(self):
        for name, loss, layers, labels, weighted in losses_of_batches():
            with self.subTest(name, weighted=weighted), tempfile.TemporaryDirectory() as folder:
                model = compiled(loss, (5, 3), layers)
                weights, given = model.get_weights(), None
                arrays = {"x": self.POINTS, "y": labels}
                if weighted:
                    given = arrays["sample_weight"] = 2 * RNG.random(6).astype(np.float32)
                compute = lambda floatx: in_type(
                    floatx, lambda: self.after_a_step(floatx, loss, layers, weights, labels, given))
                exact = compute("float64")
                model.save(f"{folder}/model.keras")
                np.savez(f"{folder}/train.npz", **arrays)
                data = {"format": "npz", "file": f"{folder}/train.npz"}
                if weighted:
                    data["sample_weights"] = "sample_weight"
                keys = {"model": {"file": f"{folder}/model.keras", "weights": f"{folder}/model.keras"},
                        "batch_size": 6, "data": {"train": data}, "max_steps": 1, "model_dir": f"{folder}/run"}
                train(keys)
                reader = tf.train.load_checkpoint(f"{folder}/run")
                got = {name: reader.get_tensor(name) for name in exact}
                self.assertEqual(differences(got, exact, lambda: compute("float32"), 1e-5), [])


class Metrics(unittest.TestCase):
    def compare(self, make, name, arguments, prediction, labels, mask=None, weights=None):
        """Compares the value of the metric after two batches with that of Keras."""
        parts = (slice(0, 4), slice(4, None))

        def keras_in(floatx):
            metric = make(**arguments)
            for part in parts:
                output = tf.constant(prediction[part].astype(floatx))
                if mask is not None:
                    output._keras_mask = tf.constant(mask[part])
                own = labels[part].astype(floatx) if labels.dtype == np.float32 else labels[part]
                metric.update_state(own, output,
                                    sample_weight=None if weights is None else weights[part].astype(floatx))
            return {"value": np.float64(metric.result())}

        batches = [[as_json(prediction[part]), as_json(labels[part])] +
                   [None if array is None else as_json(array[part]) for array in (mask, weights)] for part in parts]
        form = name if isinstance(name, dict) else {"name": name, **arguments}
        got = {"value": tool("metric", {"metric": form, "batches": batches})}
        compute = lambda floatx: in_type(floatx, lambda: keras_in(floatx))
        # TensorFlow ranks classes only in float32, without rounding anything.
        exact = compute("float32" if "top_k" in name else "float64")
        self.assertEqual(differences(got, exact, lambda: compute("float32"), 1e-5), [])

    def test_every_name_that_is_documented_is_compared(self):
        compared = {name for _, name, *_ in [*METRICS, *with_arguments()]}
        # Keras has no perplexity (tests/numerics/objectives_test.cc tests it), and clips only inside other losses.
        self.assertEqual(documented() - compared, {"perplexity", "clipped_crossentropy", *ONLY_LOSSES})

    def test_values_over_batches_equal_keras(self):
        for make, name, prediction, labels in METRICS:
            with self.subTest(metric=name, prediction=prediction.shape, labels=labels.shape):
                self.compare(make, name, {}, prediction, labels)

    def test_values_with_arguments_equal_keras(self):
        for make, name, arguments, prediction, labels in with_arguments():
            with self.subTest(metric=name, **arguments):
                self.compare(make, name, arguments, prediction, labels)

    def test_masks_of_outputs_count_as_in_keras(self):
        mask = RNG.random(STEPS[:-1]) > 0.4
        for make, name, prediction, labels in MASKED:
            with self.subTest(metric=name):
                self.compare(make, name, {}, prediction, labels, mask)

    def test_weighted_values_equal_keras(self):
        plain = [(make, name, {}, prediction, labels) for make, name, prediction, labels in METRICS]
        for make, name, arguments, prediction, labels in plain + with_arguments():
            for axes in range(1, max(2, prediction.ndim)):
                # Omit these metrics, for which Keras does not broadcast the weights of examples over the steps.
                if axes < prediction.ndim - 1 and name in OF_ELEMENTS:
                    continue
                with self.subTest(metric=name, axes=axes, **arguments):
                    # Above 1 as well, because Keras rounds the weights of some metrics down to integers.
                    weights = 3 * RNG.random(prediction.shape[:axes]).astype(np.float32)
                    self.compare(make, name, arguments, prediction, labels, weights=weights)

    def test_masks_and_weights_count_together_as_in_keras(self):
        # Use one weight per step. Keras multiplies weights and mask without broadcasting, so one weight per example
        # would raise an error.
        mask, weights = RNG.random(STEPS[:-1]) > 0.4, RNG.random(STEPS[:-1]).astype(np.float32)
        for make, name, prediction, labels in MASKED:
            with self.subTest(metric=name):
                self.compare(make, name, {}, prediction, labels, mask, weights)
