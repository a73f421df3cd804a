#include "runtime/model/shape.h"

#include <algorithm>

#include "runtime/graph/ops.h"
#include "runtime/model/any_length.h"

namespace tfjob::model::layers {
namespace {

// Reshapes each example of the layer's input to `example`.
graph::Output Reshaped(const LayerCall& call, const Shape& example) {
  return graph::Reshape(call.b, call.x(), Batched(call.batch_size(), example));
}

bool IsTarget(std::span<const int64_t> dims) {
  const bool positive = std::ranges::all_of(dims, [](int64_t d) { return d == -1 || d > 0; });
  return positive && std::ranges::count(dims, -1) <= 1;
}

bool IsPermutation(std::span<const int64_t> dims) {
  std::vector<int64_t> sorted(dims.begin(), dims.end());
  std::ranges::sort(sorted);
  for (size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<int64_t>(i) + 1) return false;
  }
  return !sorted.empty();
}

}  // namespace

void InputLayer::Arguments(ArgumentVisitor& visitor) {
  visitor.InputShape(shape);
  visitor.Type("dtype", dtype);
  for (const char* name : {"sparse", "ragged"}) visitor.Only(name, "false");
  visitor.Ignored("optional");
}

StatusOr<std::vector<TensorType>> InputLayer::OutputTypes(std::span<const TensorType> in) const {
  RETURN_IF_ERROR(ExpectOneInput(in, /*any_dtype=*/true));
  if (!FitsStated(shape, in[0].shape)) {
    return InvalidArgument("expected examples of shape ", StatedText(shape), ", got ",
                           in[0].shape.ToString());
  }
  if (in[0].dtype == dtype) return std::vector{in[0]};
  return InvalidArgument("expected values of type ", Name(dtype), ", as its dtype says, got ",
                         Name(in[0].dtype));
}

graph::Output Flatten::Apply(const LayerCall& call) const {
  const Shape in = call.ExampleShape();
  return in.rank() == 1 ? call.x() : Reshaped(call, {in.num_elements()});
}

void Reshape::Arguments(ArgumentVisitor& visitor) {
  visitor.Integers("target_shape", target_shape,
                   {.valid = IsTarget,
                    .expected = "dimensions of at least 1, at most one of them -1",
                    .required = true});
}

StatusOr<Shape> Reshape::OutputShape(const Shape& in) const {
  std::vector<int64_t> dims = target_shape;
  int64_t known = 1;
  bool fits = true;
  for (int64_t dim : dims) {
    if (dim > 0) fits = fits && !__builtin_mul_overflow(known, dim, &known);
  }
  const auto open = std::ranges::find(dims, -1);
  if (open != dims.end() && fits && in.num_elements() % known == 0)
    *open = in.num_elements() / known;
  Shape shape(std::move(dims));
  if (fits && std::ranges::find(shape.dims(), -1) == shape.dims().end() &&
      shape.num_elements() == in.num_elements()) {
    return shape;
  }
  return InvalidArgument("target_shape ", Shape(target_shape).ToString(), " does not hold the ",
                         in.num_elements(), " elements of shape ", in.ToString());
}

graph::Output Reshape::Apply(const LayerCall& call) const {
  StatusOr<Shape> shape = OutputShape(call.ExampleShape());
  if (!shape.ok()) return call.b.Fail(shape.status());
  return Reshaped(call, *shape);
}

void Permute::Arguments(ArgumentVisitor& visitor) {
  visitor.Integers("dims", dims,
                   {.valid = IsPermutation,
                    .expected = "a list of the numbers from 1 on, each once",
                    .required = true});
}

StatusOr<Shape> Permute::OutputShape(const Shape& in) const {
  if (static_cast<int>(dims.size()) != in.rank()) {
    return InvalidArgument("dims ", Shape(dims).ToString(), " does not reorder the ", in.rank(),
                           " axes of shape ", in.ToString());
  }
  std::vector<int64_t> out;
  for (int64_t d : dims) out.push_back(in.dim(static_cast<int>(d) - 1));
  return Shape(std::move(out));
}

graph::Output Permute::Apply(const LayerCall& call) const {
  std::vector<int64_t> permutation = dims;
  permutation.insert(permutation.begin(), 0);
  return graph::Transpose(call.b, call.x(), std::move(permutation));
}

void RepeatVector::Arguments(ArgumentVisitor& visitor) {
  visitor.Integer("n", n, {.least = 1, .expected = kPositive.expected, .required = true});
}

StatusOr<Shape> RepeatVector::OutputShape(const Shape& in) const {
  if (in.rank() == 1) return Shape({n, in.dim(0)});
  return InvalidArgument("expected examples of rank 1, got shape ", in.ToString());
}

graph::Output RepeatVector::Apply(const LayerCall& call) const {
  const int64_t columns = call.ExampleShape().dim(0);
  return graph::BroadcastTo(call.b, Reshaped(call, {1, columns}),
                            Batched(call.batch_size(), {n, columns}));
}

}  // namespace tfjob::model::layers
