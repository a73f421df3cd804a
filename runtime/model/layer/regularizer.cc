#include "runtime/model/layer/regularizer.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "runtime/base/did_you_mean.h"
#include "runtime/graph/ops.h"
#include "runtime/model/layer/arguments.h"
#include "runtime/model/layer/vector_normalization.h"

namespace tfjob::model {
namespace {

using graph::Builder;
using graph::Output;
using RegularizerKind = Regularizer::Kind;

// Describes a Keras class: its name, its short name, and the regularizer that it specifies without
// arguments.
struct RegularizerClass {
  std::string_view class_name;
  std::string_view name;
  Regularizer value;
};

// Listed in the order of Regularizer::Kind, starting with kL1.
constexpr RegularizerClass kRegularizers[] = {
    {"L1", "l1", {.kind = RegularizerKind::kL1, .l1 = 0.01}},
    {"L2", "l2", {.kind = RegularizerKind::kL2, .l2 = 0.01}},
    {"L1L2", "l1l2", {.kind = RegularizerKind::kL1L2}},
    {"OrthogonalRegularizer", "orthogonal_regularizer", {.kind = RegularizerKind::kOrthogonal}},
};

const RegularizerClass* FindRegularizer(std::string_view name) {
  for (const RegularizerClass& entry : kRegularizers) {
    if (entry.class_name == name || entry.name == name) return &entry;
  }
  return nullptr;
}

Status ReadFactor(Arguments& arguments, std::string_view name, double& value) {
  RETURN_IF_ERROR(arguments.Read(name, value));
  if (std::isfinite(value) && value >= 0) return OkStatus();
  return arguments.Named(arguments[name].Mismatch("a finite number of at least 0"));
}

Status ReadMode(Arguments& arguments, Regularizer::Mode& mode) {
  const JsonField field = arguments["mode"];
  ASSIGN_OR_RETURN(const std::string text, field.StringOr("rows"));
  if (text != "rows" && text != "columns")
    return arguments.Named(field.Mismatch("one of rows, columns"));
  mode = text == "rows" ? Regularizer::Mode::kRows : Regularizer::Mode::kColumns;
  return OkStatus();
}

Status ReadFactors(Arguments& arguments, Regularizer& value) {
  if (value.kind == RegularizerKind::kOrthogonal) {
    RETURN_IF_ERROR(ReadFactor(arguments, "factor", value.factor));
    return ReadMode(arguments, value.mode);
  }
  if (value.kind != RegularizerKind::kL2) RETURN_IF_ERROR(ReadFactor(arguments, "l1", value.l1));
  if (value.kind == RegularizerKind::kL1) return OkStatus();
  return ReadFactor(arguments, "l2", value.l2);
}

Json FactorsOf(const Regularizer& value) {
  switch (value.kind) {
    case RegularizerKind::kL1:
      return {{"l1", value.l1}};
    case RegularizerKind::kL2:
      return {{"l2", value.l2}};
    case RegularizerKind::kL1L2:
      return {{"l1", value.l1}, {"l2", value.l2}};
    case RegularizerKind::kNone:
    case RegularizerKind::kOrthogonal:
      break;
  }
  const bool rows = value.mode == Regularizer::Mode::kRows;
  return {{"factor", value.factor}, {"mode", rows ? "rows" : "columns"}};
}

Output ScaledBy(Builder& b, Output x, double factor) {
  return Mul(b, x, Scalar(b, b.dtype(x), factor));
}

// Returns the penalty of kOrthogonal. Divides each row or column by its length, or by 1e-7 if the
// length is smaller, so that a row of zeros remains zero.
Output OrthogonalPenalty(Builder& b, const Regularizer& regularizer, Output x) {
  const bool rows = regularizer.mode == Regularizer::Mode::kRows;
  const int64_t size = b.shape(x).dim(rows ? 0 : 1);
  const Output unit = layers::Normalized(b, x, {rows ? 1 : 0}, 1e-7);
  const Output products = MatMul(b, unit, unit, !rows, rows);
  Tensor others(DType::kFloat32, Shape({size, size}));
  for (int64_t i = 0; i < size * size; ++i)
    others.data<float>()[static_cast<size_t>(i)] = i % (size + 1) == 0 ? 0 : 1;
  const Output kept = Mul(b, products, Cast(b, Const(b, std::move(others)), b.dtype(x)));
  const double pairs = static_cast<double>(size) * (static_cast<double>(size) - 1) / 2;
  return ScaledBy(b, Sum(b, Abs(b, kept), {}), regularizer.factor * 0.5 / pairs);
}

}  // namespace

StatusOr<Regularizer> ReadRegularizer(const JsonField& field) {
  ASSIGN_OR_RETURN(ClassForm form, ReadClassForm(field, "a regularizer"));
  const RegularizerClass* entry = FindRegularizer(form.class_name);
  if (entry == nullptr) {
    std::vector<std::string> names;
    for (const RegularizerClass& known : kRegularizers) names.emplace_back(known.class_name);
    return InvalidArgument(field.path(), ": regularizer ", form.class_name, " is not supported",
                           DidYouMean(form.class_name, names));
  }
  Regularizer value = entry->value;
  Arguments arguments(StrCat("regularizer ", entry->class_name), form.arguments);
  RETURN_IF_ERROR(ReadFactors(arguments, value));
  RETURN_IF_ERROR(arguments.Finish());
  return value;
}

Json WriteRegularizer(const Regularizer& regularizer) {
  if (!regularizer.present()) return Json();
  const size_t index = static_cast<size_t>(regularizer.kind) - 1;
  return {{"module", "keras.regularizers"},
          {"class_name", std::string(kRegularizers[index].class_name)},
          {"config", FactorsOf(regularizer)},
          {"registered_name", nullptr}};
}

Status CheckShape(const Regularizer& regularizer, const Shape& shape) {
  if (regularizer.kind != RegularizerKind::kOrthogonal) return OkStatus();
  constexpr int64_t kMostRows = 16384;  // all products of pairs are kept in memory
  if (shape.rank() != 2) {
    return InvalidArgument("OrthogonalRegularizer takes a matrix, got shape ", shape.ToString());
  }
  const int64_t size = shape.dim(regularizer.mode == Regularizer::Mode::kRows ? 0 : 1);
  if (size >= 2 && size <= kMostRows) return OkStatus();
  return InvalidArgument("OrthogonalRegularizer takes from 2 to ", kMostRows,
                         " rows or columns, got shape ", shape.ToString());
}

Output Penalty(Builder& b, const Regularizer& regularizer, Output x) {
  if (!b.ok()) return {};
  if (regularizer.kind == RegularizerKind::kOrthogonal) return OrthogonalPenalty(b, regularizer, x);
  const bool absolute = regularizer.l1 != 0, squared = regularizer.l2 != 0;
  if (!absolute && !squared) return Scalar(b, b.dtype(x), 0);
  const Output l1 = absolute ? ScaledBy(b, Sum(b, Abs(b, x), {}), regularizer.l1) : Output();
  const Output l2 = squared ? ScaledBy(b, Sum(b, Square(b, x), {}), regularizer.l2) : Output();
  if (!absolute || !squared) return absolute ? l1 : l2;
  return Add(b, l1, l2);
}

Output ActivityPenalty(Builder& b, const Regularizer& regularizer, Output x) {
  const Output penalty = Penalty(b, regularizer, x);
  if (!b.ok()) return {};
  return ScaledBy(b, penalty, 1.0 / static_cast<double>(b.shape(x).dim(0)));
}

}  // namespace tfjob::model
