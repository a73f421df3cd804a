#include "runtime/model/layer/layer.h"

namespace tfjob::model {

Shape Batched(int64_t batch_size, const Shape& example) {
  std::vector<int64_t> dims = example.dims();
  dims.insert(dims.begin(), batch_size);
  return Shape(std::move(dims));
}

Shape ExampleOf(const Shape& batched) {
  const std::vector<int64_t>& dims = batched.dims();
  return Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()));
}

std::vector<TensorType> LayerCall::ExampleTypes() const {
  std::vector<TensorType> types;
  for (const graph::Output input : inputs)
    types.push_back({b.dtype(input), ExampleOf(b.shape(input))});
  return types;
}

Shape LayerCall::ExampleShape() const {
  return ExampleOf(b.shape(x()));
}

std::vector<graph::Output> LayerConfig::Apply(LayerCall& call) const {
  std::vector<graph::Output> outputs = held_->Apply(call);
  if (!call.output_masks) {
    call.output_masks.emplace();
    if (held_->supports_masking()) call.output_masks->push_back(call.mask());
  }
  call.output_masks->resize(outputs.size());
  return outputs;
}

Status ExpectOneInput(std::span<const TensorType> in, bool any_dtype) {
  if (in.size() != 1) return InvalidArgument("expected one input, got ", in.size());
  if (any_dtype || in[0].dtype == DType::kFloat32 || in[0].dtype == DType::kFloat64) {
    return OkStatus();
  }
  return InvalidArgument("expected float values, got ", in[0].ToString());
}

}  // namespace tfjob::model
