"""Compares losses and metrics with Keras 3. run.sh runs it."""
import unittest

from harness import as_json, tool

import numpy as np
import tensorflow as tf
import keras

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
ROWS, PROBABILITIES = one_hot(CLASSES), softmax(SCORES)

# Name, arguments, prediction, labels.
LOSSES = [
    ("sparse_categorical_crossentropy", {}, PROBABILITIES, CLASSES),
    ("sparse_categorical_crossentropy", {"from_logits": True}, SCORES, CLASSES),
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
]
METRICS = [
    (keras.metrics.BinaryAccuracy, "accuracy", PROBABILITIES[..., :1], ONES[..., :1]),
    (keras.metrics.SparseCategoricalAccuracy, "accuracy", PROBABILITIES, CLASSES),
    (keras.metrics.CategoricalAccuracy, "accuracy", PROBABILITIES, ROWS),
    (keras.metrics.BinaryAccuracy, "binary_accuracy", PROBABILITIES, ONES),
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
]
WIDE = RNG.standard_normal((20, 12)).astype(np.float32)
LABELS = RNG.integers(0, 12, 20)
METRICS += [
    (keras.metrics.SparseTopKCategoricalAccuracy, "sparse_top_k_categorical_accuracy", WIDE, LABELS),
    (keras.metrics.TopKCategoricalAccuracy, "top_k_categorical_accuracy", WIDE,
     np.eye(12, dtype=np.float32)[LABELS]),
]


def with_arguments():
    """Returns (class, name, arguments, prediction, labels)."""
    m, logits = keras.metrics, 3 * SCORES
    cases = [(m.BinaryAccuracy, "binary_accuracy", {"threshold": t}, PROBABILITIES, ONES) for t in (0.2, 0.31)]
    cases += [(m.TopKCategoricalAccuracy, "top_k_categorical_accuracy", {"k": k}, WIDE,
               np.eye(12, dtype=np.float32)[LABELS]) for k in (1, 3)]
    cases += [(m.SparseTopKCategoricalAccuracy, "sparse_top_k_categorical_accuracy", {"k": 2}, WIDE, LABELS)]
    for make, name in [(m.Precision, "precision"), (m.Recall, "recall")]:
        cases += [(make, name, arguments, PROBABILITIES, ONES)
                  for arguments in ({"thresholds": 0.2}, {"class_id": 0}, {"class_id": 2, "thresholds": [0.3]})]
    for make, name in [(m.TruePositives, "true_positives"), (m.TrueNegatives, "true_negatives"),
                       (m.FalsePositives, "false_positives"), (m.FalseNegatives, "false_negatives")]:
        cases += [(make, name, {"thresholds": 0.3}, PROBABILITIES, ONES)]
    cases += [(m.AUC, "auc", {"num_thresholds": n, "curve": curve, "summation_method": method}, PROBABILITIES, ONES)
              for n in (2, 3, 50, 200) for curve in ("ROC", "PR")
              for method in ("interpolation", "minoring", "majoring")]
    cases += [(m.AUC, "auc", {"from_logits": True}, logits, ONES)]
    cases += [(m.BinaryCrossentropy, "binary_crossentropy", {"from_logits": True, "label_smoothing": 0.2}, logits, ONES),
              (m.BinaryCrossentropy, "binary_crossentropy", {"label_smoothing": 0.1}, PROBABILITIES, ONES),
              (m.CategoricalCrossentropy, "categorical_crossentropy", {"from_logits": True, "label_smoothing": 0.3},
               logits, ROWS),
              (m.SparseCategoricalCrossentropy, "sparse_categorical_crossentropy", {"from_logits": True}, logits,
               CLASSES)]
    return cases


# Metrics that count elements rather than positions.
OF_ELEMENTS = {"precision", "recall", "auc", "true_positives", "true_negatives", "false_positives", "false_negatives"}

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
]


class Losses(unittest.TestCase):
    def test_values_and_gradients_equal_keras(self):
        for name, arguments, prediction, labels in LOSSES:
            with self.subTest(loss=name, **arguments):
                got = tool("loss", {"loss": {"name": name, **arguments}, "prediction": as_json(prediction),
                                    "labels": as_json(labels)})
                function = getattr(keras.losses, name)
                x = tf.Variable(prediction)
                with tf.GradientTape() as tape:
                    values = function(tf.constant(labels), x, **arguments)
                    mean = tf.reduce_mean(values)
                size = max(1, np.abs(values).max())
                np.testing.assert_allclose(np.float32(got["values"]).reshape(values.shape), values, rtol=0,
                                           atol=2e-6 * size)
                np.testing.assert_allclose(np.float32(got["gradient"]).reshape(x.shape), tape.gradient(mean, x),
                                           rtol=1e-4, atol=2e-6 * size)


class Metrics(unittest.TestCase):
    def compare(self, make, name, arguments, prediction, labels, mask=None, weights=None):
        """Compares the value of the metric after two batches with that of Keras."""
        metric, batches = make(**arguments), []
        for part in (slice(0, 4), slice(4, None)):
            output = tf.constant(prediction[part])
            if mask is not None:
                output._keras_mask = tf.constant(mask[part])
            metric.update_state(labels[part], output, sample_weight=None if weights is None else weights[part])
            batches.append([as_json(prediction[part]), as_json(labels[part])] +
                           [None if array is None else as_json(array[part]) for array in (mask, weights)])
        got = tool("metric", {"metric": {"name": name, **arguments}, "batches": batches})
        self.assertAlmostEqual(got, float(metric.result()), delta=2e-5)

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
                    weights = RNG.random(prediction.shape[:axes]).astype(np.float32)
                    self.compare(make, name, arguments, prediction, labels, weights=weights)

    def test_masks_and_weights_count_together_as_in_keras(self):
        # Use one weight per step. Keras multiplies weights and mask without broadcasting, so one weight per example
        # would raise an error.
        mask, weights = RNG.random(STEPS[:-1]) > 0.4, RNG.random(STEPS[:-1]).astype(np.float32)
        for make, name, prediction, labels in MASKED:
            with self.subTest(metric=name):
                self.compare(make, name, {}, prediction, labels, mask, weights)
