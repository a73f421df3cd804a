#include "runtime/model/losses/loss.h"

#include <cmath>
#include <iterator>

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
};
static_assert(std::size(kLosses) == static_cast<size_t>(LossKind::kCategoricalHinge) + 1);

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

Status ValidateLoss(const Loss& loss) {
  RETURN_IF_ERROR(CheckNumber("label_smoothing", loss.label_smoothing,
                              loss.label_smoothing >= 0 && loss.label_smoothing <= 1,
                              "a number from 0 to 1"));
  RETURN_IF_ERROR(
      CheckNumber("alpha", loss.alpha, loss.alpha >= 0 && loss.alpha <= 1, "a number from 0 to 1"));
  RETURN_IF_ERROR(CheckNumber("gamma", loss.gamma, std::isfinite(loss.gamma) && loss.gamma >= 0,
                              "a finite number of at least 0"));
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
  return CheckLabels(Name(loss.kind), FormOf(loss.kind), output, label_dtype, label_shape);
}

Output CountedPlaces(Builder& b, const Loss& loss, Output labels) {
  if (!loss.ignore_class || loss.kind != LossKind::kSparseCategoricalCrossentropy) return {};
  return NotEqual(b, labels, static_cast<double>(*loss.ignore_class));
}

Output LossValues(Builder& b, const Loss& loss, Output prediction, Output labels) {
  if (!b.ok()) return {};
  const LossEntry& entry = EntryOf(loss.kind);
  if (entry.form != LabelForm::kClasses) labels = losses::LabelsLike(b, labels, prediction);
  return entry.values(b, loss, prediction, labels);
}

}  // namespace tfjob::model
