#include "runtime/inference/predictor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/base/check.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/env.h"
#include "runtime/exec/program.h"
#include "runtime/model/any_length.h"
#include "runtime/model/apply_layer.h"
#include "runtime/model/build.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::inference {
namespace {

// Returns whether a number may be converted to type To. Conversion to an integer type must preserve
// the value. From floats, only integers up to 2^24 (float32) or 2^53 (float64) are accepted,
// because a larger float may stand for several integers.
template <typename To, typename From>
bool Fits(From value) {
  if constexpr (std::is_floating_point_v<To> || std::is_same_v<From, bool>) {
    return true;
  } else if constexpr (std::is_floating_point_v<From>) {
    constexpr auto kMost = static_cast<From>(int64_t{1} << std::numeric_limits<From>::digits);
    return std::fabs(value) <= kMost && std::floor(value) == value &&
           std::in_range<To>(static_cast<int64_t>(value));
  } else {
    return std::in_range<To>(value);
  }
}

template <typename To, typename From>
StatusOr<Tensor> ConvertedFrom(const Tensor& array) {
  Tensor made(DTypeOf<To>::value, array.shape(), Buffer::Contents::kUndefined);
  const std::span<const From> from = array.data<From>();
  const std::span<To> to = made.data<To>();
  for (size_t i = 0; i < from.size(); ++i) {
    if (!Fits<To>(from[i])) {
      const size_t per_example = from.size() / static_cast<size_t>(array.shape().dim(0));
      return InvalidArgument("example ", i / per_example, ": expected an integer that ",
                             Name(made.dtype()), " and ", Name(array.dtype()),
                             " hold exactly, got ", from[i]);
    }
    to[i] = static_cast<To>(from[i]);
  }
  return made;
}

template <typename To>
StatusOr<Tensor> ConvertedTo(const Tensor& array) {
  switch (array.dtype()) {
    case DType::kFloat32:
      return ConvertedFrom<To, float>(array);
    case DType::kFloat64:
      return ConvertedFrom<To, double>(array);
    case DType::kInt32:
      return ConvertedFrom<To, int32_t>(array);
    case DType::kInt64:
      return ConvertedFrom<To, int64_t>(array);
    case DType::kUInt8:
      return ConvertedFrom<To, uint8_t>(array);
    case DType::kBool:
      return ConvertedFrom<To, bool>(array);
    case DType::kBFloat16:
    case DType::kFloat16:
      break;
  }
  return InvalidArgument("expected an array of numbers that .npy files hold, got ",
                         Name(array.dtype()));
}

StatusOr<Tensor> Convert(const Tensor& array, DType dtype) {
  if (array.dtype() == dtype) return array;
  switch (dtype) {
    case DType::kFloat32:
      return ConvertedTo<float>(array);
    case DType::kFloat64:
      return ConvertedTo<double>(array);
    case DType::kInt32:
      return ConvertedTo<int32_t>(array);
    case DType::kInt64:
      return ConvertedTo<int64_t>(array);
    case DType::kUInt8:
    case DType::kBool:
    case DType::kBFloat16:
    case DType::kFloat16:
      break;
  }
  return InvalidArgument("expected ", Name(dtype), ", got ", Name(array.dtype()));
}

// Multiplies the numbers by `scale` if they are float32. Like training, does not scale other types.
Tensor Scaled(const Tensor& array, float scale) {
  if (array.dtype() != DType::kFloat32 || scale == 1) return array;
  Tensor scaled(DType::kFloat32, array.shape(), Buffer::Contents::kUndefined);
  std::ranges::transform(array.data<float>(), scaled.data<float>().begin(),
                         [scale](float value) { return value * scale; });
  return scaled;
}

Shape ExampleShape(const Tensor& array) {
  const std::vector<int64_t>& dims = array.shape().dims();
  return Shape({dims.begin() + 1, dims.end()});
}

// Checks that the array has the input's shape and `examples` examples. As in training and in Keras,
// a last axis of length 1 may be missing from the array or from the model.
Status CheckInput(const std::string& name, const Tensor& array, const Shape& expected,
                  int64_t examples) {
  if (array.shape().rank() == 0)
    return InvalidArgument("input ", name, ": expected an array of examples, got a scalar");
  const Shape shape = ExampleShape(array);
  if (model::TakenAs(expected, shape) != expected) {
    return InvalidArgument("input ", name, ": its examples have the shape ", shape.ToString(),
                           ", but the model expects ", expected.ToString());
  }
  if (array.shape().dim(0) == examples) return OkStatus();
  return InvalidArgument("input ", name, " has ", array.shape().dim(0),
                         " examples, but the first input has ", examples);
}

size_t BytesPerExample(const Tensor& array) {
  const int64_t examples = array.shape().dim(0);
  return examples == 0 ? 0 : array.num_bytes() / static_cast<size_t>(examples);
}

}  // namespace

