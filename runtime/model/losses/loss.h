// Defines losses, with their Keras names. A loss computes one number per place. If the model's
// output has one axis, each example is a place. If it has more axes, each position along all axes
// except the last is a place, such as a step of a sequence. The loss of a batch is the mean or the
// sum of these numbers. Metrics are defined in model/metrics.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/graph/builder.h"

namespace tfjob::model {

struct Model;

// Lists the losses. The formulas are those of keras/src/losses. Here, p is the model's output, y is
// the labels, which have the shape of p unless noted otherwise, and e is 1e-7. Sums, means and
// maxima are taken over the last axis. clip(p) limits p to [e, 1 - e].
//   kSparseCategoricalCrossentropy   y: int64, like p without its last axis: [b], [b, steps], …
//     if p are logits                -log softmax(p)[y]
//     if p are probabilities         -log p[y], with p clipped, then normalised
//     where y is ignore_class        0, and the place does not count (CountedPlaces)
//   kCategoricalCrossentropy
//     if p are logits                -Σ y log softmax(p)
//     if p are probabilities         -Σ y log clip(p / Σ p)
//   kClippedCrossentropy             -Σ y log(min(max(p, 1e-10), 1))
//   kBinaryCrossentropy
//     if p are logits                mean(max(p, 0) - p y + log(1 + exp(-|p|)))
//     if p are probabilities         mean(-y log clip(p) - (1 - y) log(1 - clip(p)))
//   kBinaryFocalCrossentropy         like kBinaryCrossentropy, with every term multiplied by
//                                    (1 - q)^gamma, where q = y p + (1 - y)(1 - p) and p are
//                                    probabilities; with apply_class_balancing, also by
//                                    y alpha + (1 - y)(1 - alpha)
//   kCategoricalFocalCrossentropy    -Σ alpha (1 - q)^gamma y log q, where q = clip(p / Σ p) and p
//                                    are probabilities
//   kCategoricalGeneralizedCrossEntropy   (1 - p[y]^q) / q, with y as in the first loss; p are
//                                    probabilities
//   kMeanSquaredError                mean (y - p)²
//   kMeanAbsoluteError               mean |y - p|
//   kMeanAbsolutePercentageError     100 mean |(y - p) / max(|y|, e)|
//   kMeanSquaredLogarithmicError     mean (log(max(p, e) + 1) - log(max(y, e) + 1))²
//   kHuber                           mean of d² / 2 if |d| <= delta, else delta |d| - delta² / 2,
//                                    where d = p - y
//   kLogCosh                         mean log cosh(p - y)
//   kPoisson                         mean(p - y log(p + e))
//   kKlDivergence                    Σ y log(y / p), with y and p clipped to [e, 1]
//   kCosineSimilarity                -Σ y p / (|y| |p|)
//   kHinge, kSquaredHinge            mean of max(1 - y p, 0), or of its square. If all labels of
//                                    the batch are 0 or 1, they become -1 or 1
//   kCategoricalHinge                max(max((1 - y) p) - Σ y p + 1, 0)
//   kDice                            1 - 2 Σ y p / (Σ y + Σ p + e), with sums over `axes`
//   kTversky                         1 - t / (t + alpha Σ y (1 - p) + beta Σ p (1 - y) + e), where
//                                    t = Σ y p, with sums over `axes`
//   kCircle                          log(1 + exp(L(gamma a (d - m)) + L(gamma c (1 - m - d)))) for
//                                    each example, where m is the margin, d = max(1 - p·p', 0) for
//                                    each example p' of the batch, and L is log Σ exp: in the first
//                                    term over p' with the same label, with a = max(d + m, 0), and
//                                    in the second over all others, with c = max(1 + m - d, 0).
//                                    With remove_diagonal, p' is not p itself. Examples whose loss
//                                    is 0 do not count (CountedPlaces)
//   kCtc                             -log P(y | p) for each example, where p are logits [steps,c]
//                                    and y are the classes of a shorter sequence (Graves et al.,
//                                    "Connectionist Temporal Classification", 2006). Class 0 is the
//                                    blank, and pads y at its end
// If the probabilities are the result of a softmax, the cross-entropies use the inputs of the
// softmax as logits, like Keras on TensorFlow; the binary cross-entropies do the same for a
// sigmoid. A label_smoothing of s replaces y with y (1 - s) + s / 2 in the binary losses, and with
// y (1 - s) + s / classes in the categorical losses.
enum class LossKind {
  kSparseCategoricalCrossentropy,
  kCategoricalCrossentropy,
  kClippedCrossentropy,
  kBinaryCrossentropy,
  kBinaryFocalCrossentropy,
  kCategoricalFocalCrossentropy,
  kCategoricalGeneralizedCrossEntropy,
  kMeanSquaredError,
  kMeanAbsoluteError,
  kMeanAbsolutePercentageError,
  kMeanSquaredLogarithmicError,
  kHuber,
  kLogCosh,
  kPoisson,
  kKlDivergence,
  kCosineSimilarity,
  kHinge,
  kSquaredHinge,
  kCategoricalHinge,
  kDice,
  kTversky,
  kCircle,
  kCtc,
  kCustom,  // the values that a model computes (model/custom_loss.h)
};
struct Loss {
  LossKind kind = LossKind::kSparseCategoricalCrossentropy;
  bool from_logits = false;    // for the cross-entropies, except kClippedCrossentropy
  bool sum = false;            // whether to take the sum over all places instead of the mean
  double label_smoothing = 0;  // like from_logits, but only for labels with the shape of p
  // For the focal losses, whose defaults are 0.25 and 2; alpha for kTversky (0.5), and gamma for
  // kCircle (80).
  std::optional<double> alpha = {}, gamma = {};
  bool apply_class_balancing = false;        // for kBinaryFocalCrossentropy
  double delta = 1;                          // for kHuber
  double q = 0.5;                            // for kCategoricalGeneralizedCrossEntropy
  std::optional<int64_t> ignore_class = {};  // for kSparseCategoricalCrossentropy
  double beta = 0.5;                         // for kTversky
  double margin = 0.4;                       // for kCircle
  bool remove_diagonal = true;               // for kCircle
  // For kDice and kTversky: axes of the batch of predictions, of which axis 0 contains the
  // examples. Negative axes count from the end. If empty, all axes.
  std::vector<int64_t> axes = {};
  std::shared_ptr<const Model> model = nullptr;  // for kCustom: computes the values
};
// Parses a name such as "sparse_categorical_crossentropy". For an unknown name, returns
// InvalidArgument with a message that suggests or lists names. kCustom has no name.
StatusOr<LossKind> ParseLoss(std::string_view name);
std::string_view Name(LossKind kind);

// Returns whether the loss can also be used as a metric: whether it is the mean of values of the
// places, and has arguments that metrics have.
bool IsAlsoMetric(LossKind kind);
// Returns whether the loss is one number for the whole batch, which depends on all examples
// together: kDice and kTversky, if the sums are taken over the examples. `rank` is the rank of the
// batch of predictions.
bool IsOfBatch(const Loss& loss, int rank);

// Returns InvalidArgument if an argument of the loss is out of range.
Status ValidateLoss(const Loss& loss);

// Specifies the form of the labels that a loss or a metric requires.
enum class LabelForm {
  kClasses,   // classes: int64, with the shape of the output without its last axis
  kRows,      // one-hot rows or probabilities: float32, with the shape of the output
  kValues,    // values: float32, with as many elements as the output
  kGroup,     // the group of an example: int64, any number; the output is a vector
  kSequence,  // classes: int64 [length]; the output is [steps,classes]
};
LabelForm FormOf(LossKind kind);

// Returns InvalidArgument, with a message that starts with `what`, unless labels of this type have
// the form that is required for the output. Both shapes are for one example.
Status CheckLabels(std::string_view what, LabelForm form, const Shape& output, DType label_dtype,
                   const Shape& label_shape);
// Returns InvalidArgument if the loss is incompatible with the output or the labels.
Status CheckLoss(const Loss& loss, const Shape& output, DType label_dtype,
                 const Shape& label_shape);

// Returns whether the elements of labels with this shape correspond, in order, to values of the
// shape `wanted`. This is the case if the shapes are equal except for axes of length 1, or if the
// labels are flat, as in a CSV file.
bool PairsWith(const Shape& labels, const Shape& wanted);

// Returns the shape of the places of one example: the shape of the output without the last axis.
Shape PlacesOf(const Shape& output);

// Returns which places count, as bool [b, …places]: those whose label is not the loss's
// ignore_class or, for kCircle, whose value is above 0. Like Keras, treats this as a mask of the
// losses. Returns an invalid Output if all places count. `values` are those of LossValues; only
// kCircle needs them.
graph::Output CountedPlaces(graph::Builder& b, const Loss& loss, graph::Output labels,
                            graph::Output values = {});

// Returns one value per place, as float32 [b, …places]. kCircle and kCtc have one value per
// example, [b], and kDice and kTversky one for each combination of the axes over which they do not
// sum. If the loss is of the batch (IsOfBatch), its mean or sum over the other axes is the value of
// every example, [b]. CheckLoss must have accepted the shapes of the prediction and the labels. Not
// for kCustom.
graph::Output LossValues(graph::Builder& b, const Loss& loss, graph::Output prediction,
                         graph::Output labels);

}  // namespace tfjob::model
