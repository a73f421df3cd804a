#include "runtime/optimizer/constraint.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

namespace tfjob::optimizer {
namespace {

using ConstraintKind = Constraint::Kind;

// Lists the names of the kinds, in the order of Constraint::Kind.
constexpr std::string_view kConstraintNames[] = {"None", "NonNeg", "UnitNorm", "MaxNorm",
                                                 "MinMaxNorm"};
constexpr double kConstraintEpsilon = 1e-7;
constexpr std::string_view kConstraintAttribute = "constraint";

// Converts a negative axis, which counts from the end, to a nonnegative axis.
int64_t FromFirst(int64_t axis, const Shape& shape) {
  return axis < 0 ? axis + shape.rank() : axis;
}

Status CheckBound(std::string_view name, double value, double most) {
  if (std::isfinite(value) && value >= 0 && value <= most) return OkStatus();
  return InvalidArgument(name, ": expected a finite number of at least 0",
                         most == 1 ? " and at most 1" : "", ", got ", value);
}

double FactorFor(const Constraint& constraint, double norm) {
  const double inverse = 1 / (kConstraintEpsilon + norm);
  switch (constraint.kind) {
    case ConstraintKind::kMaxNorm:
      return std::min(norm, constraint.max_value) * inverse;
    case ConstraintKind::kMinMaxNorm: {
      const double inside = std::clamp(norm, constraint.min_value, constraint.max_value);
      return (constraint.rate * inside + (1 - constraint.rate) * norm) * inverse;
    }
    case ConstraintKind::kNone:
    case ConstraintKind::kNonNeg:
    case ConstraintKind::kUnitNorm:
      break;
  }
  return inverse;
}

}  // namespace

std::string_view Name(ConstraintKind kind) {
  return kConstraintNames[static_cast<size_t>(kind)];
}

Status Validate(const Constraint& constraint, const Shape& shape) {
  if (!constraint.has_norms()) return OkStatus();
  RETURN_IF_ERROR(CheckBound("min_value", constraint.min_value, HUGE_VAL));
  RETURN_IF_ERROR(CheckBound("max_value", constraint.max_value, HUGE_VAL));
  RETURN_IF_ERROR(CheckBound("rate", constraint.rate, 1));
  if (constraint.min_value > constraint.max_value) {
    return InvalidArgument("expected a min_value of at most max_value, ", constraint.max_value,
                           ", got ", constraint.min_value);
  }
  std::set<int64_t> seen;
  for (const int64_t axis : constraint.axes) {
    const int64_t found = FromFirst(axis, shape);
    if (found < 0 || found >= shape.rank() || !seen.insert(found).second) {
      return InvalidArgument("expected different axes of ", shape.ToString(), ", got ", axis);
    }
  }
  return OkStatus();
}

bool SpansRows(const Constraint& constraint, const Shape& shape) {
  return constraint.has_norms() && std::ranges::any_of(constraint.axes, [&](int64_t axis) {
           return FromFirst(axis, shape) == 0;
         });
}

Json ToJson(const Constraint& constraint) {
  return {{"kind", std::string(Name(constraint.kind))},
          {"min_value", constraint.min_value},
          {"max_value", constraint.max_value},
          {"rate", constraint.rate},
          {"axes", constraint.axes}};
}

StatusOr<Constraint> ParseConstraint(const JsonField& json) {
  Constraint constraint;
  ASSIGN_OR_RETURN(const std::string kind, json["kind"].String());
  const auto* found = std::ranges::find(kConstraintNames, kind);
  if (found == std::end(kConstraintNames)) return json["kind"].Mismatch("a constraint");
  constraint.kind = static_cast<ConstraintKind>(found - kConstraintNames);
  ASSIGN_OR_RETURN(constraint.min_value, json["min_value"].Double());
  ASSIGN_OR_RETURN(constraint.max_value, json["max_value"].Double());
  ASSIGN_OR_RETURN(constraint.rate, json["rate"].Double());
  ASSIGN_OR_RETURN(const auto axes, json["axes"].Elements());
  for (const JsonField& axis : axes) {
    ASSIGN_OR_RETURN(constraint.axes.emplace_back(), axis.Int());
  }
  return constraint;
}

void SetConstraint(const Constraint& constraint, Attributes& attributes) {
  if (constraint.present()) attributes.Set(kConstraintAttribute, PrintJson(ToJson(constraint)));
}

StatusOr<Constraint> ConstraintOf(const Attributes& attributes, const Shape& shape) {
  const auto* text = attributes.Find<std::string>(kConstraintAttribute);
  if (text == nullptr) return Constraint();
  ASSIGN_OR_RETURN(const Json json, ParseJson(*text, kConstraintAttribute));
  ASSIGN_OR_RETURN(Constraint constraint, ParseConstraint(JsonField(json)));
  RETURN_IF_ERROR(Validate(constraint, shape));
  return constraint;
}

Projection::Projection(const Constraint& constraint, const Shape& shape) : constraint_(constraint) {
  const auto rank = static_cast<size_t>(shape.rank());
  std::vector<bool> reduced(rank, false);
  for (const int64_t axis : constraint.axes)
    reduced[static_cast<size_t>(FromFirst(axis, shape))] = true;
  columns_ = rank == 0 ? 1 : shape.dim(-1);
  rows_ = columns_ == 0 ? 0 : shape.num_elements() / columns_;
  int64_t norms = 1;
  strides_.assign(rank, 0);
  for (size_t i = rank; i-- > 0;) {
    if (reduced[i]) continue;
    strides_[i] = norms;
    norms *= shape.dim(static_cast<int>(i));
  }
  if (rank > 0) {
    column_stride_ = strides_.back();
    strides_.pop_back();
    dims_.assign(shape.dims().begin(), shape.dims().end() - 1);
  }
  place_.assign(dims_.size(), 0);
  if (constraint.has_norms()) norms_.assign(static_cast<size_t>(norms), 0);
}

// Calls visit(row, norm) for each row. `norm` is the index in norms_ of the norm that covers the
// row's first element.
template <typename Visit>
void Projection::ForEachRow(Visit visit) {
  std::ranges::fill(place_, 0);
  int64_t norm = 0;
  for (int64_t row = 0; row < rows_; ++row) {
    visit(row, norm);
    for (size_t i = dims_.size(); i-- > 0;) {
      norm += strides_[i];
      if (++place_[i] < dims_[i]) break;
      norm -= strides_[i] * dims_[i];
      place_[i] = 0;
    }
  }
}

void Projection::NormsToFactors() {
  for (double& norm : norms_) norm = FactorFor(constraint_, std::sqrt(norm));
}

template <typename T>
void Projection::RunOn(T* variable, int64_t row_stride) {
  if (constraint_.kind == ConstraintKind::kNone) return;
  if (constraint_.kind == ConstraintKind::kNonNeg) {
    for (int64_t row = 0; row < rows_; ++row) {
      T* w = variable + row * row_stride;
      for (int64_t i = 0; i < columns_; ++i) w[i] = w[i] < 0 ? T{0} : w[i];
    }
    return;
  }
  std::ranges::fill(norms_, 0);
  ForEachRow([&](int64_t row, int64_t norm) {
    const T* w = variable + row * row_stride;
    double* squares = norms_.data() + norm;
    for (int64_t i = 0; i < columns_; ++i) {
      const auto value = static_cast<double>(w[i]);
      squares[i * column_stride_] += value * value;
    }
  });
  NormsToFactors();
  ForEachRow([&](int64_t row, int64_t norm) {
    T* w = variable + row * row_stride;
    const double* factors = norms_.data() + norm;
    for (int64_t i = 0; i < columns_; ++i)
      w[i] = static_cast<T>(static_cast<double>(w[i]) * factors[i * column_stride_]);
  });
}

void Projection::Run(float* variable, int64_t row_stride) {
  RunOn(variable, row_stride);
}
void Projection::Run(double* variable, int64_t row_stride) {
  RunOn(variable, row_stride);
}

}  // namespace tfjob::optimizer
