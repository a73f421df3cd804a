#include "runtime/model/losses/loss.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

#include "runtime/base/did_you_mean.h"
#include "runtime/graph/ops.h"
#include "runtime/model/layer/mask.h"
#include "runtime/model/losses/losses.h"

namespace tfjob::model {
namespace {

using graph::Builder;
using graph::Output;

struct LossEntry {
  std::string_view name;
  LabelForm form;
  Output (*values)(Builder& b, const Loss& loss, Output p, Output y);
};

// Listed in the order of LossKind.
constexpr LossEntry kLosses[] = {
    {"sparse_categorical_crossentropy", LabelForm::kClasses, losses::SparseCategoricalCrossentropy},
    {"categorical_crossentropy", LabelForm::kRows, losses::CategoricalCrossentropy},
    {"clipped_crossentropy", LabelForm::kRows, losses::ClippedCrossentropy},
    {"binary_crossentropy", LabelForm::kValues, losses::BinaryCrossentropy},
    {"binary_focal_crossentropy", LabelForm::kValues, losses::BinaryFocalCrossentropy},
    {"categorical_focal_crossentropy", LabelForm::kRows, losses::CategoricalFocalCrossentropy},
    {"categorical_generalized_cross_entropy", LabelForm::kClasses,
     losses::CategoricalGeneralizedCrossEntropy},
    {"mean_squared_error", LabelForm::kValues, losses::MeanSquaredError},
    {"mean_absolute_error", LabelForm::kValues, losses::MeanAbsoluteError},
    {"mean_absolute_percentage_error", LabelForm::kValues, losses::MeanAbsolutePercentageError},
    {"mean_squared_logarithmic_error", LabelForm::kValues, losses::MeanSquaredLogarithmicError},
    {"huber", LabelForm::kValues, losses::Huber},
    {"log_cosh", LabelForm::kValues, losses::LogCosh},
    {"poisson", LabelForm::kValues, losses::Poisson},
    {"kl_divergence", LabelForm::kRows, losses::KlDivergence},
    {"cosine_similarity", LabelForm::kRows, losses::CosineSimilarity},
    {"hinge", LabelForm::kValues, losses::Hinge},
    {"squared_hinge", LabelForm::kValues, losses::SquaredHinge},
    {"categorical_hinge", LabelForm::kRows, losses::CategoricalHinge},
    {"dice", LabelForm::kValues, losses::Dice},
    {"tversky", LabelForm::kValues, losses::Tversky},
    {"circle", LabelForm::kGroup, losses::Circle},
    {"ctc", LabelForm::kSequence, losses::Ctc},
};
static_assert(std::size(kLosses) == static_cast<size_t>(LossKind::kCtc) + 1);

const LossEntry& EntryOf(LossKind kind) {
  return kLosses[static_cast<size_t>(kind)];
}

std::string LabelText(DType dtype, const Shape& shape) {
  return StrCat(Name(dtype), " of shape ", shape.ToString());
}

Status CheckNumber(std::string_view name, double value, bool fits, std::string_view allowed) {
  if (fits) return OkStatus();
  return InvalidArgument(name, ": expected ", allowed, ", got ", value);
}

Status CheckAtLeastZero(std::string_view name, double value) {
  return CheckNumber(name, value, std::isfinite(value) && value >= 0,
                     "a finite number of at least 0");
}

// Returns InvalidArgument unless the axes are different axes of batches of this rank.
Status CheckAxes(const Loss& loss, int rank) {
  std::set<int64_t> seen;
  for (const int64_t axis : loss.axes) {
    if (axis < -rank || axis >= rank || !seen.insert(axis < 0 ? axis + rank : axis).second) {
      return InvalidArgument("axis: expected different axes from ", -rank, " to ", rank - 1,
                             ", got ", axis);
    }
  }
  return OkStatus();
}

// Check the labels of losses whose places are the examples.
Status CheckGroups(std::string_view what, const Shape& output, DType dtype, const Shape& labels) {
  if (output.rank() != 1) {
    return InvalidArgument(what, " expects one vector per example, but the model outputs shape ",
                           output.ToString());
  }
  if (dtype == DType::kInt64 && labels.rank() == 0) return OkStatus();
  return InvalidArgument(what, " expects one integer per example as label, int64 of shape [], got ",
                         LabelText(dtype, labels), "; set data.labels to class");
}
Status CheckSequences(std::string_view what, const Shape& output, DType dtype,
                      const Shape& labels) {
  if (output.rank() != 2) {
    return InvalidArgument(what, " expects the logits of a sequence, shape [steps,classes], but ",
                           "the model outputs shape ", output.ToString());
  }
  if (dtype == DType::kInt64 && labels.rank() == 1 && labels.dim(0) > 0) return OkStatus();
  return InvalidArgument(what, " expects a list of class numbers per example as labels, int64 of ",
                         "shape [labels], got ", LabelText(dtype, labels),
                         "; set data.labels to class");
}

}  // namespace

StatusOr<LossKind> ParseLoss(std::string_view name) {
  std::vector<std::string> known;
  for (size_t i = 0; i < std::size(kLosses); ++i) {
    if (kLosses[i].name == name) return static_cast<LossKind>(i);
    known.emplace_back(kLosses[i].name);
  }
  return InvalidArgument("loss ", name, " is not supported", DidYouMean(name, known));
}

std::string_view Name(LossKind kind) {
  return EntryOf(kind).name;
}

bool IsAlsoMetric(LossKind kind) {
  return kind <= LossKind::kCategoricalHinge;
}

bool IsOfBatch(const Loss& loss, int rank) {
  if (loss.kind != LossKind::kDice && loss.kind != LossKind::kTversky) return false;
  return loss.axes.empty() ||
         std::ranges::any_of(loss.axes, [&](int64_t axis) { return axis == 0 || axis == -rank; });
}

Status ValidateLoss(const Loss& loss) {
  RETURN_IF_ERROR(CheckNumber("label_smoothing", loss.label_smoothing,
                              loss.label_smoothing >= 0 && loss.label_smoothing <= 1,
                              "a number from 0 to 1"));
  const double alpha = loss.alpha.value_or(0), gamma = loss.gamma.value_or(0);
  if (loss.kind == LossKind::kTversky) {
    RETURN_IF_ERROR(CheckAtLeastZero("alpha", alpha));
  } else {
    RETURN_IF_ERROR(CheckNumber("alpha", alpha, alpha >= 0 && alpha <= 1, "a number from 0 to 1"));
  }
  RETURN_IF_ERROR(CheckAtLeastZero("beta", loss.beta));
  RETURN_IF_ERROR(CheckAtLeastZero("gamma", gamma));
  RETURN_IF_ERROR(CheckAtLeastZero("margin", loss.margin));
  RETURN_IF_ERROR(CheckNumber("q", loss.q, loss.q > 0 && loss.q < 1, "a number between 0 and 1"));
  return CheckNumber("delta", loss.delta, std::isfinite(loss.delta) && loss.delta > 0,
                     "a finite number above 0");
}

LabelForm FormOf(LossKind kind) {
  return EntryOf(kind).form;
}

Shape PlacesOf(const Shape& output) {
  std::vector<int64_t> dims = output.dims();
  if (!dims.empty()) dims.pop_back();
  return Shape(std::move(dims));
}

bool PairsWith(const Shape& labels, const Shape& wanted) {
  if (labels.rank() <= 1) return labels.num_elements() == wanted.num_elements();
  const auto without_ones = [](const Shape& shape) {
    std::vector<int64_t> dims = shape.dims();
    std::erase(dims, 1);
    return dims;
  };
  return without_ones(labels) == without_ones(wanted);
}

Status CheckLabels(std::string_view what, LabelForm form, const Shape& output, DType dtype,
                   const Shape& labels) {
  if (form == LabelForm::kValues) {
    if (dtype == DType::kFloat32 && PairsWith(labels, output)) return OkStatus();
    return InvalidArgument(what, " expects labels like its predictions, float32 of shape ",
                           output.ToString(), ", got ", LabelText(dtype, labels));
  }
  if (form == LabelForm::kGroup) return CheckGroups(what, output, dtype, labels);
  if (form == LabelForm::kSequence) return CheckSequences(what, output, dtype, labels);
  if (output.rank() == 0) {
    return InvalidArgument(
        what, " expects one score per class, shape [classes], but the model outputs shape ",
        output.ToString());
  }
  if (form == LabelForm::kClasses) {
    if (dtype == DType::kInt64 && labels == PlacesOf(output)) return OkStatus();
    return InvalidArgument(what, " expects class numbers as labels, int64 of shape ",
                           PlacesOf(output).ToString(), ", got ", LabelText(dtype, labels),
                           "; set data.labels to class");
  }
  if (dtype == DType::kFloat32 && labels == output) return OkStatus();
  return InvalidArgument(what, " expects labels like its predictions, float32 of shape ",
                         output.ToString(), ", got ", LabelText(dtype, labels),
                         "; set data.labels to one_hot");
}

Status CheckLoss(const Loss& loss, const Shape& output, DType label_dtype,
                 const Shape& label_shape) {
  RETURN_IF_ERROR(Annotate(ValidateLoss(loss), "loss"));
  RETURN_IF_ERROR(Annotate(CheckAxes(loss, output.rank() + 1), "loss"));
  return CheckLabels(Name(loss.kind), FormOf(loss.kind), output, label_dtype, label_shape);
}

Output CountedPlaces(Builder& b, const Loss& loss, Output labels, Output values) {
  if (loss.kind == LossKind::kCircle && b.ok())
    return Greater(b, values, losses::Number(b, values, 0));
  if (!loss.ignore_class || loss.kind != LossKind::kSparseCategoricalCrossentropy) return {};
  return NotEqual(b, labels, static_cast<double>(*loss.ignore_class));
}

Output LossValues(Builder& b, const Loss& loss, Output prediction, Output labels) {
  if (!b.ok()) return {};
  const LossEntry& entry = EntryOf(loss.kind);
  if (entry.form == LabelForm::kRows || entry.form == LabelForm::kValues)
    labels = losses::LabelsLike(b, labels, prediction);
  return entry.values(b, loss, prediction, labels);
}

}  // namespace tfjob::model
