// Implements ops that cut, pad and join tensors.
#include <algorithm>
#include <utility>

#include "runtime/graph/family.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {
namespace {

// Returns the attribute `name`, which must be a list of one nonnegative number per axis.
StatusOr<std::vector<int64_t>> PerAxis(const Attributes& attributes, std::string_view name,
                                       int rank) {
  const auto* numbers = attributes.Find<std::vector<int64_t>>(name);
  const auto negative = [](int64_t number) { return number < 0; };
  if (numbers != nullptr && static_cast<int>(numbers->size()) == rank &&
      std::ranges::none_of(*numbers, negative)) {
    return *numbers;
  }
  return InvalidArgument("expected the attribute ", name, ": ", rank, " numbers of at least 0");
}

InferResult InferConcat(InferenceContext& context) {
  TensorType joined = context.inputs[0];
  const int rank = joined.shape.rank();
  int64_t axis = context.attributes.Get<int64_t>("axis", -1);
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("expected an axis from ", -rank, " to ", rank - 1, ", got ", axis);
  }
  if (axis < 0) axis += rank;
  std::vector<int64_t> dims = joined.shape.dims();
  int64_t& along = dims[static_cast<size_t>(axis)];
  for (size_t i = 1; i < context.inputs.size(); ++i) {
    const TensorType& type = context.inputs[i];
    std::vector<int64_t> alike = type.shape.dims();
    if (static_cast<int>(alike.size()) == rank)
      alike[static_cast<size_t>(axis)] = joined.shape.dim(static_cast<int>(axis));
    if (type.dtype != joined.dtype || Shape(alike) != joined.shape) {
      return InvalidArgument("expected inputs of one dtype that differ only along axis ", axis,
                             ", got ", joined.ToString(), " and ", type.ToString());
    }
    if (__builtin_add_overflow(along, type.shape.dim(static_cast<int>(axis)), &along))
      return InvalidArgument("expected an output of at most 2^40 elements");
  }
  context.attributes.Set("axis", axis);
  joined.shape = Shape(std::move(dims));
  return std::vector{std::move(joined)};
}

InferResult InferSlice(InferenceContext& context) {
  const TensorType& x = context.inputs[0];
  ASSIGN_OR_RETURN(const auto begin, PerAxis(context.attributes, "begin", x.shape.rank()));
  ASSIGN_OR_RETURN(const auto size, PerAxis(context.attributes, "size", x.shape.rank()));
  for (size_t axis = 0; axis < begin.size(); ++axis) {
    const int64_t dim = x.shape.dims()[axis];
    if (begin[axis] <= dim && size[axis] <= dim - begin[axis]) continue;
    return InvalidArgument("expected a slice within the ", dim, " elements of axis ", axis,
                           ", got ", size[axis], " from ", begin[axis], " on");
  }
  return std::vector{TensorType{x.dtype, Shape(size)}};
}

InferResult InferPad(InferenceContext& context) {
  const TensorType& x = context.inputs[0];
  ASSIGN_OR_RETURN(const auto before, PerAxis(context.attributes, "before", x.shape.rank()));
  ASSIGN_OR_RETURN(const auto after, PerAxis(context.attributes, "after", x.shape.rank()));
  std::vector<int64_t> dims = x.shape.dims();
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (__builtin_add_overflow(dims[axis], before[axis], &dims[axis]) ||
        __builtin_add_overflow(dims[axis], after[axis], &dims[axis])) {
      return InvalidArgument("expected an output of at most 2^40 elements");
    }
  }
  return std::vector{TensorType{x.dtype, Shape(std::move(dims))}};
}

// Returns, for each input, the part of dy that corresponds to the input's elements.
Gradient ConcatGradient(GradientContext& c) {
  const auto axis = static_cast<size_t>(c.node.attributes.Get<int64_t>("axis", 0));
  std::vector<int64_t> begin(c.b.shape(c.dy()).dims().size(), 0);
  Gradient gradients;
  for (const Output input : c.node.inputs) {
    const std::vector<int64_t> size = c.b.shape(input).dims();
    gradients.push_back(Slice(c.b, c.dy(), begin, size));
    begin[axis] += size[axis];
  }
  return gradients;
}

Gradient SliceGradient(GradientContext& c) {
  const auto begin = c.node.attributes.Get("begin", std::vector<int64_t>());
  const auto size = c.node.attributes.Get("size", std::vector<int64_t>());
  std::vector<int64_t> after = c.b.shape(c.input(0)).dims();
  for (size_t axis = 0; axis < after.size(); ++axis) after[axis] -= begin[axis] + size[axis];
  return {Pad(c.b, c.dy(), begin, std::move(after))};
}

Gradient PadGradient(GradientContext& c) {
  return {Slice(c.b, c.dy(), c.node.attributes.Get("before", std::vector<int64_t>()),
                c.b.shape(c.input(0)).dims())};
}

}  // namespace

std::vector<Op> SliceOps() {
  return {
      {"Concat", 1, kMostJoined, InferConcat, ConcatGradient},
      {"Slice", 1, 1, InferSlice, SliceGradient},
      {"Pad", 1, 1, InferPad, PadGradient},
  };
}

Output Concat(Builder& b, std::vector<Output> inputs, int64_t axis) {
  return b.Add("Concat", std::move(inputs), {{"axis", axis}});
}

Output Slice(Builder& b, Output x, std::vector<int64_t> begin, std::vector<int64_t> size) {
  return b.Add("Slice", {x}, {{"begin", std::move(begin)}, {"size", std::move(size)}});
}

Output Pad(Builder& b, Output x, std::vector<int64_t> before, std::vector<int64_t> after) {
  return b.Add("Pad", {x}, {{"before", std::move(before)}, {"after", std::move(after)}});
}

}  // namespace tfjob::graph
