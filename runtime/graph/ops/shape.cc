// Implements reductions, and ops that change a shape.
#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "runtime/graph/family.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {
namespace {

// ---- inference

// Returns the axes in the attribute `axes` in ascending order, each counted from 0. An empty or
// absent list means all axes.
StatusOr<std::vector<int64_t>> NormalAxes(const Attributes& attributes, int rank) {
  std::vector<int64_t> axes = attributes.Get("axes", std::vector<int64_t>());
  if (axes.empty()) {
    axes.resize(static_cast<size_t>(rank));
    std::iota(axes.begin(), axes.end(), 0);
    return axes;
  }
  for (int64_t& axis : axes) {
    if (axis < -rank || axis >= rank) {
      return InvalidArgument("expected axes from ", -rank, " to ", rank - 1, ", got ", axis);
    }
    if (axis < 0) axis += rank;
  }
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) {
    return InvalidArgument("expected each axis once, got ", Shape(axes).ToString());
  }
  return axes;
}

InferResult InferReduceNumeric(InferenceContext& context) {
  const TensorType& x = context.inputs[0];
  if (!IsNumeric(x.dtype)) {
    return InvalidArgument("expected float32, float64, int32 or int64");
  }
  ASSIGN_OR_RETURN(std::vector<int64_t> axes, NormalAxes(context.attributes, x.shape.rank()));
  const bool keep_dims = context.attributes.Get("keep_dims", false);
  std::vector<int64_t> dims;
  for (int axis = 0; axis < x.shape.rank(); ++axis) {
    if (!std::ranges::binary_search(axes, axis)) {
      dims.push_back(x.shape.dim(axis));
    } else if (keep_dims) {
      dims.push_back(1);
    }
  }
  context.attributes.Set("axes", std::move(axes));
  return std::vector{TensorType{x.dtype, Shape(std::move(dims))}};
}

InferResult InferReduceFloat(InferenceContext& context) {
  if (!IsFloat(context.inputs[0].dtype)) return InvalidArgument("expected a float type");
  return InferReduceNumeric(context);
}

InferResult InferArgMax(InferenceContext& context) {
  const TensorType& x = context.inputs[0];
  if (!IsFloat(x.dtype)) return InvalidArgument("expected a float type");
  const int rank = x.shape.rank();
  int64_t axis = context.attributes.Get<int64_t>("axis", -1);
  if (axis < -rank || axis >= rank) {
    return InvalidArgument("expected an axis from ", -rank, " to ", rank - 1, ", got ", axis);
  }
  if (axis < 0) axis += rank;
  std::vector<int64_t> dims = x.shape.dims();
  dims.erase(dims.begin() + axis);
  context.attributes.Set("axis", axis);
  return std::vector{TensorType{DType::kInt64, Shape(std::move(dims))}};
}

InferResult InferReshape(InferenceContext& context) {
  const TensorType& x = context.inputs[0];
  const Shape* wanted = context.attributes.Find<Shape>("shape");
  if (wanted == nullptr) return InvalidArgument("expected an attribute shape");
  std::vector<int64_t> dims = wanted->dims();
  int64_t known = 1;
  int64_t* open = nullptr;
  for (int64_t& dim : dims) {
    if (dim < -1 || (dim == -1 && open != nullptr)) {
      return InvalidArgument("expected a shape with at most one -1, got ", wanted->ToString());
    }
    if (dim == -1) {
      open = &dim;
    } else if (__builtin_mul_overflow(known, dim, &known)) {
      known = -1;  // more elements than an input can have
      break;
    }
  }
  const int64_t elements = x.shape.num_elements();
  if (open != nullptr && known > 0 && elements % known == 0) {
    *open = elements / known;
    known = elements;
  }
  if (known != elements || std::ranges::count(dims, -1) > 0) {
    return InvalidArgument("expected a shape of ", elements, " elements, got ", wanted->ToString());
  }
  Shape shape(std::move(dims));
  context.attributes.Set("shape", shape);
  return std::vector{TensorType{x.dtype, std::move(shape)}};
}

InferResult InferTranspose(InferenceContext& context) {
  const TensorType& x = context.inputs[0];
  const auto* perm = context.attributes.Find<std::vector<int64_t>>("perm");
  if (perm == nullptr || static_cast<int>(perm->size()) != x.shape.rank()) {
    return InvalidArgument("expected an attribute perm of ", x.shape.rank(), " axes");
  }
  const std::set<int64_t> axes(perm->begin(), perm->end());
  if (axes.size() != perm->size() ||
      (!axes.empty() && (*axes.begin() < 0 || *axes.rbegin() >= x.shape.rank()))) {
    return InvalidArgument("expected perm to list each axis once, got ", Shape(*perm).ToString());
  }
  std::vector<int64_t> dims;
  for (int64_t axis : *perm) dims.push_back(x.shape.dim(static_cast<int>(axis)));
  return std::vector{TensorType{x.dtype, Shape(std::move(dims))}};
}

