// Implements InputLayer, Flatten and Reshape.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/graph/ops.h"
#include "runtime/model/layer_call.h"
#include "runtime/model/layers.h"

namespace tfjob::model {
namespace {

// Returns the layer's input with each example reshaped to `example`.
graph::Output Reshaped(const LayerCall& call, const Shape& example) {
  std::vector<int64_t> dims = example.dims();
  dims.insert(dims.begin(), call.b.shape(call.input).dim(0));
  return graph::Reshape(call.b, call.input, Shape(std::move(dims)));
}

// Returns the shape of one example of the layer's input.
Shape ExampleOf(const LayerCall& call) {
  const std::vector<int64_t>& dims = call.b.shape(call.input).dims();
  return Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()));
}

}  // namespace

Status InputLayer::Read(Arguments& arguments) {
  std::optional<Shape> given;
  RETURN_IF_ERROR(arguments.ReadBatchShape("batch_input_shape", given));
  RETURN_IF_ERROR(arguments.ReadBatchShape("batch_shape", given));
  RETURN_IF_ERROR(arguments.ReadShape("input_shape", given));
  RETURN_IF_ERROR(arguments.ReadShape("shape", given));
  if (!given)
    return arguments.Named(arguments["batch_shape"].Mismatch("a list such as [null, 28, 28]"));
  shape = *given;
  for (const char* name : {"sparse", "ragged", "optional"})
    RETURN_IF_ERROR(arguments.Only(name, "false"));
  return OkStatus();
}

void InputLayer::Write(Json& config) const {
  Json dims = Json::array({nullptr});
  for (int64_t dim : shape.dims()) dims.push_back(dim);
  config["batch_shape"] = std::move(dims);
  config["sparse"] = false;
  config["ragged"] = false;
}

StatusOr<Shape> InputLayer::OutputShape(const Shape& in) const {
  if (in == shape) return shape;
  return InvalidArgument("expected examples of shape ", shape.ToString(), ", got ", in.ToString());
}

graph::Output InputLayer::Apply(const LayerCall& call) const {
  return call.input;
}

Status Flatten::Read(Arguments& arguments) {
  return arguments.Only("data_format", "\"channels_last\"");
}
void Flatten::Write(Json& config) const {
  config["data_format"] = "channels_last";
}
StatusOr<Shape> Flatten::OutputShape(const Shape& in) const {
  return Shape({in.num_elements()});
}
graph::Output Flatten::Apply(const LayerCall& call) const {
  const Shape in = ExampleOf(call);
  return in.rank() == 1 ? call.input : Reshaped(call, {in.num_elements()});
}

Status Reshape::Read(Arguments& arguments) {
  const JsonField field = arguments["target_shape"];
  if (!field.present()) return arguments.Named(field.Mismatch("a list of integers"));
  RETURN_IF_ERROR(arguments.Read("target_shape", target_shape));
  const bool positive = std::all_of(target_shape.begin(), target_shape.end(),
                                    [](int64_t d) { return d == -1 || d > 0; });
  if (positive && std::count(target_shape.begin(), target_shape.end(), -1) <= 1) return OkStatus();
  return arguments.Named(field.Mismatch("dimensions of at least 1, at most one of them -1"));
}

void Reshape::Write(Json& config) const {
  config["target_shape"] = target_shape;
}

StatusOr<Shape> Reshape::OutputShape(const Shape& in) const {
  std::vector<int64_t> dims = target_shape;
  int64_t known = 1;
  bool fits = true;
  for (int64_t dim : dims) {
    if (dim > 0) fits = fits && !__builtin_mul_overflow(known, dim, &known);
  }
  const auto open = std::find(dims.begin(), dims.end(), -1);
  if (open != dims.end() && fits && in.num_elements() % known == 0)
    *open = in.num_elements() / known;
  Shape shape(std::move(dims));
  if (fits && std::find(shape.dims().begin(), shape.dims().end(), -1) == shape.dims().end() &&
      shape.num_elements() == in.num_elements()) {
    return shape;
  }
  return InvalidArgument("target_shape ", Shape(target_shape).ToString(), " does not hold the ",
                         in.num_elements(), " elements of shape ", in.ToString());
}

graph::Output Reshape::Apply(const LayerCall& call) const {
  StatusOr<Shape> shape = OutputShape(ExampleOf(call));
  if (!shape.ok()) return call.b.Fail(shape.status());
  return Reshaped(call, *shape);
}

}  // namespace tfjob::model
