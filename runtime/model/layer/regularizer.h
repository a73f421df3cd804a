// Defines regularizers: penalties on variables, or on the outputs of layers, which training adds to
// the loss. The formulas and names are those of keras/src/regularizers.
#pragma once

#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob {
class Shape;
}  // namespace tfjob
namespace tfjob::graph {
class Builder;
struct Output;
}  // namespace tfjob::graph

namespace tfjob::model {

// Defines a penalty on a value x:
//   kL1          l1 Σ |x|
//   kL2          l2 Σ x²
//   kL1L2        l1 Σ |x| + l2 Σ x²
//   kOrthogonal  for a matrix: factor times the mean, over all pairs of rows (or columns), of |p|,
//                where p is the dot product of the two, each divided by its length
struct Regularizer {
  enum class Kind { kNone, kL1, kL2, kL1L2, kOrthogonal };
  enum class Mode { kRows, kColumns };

  Kind kind = Kind::kNone;
  double l1 = 0, l2 = 0;
  double factor = 0.01;     // kOrthogonal
  Mode mode = Mode::kRows;  // kOrthogonal

  bool present() const { return kind != Kind::kNone; }
  bool operator==(const Regularizer&) const = default;
};

// Reads a regularizer such as "l2" or {L2: {l2: 0.01}}, or in Keras' form {class_name, config}. For
// anything else, returns InvalidArgument; the message contains the path, the class or argument, and
// the supported choices.
StatusOr<Regularizer> ReadRegularizer(const JsonField& field);

// Returns the regularizer in the form of Keras 3, or null for kNone.
Json WriteRegularizer(const Regularizer& regularizer);

// Returns InvalidArgument if the regularizer cannot be applied to a value of this shape:
// kOrthogonal requires a matrix.
Status CheckShape(const Regularizer& regularizer, const Shape& shape);

// Returns the penalty, a scalar of x's type. The kind must not be kNone, and CheckShape must accept
// the shape.
graph::Output Penalty(graph::Builder& b, const Regularizer& regularizer, graph::Output x);

// Returns the penalty on a layer's output [batch, …], divided by the batch size, as in Keras.
graph::Output ActivityPenalty(graph::Builder& b, const Regularizer& regularizer, graph::Output x);

}  // namespace tfjob::model