InferResult InferBroadcastTo(InferenceContext& context) {
  const TensorType& x = context.inputs[0];
  const Shape* shape = context.attributes.Find<Shape>("shape");
  if (shape == nullptr) return InvalidArgument("expected an attribute shape");
  RETURN_IF_ERROR(ExpectNoNegative(*shape));
  ASSIGN_OR_RETURN(Shape both, BroadcastShapes(x.shape, *shape));
  if (both != *shape) {
    return InvalidArgument("expected a shape that the input broadcasts to, got ",
                           shape->ToString());
  }
  return std::vector{TensorType{x.dtype, *shape}};
}

// ---- gradients

// Returns the input's shape with each reduced dimension set to 1, regardless of keep_dims.
Shape KeptShape(GradientContext& c) {
  std::vector<int64_t> dims = c.b.shape(c.input(0)).dims();
  for (int64_t axis : c.node.attributes.Get("axes", std::vector<int64_t>())) {
    dims[static_cast<size_t>(axis)] = 1;
  }
  return Shape(std::move(dims));
}

Output Kept(GradientContext& c, Output reduced) {
  const Shape shape = KeptShape(c);
  return c.b.shape(reduced) == shape ? reduced : Reshape(c.b, reduced, shape);
}

Gradient SumGradient(GradientContext& c) {
  return {BroadcastTo(c.b, Kept(c, c.dy()), c.b.shape(c.input(0)))};
}

Gradient MeanGradient(GradientContext& c) {
  const Shape shape = c.b.shape(c.input(0));
  const double count = static_cast<double>(shape.num_elements()) /
                       static_cast<double>(std::max<int64_t>(1, c.b.shape(c.dy()).num_elements()));
  const Output part = Mul(c.b, c.dy(), Scalar(c.b, c.b.dtype(c.dy()), 1 / count));
  return {BroadcastTo(c.b, Kept(c, part), shape)};
}

// d_x is dy, divided equally among the elements that equal the maximum or minimum.
Gradient ExtremeGradient(GradientContext& c) {
  const DType dtype = c.b.dtype(c.dy());
  const Output is_extreme = Cast(c.b, Equal(c.b, c.input(0), Kept(c, c.output(0))), dtype);
  const Output count =
      Sum(c.b, is_extreme, c.node.attributes.Get("axes", std::vector<int64_t>()), true);
  return {Mul(c.b, is_extreme, Div(c.b, Kept(c, c.dy()), count))};
}

Gradient ReshapeGradient(GradientContext& c) {
  return {Reshape(c.b, c.dy(), c.b.shape(c.input(0)))};
}

Gradient TransposeGradient(GradientContext& c) {
  const auto perm = c.node.attributes.Get("perm", std::vector<int64_t>());
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i)
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  return {Transpose(c.b, c.dy(), std::move(inverse))};
}

Gradient BroadcastToGradient(GradientContext& c) {
  return {SumTo(c.b, c.dy(), c.b.shape(c.input(0)))};
}

// ---- builder functions

Output Reduce(Builder& b, std::string_view op, Output x, std::vector<int64_t> axes,
              bool keep_dims) {
  Attributes attributes{{"axes", std::move(axes)}};
  if (keep_dims) attributes.Set("keep_dims", true);
  return b.Add(op, {x}, std::move(attributes));
}

}  // namespace

std::vector<Op> ShapeOps() {
  return {
      {"Sum", 1, 1, InferReduceNumeric, SumGradient},
      {"Mean", 1, 1, InferReduceFloat, MeanGradient},
      {"Max", 1, 1, InferReduceNumeric, ExtremeGradient},
      {"Min", 1, 1, InferReduceNumeric, ExtremeGradient},
      {"ArgMax", 1, 1, InferArgMax, NoGradient},
      {"Reshape", 1, 1, InferReshape, ReshapeGradient},
      {"Transpose", 1, 1, InferTranspose, TransposeGradient},
      {"BroadcastTo", 1, 1, InferBroadcastTo, BroadcastToGradient},
  };
}

Output Sum(Builder& b, Output x, std::vector<int64_t> axes, bool keep_dims) {
  return Reduce(b, "Sum", x, std::move(axes), keep_dims);
}
Output Mean(Builder& b, Output x, std::vector<int64_t> axes, bool keep_dims) {
  return Reduce(b, "Mean", x, std::move(axes), keep_dims);
}
Output Max(Builder& b, Output x, std::vector<int64_t> axes, bool keep_dims) {
  return Reduce(b, "Max", x, std::move(axes), keep_dims);
}
Output Min(Builder& b, Output x, std::vector<int64_t> axes, bool keep_dims) {
  return Reduce(b, "Min", x, std::move(axes), keep_dims);
}
Output ArgMax(Builder& b, Output x, int axis) {
  return b.Add("ArgMax", {x}, {{"axis", static_cast<int64_t>(axis)}});
}
Output Reshape(Builder& b, Output x, Shape shape) {
  return b.Add("Reshape", {x}, {{"shape", std::move(shape)}});
}
Output Transpose(Builder& b, Output x, std::vector<int64_t> permutation) {
  return b.Add("Transpose", {x}, {{"perm", std::move(permutation)}});
}
Output BroadcastTo(Builder& b, Output x, Shape shape) {
  return b.Add("BroadcastTo", {x}, {{"shape", std::move(shape)}});
}

}  // namespace tfjob::graph