std::vector<std::string> NamesOfInputs(const model::Model& model) {
  std::vector<std::string> names;
  for (int call : model.inputs) names.push_back(model::LayerOf(model, model::ValueRef{call}).name);
  return names;
}

StatusOr<std::vector<Tensor>> OrderInputs(const model::Model& model,
                                          const io::NamedTensors& arrays) {
  const std::vector<std::string> names = NamesOfInputs(model);
  std::vector<std::optional<Tensor>> found(names.size());
  for (const auto& [name, array] : arrays) {
    auto at = std::ranges::find(names, name);
    const bool only = names.size() == 1 && (name.empty() || name == model::kFeatures);
    if (only) at = names.begin();
    if (at == names.end()) {
      if (name.empty()) {
        return InvalidArgument("an array without a name belongs to no input of the model; name ",
                               "one of ", absl::StrJoin(names, ", "));
      }
      return InvalidArgument("array ", name, " belongs to no input of the model",
                             DidYouMean(name, names));
    }
    std::optional<Tensor>& place = found[static_cast<size_t>(at - names.begin())];
    if (place) return InvalidArgument("input ", *at, " is given twice");
    place = array;
  }
  std::vector<Tensor> inputs;
  for (size_t i = 0; i < names.size(); ++i) {
    if (!found[i]) return InvalidArgument("input ", names[i], " is missing");
    inputs.push_back(*std::move(found[i]));
  }
  return inputs;
}

StatusOr<std::vector<model::TensorType>> FeaturesOf(const model::Model& model,
                                                    std::span<const Tensor> inputs) {
  const auto stated = model::StatedInputs(model);
  const bool all_stated =
      std::ranges::all_of(stated, [](const auto& type) { return type.has_value(); });
  if (inputs.empty() && all_stated) return model::ExampleInputs(model);
  std::vector<model::TensorType> features;
  for (size_t i = 0; i < stated.size(); ++i) {
    if (stated[i] && !model::HasAnyLength(stated[i]->shape)) {
      features.push_back(*stated[i]);
    } else if (stated[i] && i < inputs.size() && inputs[i].shape().rank() > 0) {
      features.push_back(
          {stated[i]->dtype, model::TakenAs(stated[i]->shape, ExampleShape(inputs[i]))});
    } else if (i < inputs.size() && inputs[i].shape().rank() > 0) {
      features.push_back({DType::kFloat32, ExampleShape(inputs[i])});
    } else {
      return InvalidArgument("the model does not state the shape of its input ",
                             NamesOfInputs(model)[i], "; add an InputLayer with a batch_shape");
    }
  }
  return features;
}

struct Predictor::State {
  model::Model model;
  std::vector<model::TensorType> features;
  exec::Device device;
  variables::VariableStore store;
  std::map<int64_t, std::unique_ptr<exec::Program>> programs;  // keyed by batch size

  StatusOr<exec::Program*> ForBatchSize(int64_t size) {
    std::unique_ptr<exec::Program>& program = programs[size];
    if (program != nullptr) return program.get();
    const model::BuildOptions options{
        .mode = model::Mode::kPredict, .batch_size = size, .features = features};
    ASSIGN_OR_RETURN(const model::BuiltGraph built, model::Build(model, options));
    exec::CompileOptions compile;
    for (size_t i = 0; i < model.outputs.size(); ++i)
      compile.fetches.push_back(model::PredictionName(model, i));
    ASSIGN_OR_RETURN(program, exec::Compile(built.graph, store, device, compile));
    return program.get();
  }

  // Copies the outputs of the last run to `outputs`, starting at example `first`.
  void Collect(const exec::Program& program, int64_t first, int64_t size,
               io::NamedTensors& outputs) const {
    for (size_t i = 0; i < outputs.size(); ++i) {
      Tensor& output = outputs[i].second;
      const size_t example = BytesPerExample(output);
      const auto bytes = program.FetchBytes(static_cast<int>(i));
      ENFORCE(bytes.size() == static_cast<size_t>(size) * example,
              "outputs of the types that the model declares");
      std::ranges::copy(bytes,
                        output.bytes().subspan(static_cast<size_t>(first) * example).begin());
    }
  }

  // Computes the outputs of the examples [first, first + size) of `inputs`, and stores them in
  // `outputs` from example `to` on.
  Status RunBatch(std::span<const Tensor> inputs, int64_t first, int64_t size, int64_t to,
                  io::NamedTensors& outputs) {
    ASSIGN_OR_RETURN(exec::Program * program, ForBatchSize(size));
    std::vector<exec::Feed> feeds(program->feeds().size());
    const std::vector<std::string> names = model::InputNames(model);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int feed = program->FindFeed(names[i]);
      if (feed < 0) continue;  // no output depends on this input
      const size_t bytes = BytesPerExample(inputs[i]);
      feeds[static_cast<size_t>(feed)] = {
          inputs[i].dtype(), inputs[i].bytes().subspan(static_cast<size_t>(first) * bytes,
                                                       static_cast<size_t>(size) * bytes)};
    }
    RETURN_IF_ERROR(program->Run(feeds));
    Collect(*program, to, size, outputs);
    return OkStatus();
  }
};

