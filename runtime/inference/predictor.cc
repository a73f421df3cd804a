#include "runtime/inference/predictor.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/exec/program.h"
#include "runtime/model/build.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::inference {
namespace {

bool IsFloat(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64;
}

template <typename To, typename From>
void Copy(std::span<const From> from, std::span<To> to) {
  std::ranges::transform(from, to.begin(), [](From value) { return static_cast<To>(value); });
}

template <typename To>
Tensor ConvertedTo(const Tensor& array) {
  Tensor made(DTypeOf<To>::value, array.shape(), Buffer::Contents::kUndefined);
  const std::span<To> to = made.data<To>();
  switch (array.dtype()) {
    case DType::kFloat32:
      Copy<To>(array.data<float>(), to);
      break;
    case DType::kFloat64:
      Copy<To>(array.data<double>(), to);
      break;
    case DType::kInt32:
      Copy<To>(array.data<int32_t>(), to);
      break;
    case DType::kInt64:
      Copy<To>(array.data<int64_t>(), to);
      break;
    case DType::kUInt8:
      Copy<To>(array.data<uint8_t>(), to);
      break;
    case DType::kBool:
      Copy<To>(array.data<bool>(), to);
      break;
  }
  return made;
}

StatusOr<Tensor> Convert(const Tensor& array, DType dtype) {
  if (array.dtype() == dtype) return array;
  if (IsFloat(array.dtype()) && !IsFloat(dtype)) {
    return InvalidArgument("expected ", Name(dtype), ", got ", Name(array.dtype()),
                           "; convert the array to integers first");
  }
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
      break;
  }
  return InvalidArgument("expected ", Name(dtype), ", got ", Name(array.dtype()));
}

Shape ExampleShape(const Tensor& array) {
  const std::vector<int64_t>& dims = array.shape().dims();
  return Shape({dims.begin() + 1, dims.end()});
}

Status CheckInput(const std::string& name, const Tensor& array, const Shape& expected,
                  int64_t examples) {
  if (array.shape().rank() == 0)
    return InvalidArgument("input ", name, ": expected an array of examples, got a scalar");
  if (ExampleShape(array) != expected) {
    return InvalidArgument("input ", name, ": its examples have the shape ",
                           ExampleShape(array).ToString(), ", but the model expects ",
                           expected.ToString());
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
  std::vector<model::TensorType> features;
  for (size_t i = 0; i < stated.size(); ++i) {
    if (stated[i]) {
      features.push_back(*stated[i]);
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
  std::map<int64_t, std::unique_ptr<exec::Program>> programs;  // by batch size

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

  // Copies the outputs of the last run to the examples from `first` on.
  void Collect(const exec::Program& program, int64_t first, io::NamedTensors& outputs) const {
    for (size_t i = 0; i < outputs.size(); ++i) {
      Tensor& output = outputs[i].second;
      const auto bytes = program.FetchBytes(static_cast<int>(i));
      std::ranges::copy(
          bytes, output.bytes().begin() + static_cast<std::ptrdiff_t>(first) *
                                              static_cast<std::ptrdiff_t>(BytesPerExample(output)));
    }
  }

  Status RunBatch(std::span<const Tensor> inputs, int64_t first, int64_t size,
                  io::NamedTensors& outputs) {
    ASSIGN_OR_RETURN(exec::Program * program, ForBatchSize(size));
    std::vector<exec::Feed> feeds(program->feeds().size());
    const std::vector<std::string> names = model::InputNames(model);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int feed = program->FindFeed(names[i]);
      if (feed < 0) continue;  // an input that no output depends on
      const size_t bytes = BytesPerExample(inputs[i]);
      feeds[static_cast<size_t>(feed)] = {
          inputs[i].dtype(), inputs[i].bytes().subspan(static_cast<size_t>(first) * bytes,
                                                       static_cast<size_t>(size) * bytes)};
    }
    RETURN_IF_ERROR(program->Run(feeds));
    Collect(*program, first, outputs);
    return OkStatus();
  }
};

Predictor::Predictor(std::unique_ptr<State> state) : state_(std::move(state)) {}
Predictor::~Predictor() = default;

StatusOr<std::unique_ptr<Predictor>> Predictor::Create(const model::Model& model,
                                                       std::vector<model::TensorType> features,
                                                       std::span<const Tensor> values,
                                                       const exec::Device& device) {
  std::unique_ptr<State> state(new State{.model = model,
                                         .features = std::move(features),
                                         .device = device,
                                         .store = variables::VariableStore(device.row_stride),
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

StatusOr<io::NamedTensors> Predictor::Run(std::span<const Tensor> inputs, int64_t batch_size) {
  State& s = *state_;
  const std::vector<std::string> names = NamesOfInputs(s.model);
  if (inputs.empty() || inputs[0].shape().rank() == 0)
    return InvalidArgument("input ", names[0], ": expected an array of examples");
  const int64_t examples = inputs[0].shape().dim(0);
  std::vector<Tensor> converted;
  for (size_t i = 0; i < inputs.size(); ++i) {
    RETURN_IF_ERROR(CheckInput(names[i], inputs[i], s.features[i].shape, examples));
    StatusOr<Tensor> array = Convert(inputs[i], s.features[i].dtype);
    if (!array.ok()) return Annotate(array.status(), StrCat("input ", names[i]));
    converted.push_back(*std::move(array));
  }
  ASSIGN_OR_RETURN(const auto types, model::OutputTypes(s.model, s.features));
  const std::vector<std::string> output_names = model::OutputNames(s.model);
  io::NamedTensors outputs;
  for (size_t i = 0; i < types.size(); ++i) {
    const Shape shape = model::Batched(examples, types[i].shape);
    const std::optional<int64_t> elements = shape.CheckedElements();
    if (!elements || *elements > INT64_MAX / 8)
      return InvalidArgument("output ", output_names[i], " would be too large: ", shape.ToString());
    outputs.emplace_back(output_names[i], Tensor(types[i].dtype, shape));
  }
  for (int64_t first = 0; first < examples; first += batch_size)
    RETURN_IF_ERROR(s.RunBatch(converted, first, std::min(batch_size, examples - first), outputs));
  return outputs;
}

}  // namespace tfjob::inference
