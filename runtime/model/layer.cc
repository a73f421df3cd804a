#include "runtime/model/layer.h"

namespace tfjob::model {

Shape Batched(int64_t batch_size, const Shape& example) {
  std::vector<int64_t> dims = example.dims();
  dims.insert(dims.begin(), batch_size);
  return Shape(std::move(dims));
}

Shape LayerCall::ExampleShape() const {
  const std::vector<int64_t>& dims = b.shape(x()).dims();
  return Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()));
}

Status ExpectOneInput(std::span<const TensorType> in, bool any_dtype) {
  if (in.size() != 1) return InvalidArgument("expected one input, got ", in.size());
  if (any_dtype || in[0].dtype == DType::kFloat32 || in[0].dtype == DType::kFloat64) {
    return OkStatus();
  }
  return InvalidArgument("expected float values, got ", in[0].ToString());
}

std::vector<Value> WithMasks(const LayerCall& call, std::vector<graph::Output> outputs, bool stop) {
  graph::Output mask;
  for (const Value& input : call.inputs) {
    if (!stop && !mask.valid()) mask = input.mask;
  }
  std::vector<Value> values;
  for (graph::Output output : outputs) values.push_back({output, mask});
  return values;
}

}  // namespace tfjob::model
