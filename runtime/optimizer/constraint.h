// Defines constraints: projections that are applied to a variable after each step of the optimizer.
// The arithmetic is that of Keras 3 (keras/src/constraints):
//
//   NonNeg      w = max(w, 0)
//   UnitNorm    w = w / (1e-7 + n)
//   MaxNorm     w = w (min(n, max_value) / (1e-7 + n))
//   MinMaxNorm  w = w ((rate min(max(n, min_value), max_value) + (1 - rate) n) / (1e-7 + n))
//
// where n is the Euclidean norm of w over `axes`. There is one norm per index of all other axes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/tensor/attributes.h"
#include "runtime/tensor/shape.h"

namespace tfjob::optimizer {

struct Constraint {
  enum class Kind : uint8_t { kNone, kNonNeg, kUnitNorm, kMaxNorm, kMinMaxNorm };

  Kind kind = Kind::kNone;
  double min_value = 0;            // kMinMaxNorm
  double max_value = 1;            // kMaxNorm, kMinMaxNorm
  double rate = 1;                 // kMinMaxNorm
  std::vector<int64_t> axes = {};  // the axes of the norms; negative axes count from the end

  bool present() const { return kind != Kind::kNone; }
  bool has_norms() const { return present() && kind != Kind::kNonNeg; }
  bool operator==(const Constraint&) const = default;
};

// Returns the name of the Keras class, such as "MaxNorm".
std::string_view Name(Constraint::Kind kind);

// Returns InvalidArgument if an argument is invalid, or if a variable of this shape lacks one of
// the axes.
Status Validate(const Constraint& constraint, const Shape& shape);

// Returns whether norms are taken over the first axis. If so, a range of rows does not contain all
// elements of any norm.
bool SpansRows(const Constraint& constraint, const Shape& shape);

// Convert a constraint to and from JSON. The form is specific to this project.
Json ToJson(const Constraint& constraint);
StatusOr<Constraint> ParseConstraint(const JsonField& json);

// SetConstraint adds a constraint, unless it is kNone, to the attributes of an op that updates a
// variable. ConstraintOf returns the constraint in the attributes, or InvalidArgument if it is
// invalid for a variable of this shape.
void SetConstraint(const Constraint& constraint, Attributes& attributes);
StatusOr<Constraint> ConstraintOf(const Attributes& attributes, const Shape& shape);

// Applies a constraint to variables of one shape. Contains memory for one number per norm, so Run
// does not allocate memory. Not thread-safe.
class Projection {
 public:
  // Creates a projection that changes nothing.
  Projection() = default;
  // Creates a projection for `constraint`, which Validate must accept for the shape.
  Projection(const Constraint& constraint, const Shape& shape);

  // Projects the variable in place. The last axis forms rows, which start `row_stride` elements
  // apart.
  void Run(float* variable, int64_t row_stride);
  void Run(double* variable, int64_t row_stride);
  template <typename T>
  void Run(std::span<T> variable) {
    Run(variable.data(), columns_);
  }

 private:
  template <typename T>
  void RunOn(T* variable, int64_t row_stride);
  template <typename Visit>
  void ForEachRow(Visit visit);
  void NormsToFactors();

  Constraint constraint_;
  std::vector<int64_t> dims_;     // all dimensions except the last
  std::vector<int64_t> strides_;  // strides in norms_, one per dimension; 0 along `axes`
  std::vector<int64_t> place_;    // the index of the current row
  int64_t rows_ = 0, columns_ = 0;
  int64_t column_stride_ = 0;  // stride of the last axis in norms_
  std::vector<double> norms_;  // successively the squared norms, the norms and the factors
};

}  // namespace tfjob::optimizer
