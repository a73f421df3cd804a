#include <algorithm>
#include <numeric>
#include <set>

#include "runtime/graph/infer.h"

namespace tfjob::graph {
namespace {

// Returns the axes from 0, ascending; all axes if none is given.
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

}  // namespace

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
  if (!IsFloat(context.inputs[0].dtype)) return InvalidArgument("expected float32 or float64");
  return InferReduceNumeric(context);
}

InferResult InferArgMax(InferenceContext& context) {
  const TensorType& x = context.inputs[0];
  if (!IsFloat(x.dtype)) return InvalidArgument("expected float32 or float64");
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
      known = -1;  // more elements than any input has
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
  ASSIGN_OR_RETURN(Shape both, BroadcastShapes(x.shape, *shape));
  if (both != *shape) {
    return InvalidArgument("expected a shape that the input broadcasts to, got ",
                           shape->ToString());
  }
  return std::vector{TensorType{x.dtype, *shape}};
}

}  // namespace tfjob::graph
