#include "runtime/model/layers/dot.h"

#include "runtime/graph/ops.h"
#include "runtime/model/layer/axes.h"
#include "runtime/model/layer/einsum.h"
#include "runtime/model/layer/vector_normalization.h"

namespace tfjob::model::layers {

void Dot::Arguments(ArgumentVisitor& visitor) {
  visitor.Axes("axes", axes);
  visitor.Flag("normalize", normalize);
}

StatusOr<std::vector<TensorType>> Dot::OutputTypes(std::span<const TensorType> in) const {
  if (in.size() != 2) return InvalidArgument("expected two inputs, got ", in.size());
  if (axes.empty() || axes.size() > 2)
    return InvalidArgument("expected one axis, or one per input, got ", axes.size());
  std::vector<int64_t> dims;
  int64_t sizes[2];
  for (size_t i = 0; i < 2; ++i) {
    RETURN_IF_ERROR(ExpectOneInput(in.subspan(i, 1), false));
    const Shape& shape = in[i].shape;
    const int64_t axis = i == 0 ? axes.front() : axes.back();
    const int found = ExampleAxis(axis, shape);
    if (found < 0) return NoSuchAxis(axis, shape);
    if (shape.rank() > 12) return InvalidArgument("expected at most 12 axes, got ", shape.rank());
    sizes[i] = shape.dim(found);
    for (int d = 0; d < shape.rank(); ++d)
      if (d != found) dims.push_back(shape.dim(d));
  }
  if (in[0].dtype != in[1].dtype || sizes[0] != sizes[1]) {
    return InvalidArgument("expected inputs of one type and of equal size along the axes, got ",
                           in[0].ToString(), " and ", in[1].ToString());
  }
  if (dims.empty()) dims.push_back(1);
  return std::vector{TensorType{in[0].dtype, Shape(std::move(dims))}};
}

graph::Output Dot::Apply(const LayerCall& call) const {
  graph::Builder& b = call.b;
  constexpr char kBatch = 'a', kSummed = 'b';
  char next = 'c';
  EinsumAxes letters{.x = {}, .y = {}, .z = {kBatch}};
  graph::Output values[2];
  for (size_t i = 0; i < 2; ++i) {
    const Shape in = ExampleOf(b.shape(call.inputs[i]));
    const int summed = ExampleAxis(i == 0 ? axes.front() : axes.back(), in);
    std::string& own = i == 0 ? letters.x : letters.y;
    own = kBatch;
    for (int d = 0; d < in.rank(); ++d) {
      own += d == summed ? kSummed : next;
      if (d != summed) letters.z += next++;
    }
    values[i] = normalize ? Normalized(b, call.inputs[i], {summed + 1}, 1e-7) : call.inputs[i];
  }
  const graph::Output y = Einsum(b, values[0], values[1], letters);
  return letters.z.size() > 1 ? y : graph::Reshape(b, y, {call.batch_size(), 1});
}

}  // namespace tfjob::model::layers
