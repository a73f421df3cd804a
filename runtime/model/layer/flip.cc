#include "runtime/model/layer/flip.h"

#include <utility>
#include <vector>

#include "runtime/graph/ops.h"

namespace tfjob::model {

using graph::Builder;
using graph::Output;

// Moves the axis to the front, gathers its elements in reverse order, and moves the axis back.
Output Flipped(Builder& b, Output x, int64_t axis) {
  if (!x.valid()) return x;
  constexpr int64_t kLongestAxis = int64_t{1} << 20;  // the order is a constant of the graph
  const Shape shape = b.shape(x);
  const int64_t size = shape.dim(static_cast<int>(axis));
  if (size > kLongestAxis)
    return b.Fail(InvalidArgument("expected an axis of at most ", kLongestAxis,
                                  " elements to flip, got ", size));
  std::vector<int64_t> swapped;
  for (int64_t i = 0; i < shape.rank(); ++i) swapped.push_back(i);
  std::swap(swapped[0], swapped[static_cast<size_t>(axis)]);
  Tensor order(DType::kInt64, {size});
  for (int64_t i = 0; i < size; ++i) order.data<int64_t>()[static_cast<size_t>(i)] = size - 1 - i;
  const Output front = Transpose(b, x, swapped);
  const Shape moved = b.shape(front);
  const Output rows = graph::Reshape(b, front, {size, size == 0 ? 0 : moved.num_elements() / size});
  const Output flipped = Gather(b, rows, Const(b, std::move(order)));
  return Transpose(b, graph::Reshape(b, flipped, moved), swapped);
}

}  // namespace tfjob::model