Predictor::Predictor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Predictor::~Predictor() = default;

StatusOr<std::unique_ptr<Predictor>> Predictor::Create(const model::Model& model,
                                                       std::vector<model::TensorType> features,
                                                       std::span<const Tensor> values,
                                                       const exec::Device& device) {
  std::unique_ptr<State> state(
      new State{.model = model,
                .features = std::move(features),
                .device = device,
                .store = variables::VariableStore(device.row_stride, device.runtime),
                .programs = {}});
  ASSIGN_OR_RETURN(const std::vector<model::VariableSpec> specs,
                   model::Variables(model, state->features));
  for (size_t i = 0; i < specs.size(); ++i) {
    ASSIGN_OR_RETURN(variables::Variable * variable,
                     state->store.Create(specs[i].name, specs[i].dtype, specs[i].shape,
                                         variables::Kind::kTrainable));
    RETURN_IF_ERROR(variable->FromTensor(values[i]));
  }
  return std::unique_ptr<Predictor>(new Predictor(std::move(state)));
}

StatusOr<std::vector<Tensor>> Predictor::Prepared(std::span<const Tensor> inputs,
                                                  float scale) const {
  const std::vector<std::string> names = NamesOfInputs(state_->model);
  if (inputs.empty() || inputs[0].shape().rank() == 0)
    return InvalidArgument("input ", names[0], ": expected an array of examples");
  std::vector<Tensor> prepared;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const model::TensorType& type = state_->features[i];
    RETURN_IF_ERROR(CheckInput(names[i], inputs[i], type.shape, inputs[0].shape().dim(0)));
    const StatusOr<Tensor> array = Convert(inputs[i], type.dtype);
    if (!array.ok()) return Annotate(array.status(), StrCat("input ", names[i]));
    prepared.push_back(Scaled(*array, scale));
  }
  return prepared;
}

StatusOr<io::NamedTensors> Predictor::Outputs(int64_t examples) const {
  ASSIGN_OR_RETURN(auto types, model::OutputTypes(state_->model, state_->features));
  for (model::TensorType& type : types) type = model::Widened(type);
  const std::vector<std::string> names = model::OutputNames(state_->model);
  const int64_t most = INT64_MAX / 8 / static_cast<int64_t>(types.size());
  size_t bytes = 0;
  for (size_t i = 0; i < types.size(); ++i) {
    const Shape shape = model::Batched(examples, types[i].shape);
    const std::optional<int64_t> elements = shape.CheckedElements();
    if (!elements || *elements > most)
      return InvalidArgument("output ", names[i], " would be too large: ", shape.ToString());
    bytes += static_cast<size_t>(*elements) * SizeOf(types[i].dtype);
  }
  if (bytes > static_cast<size_t>(AvailableMemory())) {
    return ResourceExhausted("the outputs of ", examples, " examples would take ", bytes,
                             " bytes, more than the machine has; predict fewer examples at once");
  }
  io::NamedTensors outputs;
  for (size_t i = 0; i < types.size(); ++i)
    outputs.emplace_back(names[i],
                         Tensor(types[i].dtype, model::Batched(examples, types[i].shape)));
  return outputs;
}

Status Predictor::RunBatch(std::span<const Tensor> batch, int64_t first,
                           io::NamedTensors& outputs) {
  return state_->RunBatch(batch, 0, batch[0].shape().dim(0), first, outputs);
}

StatusOr<io::NamedTensors> Predictor::Run(std::span<const Tensor> inputs, const RunOptions& options,
                                          const StopSource& stop) {
  ASSIGN_OR_RETURN(const std::vector<Tensor> prepared, Prepared(inputs, options.scale));
  const int64_t examples = prepared[0].shape().dim(0);
  // Compile first, so that a program that needs too much memory fails before memory is allocated
  // for the outputs.
  if (examples > 0)
    RETURN_IF_ERROR(state_->ForBatchSize(std::min(options.batch_size, examples)).status());
  ASSIGN_OR_RETURN(io::NamedTensors outputs, Outputs(examples));
  for (int64_t first = 0; first < examples; first += options.batch_size) {
    if (stop.requested()) return Cancelled("the prediction was stopped");
    const int64_t size = std::min(options.batch_size, examples - first);
    RETURN_IF_ERROR(state_->RunBatch(prepared, first, size, first, outputs));
  }
  return outputs;
}

}  // namespace tfjob::inference
