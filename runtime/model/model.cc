#include "runtime/model/model.h"

#include <fnmatch.h>

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/did_you_mean.h"
#include "runtime/model/any_length.h"
#include "runtime/model/apply_layer.h"
#include "runtime/model/nested_model.h"
#include "runtime/model/shape.h"

namespace tfjob::model {
namespace {

using Types = std::vector<std::vector<TensorType>>;

const Layer& LayerOf(const Model& model, const Call& call) {
  return model.layers[static_cast<size_t>(call.layer)];
}

// Returns the index of the model input that a call without inputs reads.
size_t InputOf(const Model& model, int call) {
  const auto found = std::ranges::find(model.inputs, call);
  return static_cast<size_t>(found - model.inputs.begin());
}

const TensorType& TypeOf(const Types& types, const ValueRef& value) {
  return types[static_cast<size_t>(value.call)][static_cast<size_t>(value.output)];
}

std::vector<TensorType> InputTypes(const Model& model, const Types& types, int call,
                                   std::span<const TensorType> in) {
  const Call& at = model.calls[static_cast<size_t>(call)];
  if (at.inputs.empty()) return {in[InputOf(model, call)]};
  std::vector<TensorType> inputs;
  for (const ValueRef& input : at.inputs) inputs.push_back(TypeOf(types, input));
  return inputs;
}

Status CheckOutput(const Model& model, const Types& types, const ValueRef& value) {
  const size_t count = types[static_cast<size_t>(value.call)].size();
  if (static_cast<size_t>(value.output) < count) return OkStatus();
  return InvalidArgument(Describe(LayerOf(model, value)), " has no output number ", value.output,
                         ": it has ", count);
}

// Describes the layers that produce the inputs of a call, for error messages.
std::string GiversOf(const Model& model, const Call& call) {
  if (call.inputs.empty()) return "the data";
  std::string givers;
  for (const ValueRef& input : call.inputs) {
    givers += (givers.empty() ? "" : " and ") + Describe(LayerOf(model, input));
  }
  return givers;
}

// Returns an error if a mask is not bool, or if its axes are not the first axes of its input.
Status CheckMasks(const Model& model, const Types& types, const Call& call,
                  std::span<const TensorType> in) {
  for (size_t i = 0; i < call.masks.size(); ++i) {
    const ValueRef& mask = call.masks[i];
    if (mask.call < 0) continue;
    RETURN_IF_ERROR(CheckOutput(model, types, mask));
    const TensorType& type = TypeOf(types, mask);
    const std::vector<int64_t>&dims = type.shape.dims(), &wanted = in[i].shape.dims();
    const bool fits = type.dtype == DType::kBool && dims.size() <= wanted.size() &&
                      std::equal(dims.begin(), dims.end(), wanted.begin());
    if (fits) continue;
    return InvalidArgument(Describe(LayerOf(model, call)), ": expected as mask a bool with the ",
                           "first axes of ", in[i].ToString(), ", got ", type.ToString(), " from ",
                           Describe(LayerOf(model, mask)));
  }
  return OkStatus();
}

// Rejects shapes with more than 2^40 elements (4 TiB of floats). Sizes come from a file, so they
// may be absurdly large, or overflow.
Status CheckSize(const Shape& shape) {
  constexpr int64_t kMaxElements = int64_t{1} << 40;
  int64_t elements = 1;
  for (int64_t dim : shape.dims()) {
    if (dim < 0) return InvalidArgument("shape ", shape.ToString(), " has an unknown length");
    const bool overflow = __builtin_mul_overflow(elements, dim, &elements);
    if (overflow || elements > kMaxElements) {
      return InvalidArgument("shape ", shape.ToString(), " is too large: more than 2^40 elements");
    }
  }
  return OkStatus();
}

// Prepends the name of the layer to the names of its variables.
std::vector<VariableSpec> OfLayer(const Layer& layer, std::vector<VariableSpec> variables) {
  for (VariableSpec& variable : variables) {
    variable.name = StrCat(layer.name, "/", variable.name);
    variable.InLayer(layer.trainable, layer.frozen_from_outside);
  }
  return variables;
}

std::vector<VariableSpec> VariablesOf(const Model& model, const Call& call,
                                      std::span<const TensorType> in) {
  return OfLayer(LayerOf(model, call), VariablesOfConfig(ConfigOf(model, call), in));
}

// Checks the variables of the called layer. Skips nested models, which check their variables
// themselves.
Status CheckVariables(const Model& model, const Call& call, std::span<const TensorType> in) {
  if (ConfigOf(model, call).As<NestedModel>() != nullptr) return OkStatus();
  for (const VariableSpec& variable : VariablesOf(model, call, in)) {
    Status status = CheckSize(variable.shape);
    if (status.ok()) status = CheckShape(variable.initializer, variable.shape);
    if (status.ok()) status = CheckShape(variable.rules.regularizer, variable.shape);
    if (status.ok()) {
      const optimizer::Constraint& constraint = variable.rules.constraint;
      status = Annotate(Validate(constraint, variable.shape),
                        StrCat("constraint ", Name(constraint.kind)));
    }
    RETURN_IF_ERROR(Annotate(status, StrCat("variable ", variable.name)));
  }
  return OkStatus();
}

Status CheckActivityRegularizer(const Layer& layer, const TensorType& output) {
  if (!layer.activity_regularizer.present()) return OkStatus();
  const TensorType wide = Widened(output);
  Status status = ExpectOneInput({&wide, 1}, /*any_dtype=*/false);
  // Reject OrthogonalRegularizer: it would compare all examples of a batch, but the batch size may
  // differ between steps.
  if (status.ok() && layer.activity_regularizer.kind == Regularizer::Kind::kOrthogonal)
    status = Unimplemented("OrthogonalRegularizer is supported for variables only");
  return Annotate(status, StrCat(Describe(layer), ": activity_regularizer"));
}

// Returns the output types of a call. If `first` is set, that is, for the layer's first call, also
// checks the layer's variables and its stated input.
StatusOr<std::vector<TensorType>> TypesAfter(const Model& model, const Call& call, bool first,
                                             std::span<const TensorType> in) {
  const Layer& layer = LayerOf(model, call);
  const LayerConfig& config = ConfigOf(model, call);
  std::vector<TensorType> cast;
  for (const TensorType& type : in) cast.push_back(WithoutDouble(config, type));
  StatusOr<std::vector<TensorType>> types = TypesAfterLayer(layer, config, cast);
  if (types.ok() && first && layer.stated_input && !FitsStated(*layer.stated_input, in[0].shape)) {
    types = InvalidArgument("expected examples of shape ", StatedText(*layer.stated_input),
                            ", as its input shape says, got ", in[0].shape.ToString());
  }
  if (!types.ok()) {
    return Annotate(types.status(),
                    StrCat(Describe(layer), " does not fit after ", GiversOf(model, call)));
  }
  for (const TensorType& type : *types) {
    RETURN_IF_ERROR(Annotate(CheckSize(type.shape), Describe(layer)));
    RETURN_IF_ERROR(CheckActivityRegularizer(layer, type));
  }
  if (first) RETURN_IF_ERROR(CheckVariables(model, call, in));
  return types;
}

std::string Padded(std::string text, size_t width) {
  text.resize(std::max(width, text.size() + 1), ' ');
  return text;
}

int64_t Parameters(const std::vector<VariableSpec>& variables) {
  int64_t count = 0;
  for (const VariableSpec& variable : variables) count += variable.shape.num_elements();
  return count;
}

std::string ShapesOf(const std::vector<TensorType>& types) {
  std::string text;
  for (const TensorType& type : types) text += (text.empty() ? "" : " ") + type.shape.ToString();
  return text;
}

}  // namespace

Model Sequential(std::string name, std::vector<Layer> layers) {
  Model model{.name = std::move(name), .layers = std::move(layers)};
  for (int i = 0; i < static_cast<int>(model.layers.size()); ++i) {
    model.calls.push_back({.layer = i});
    if (i > 0) model.calls.back().inputs.push_back({i - 1, 0});
  }
  model.inputs = {0};
  model.outputs = {{static_cast<int>(model.layers.size()) - 1, 0}};
  return model;
}

std::string Describe(const Layer& layer) {
  return StrCat("layer ", layer.name, " (", layer.config.class_name(), ")");
}

std::vector<VariableSpec> VariablesOf(const Layer& layer, std::span<const TensorType> in) {
  return OfLayer(layer, VariablesOfConfig(layer.config, in));
}

const Layer& LayerOf(const Model& model, const ValueRef& value) {
  return LayerOf(model, model.calls[static_cast<size_t>(value.call)]);
}

const LayerConfig& ConfigOf(const Model& model, const Call& call) {
  return call.config ? *call.config : LayerOf(model, call).config;
}

std::vector<TensorType> Features(Shape shape) {
  return {{DType::kFloat32, std::move(shape)}};
}

std::vector<std::string> InputNames(const Model& model) {
  if (model.inputs.size() == 1) return {kFeatures};
  std::vector<std::string> names;
  for (int call : model.inputs) names.push_back(LayerOf(model, ValueRef{call}).name);
  return names;
}

std::vector<std::string> OutputNames(const Model& model) {
  std::vector<std::string> names;
  std::map<std::string, int> counts;
  std::set<std::string> taken;
  for (const ValueRef& output : model.outputs) {
    const std::string& base = LayerOf(model, output).name;
    std::string name;
    do {
      const int number = counts[base]++;
      name = number == 0 ? base : StrCat(base, "_", number);
    } while (!taken.insert(name).second);
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::optional<TensorType>> StatedInputs(const Model& model) {
  std::vector<std::optional<TensorType>> stated;
  for (int call : model.inputs) {
    const Layer& layer = LayerOf(model, ValueRef{call});
    stated.emplace_back();
    if (const auto* input = layer.config.As<layers::InputLayer>()) {
      stated.back() = TensorType{input->dtype, input->shape};
    } else if (layer.stated_input) {
      stated.back() = TensorType{DType::kFloat32, *layer.stated_input};
    }
  }
  return stated;
}

namespace {

// Returns the variables of all layers, given the output types of all calls.
std::vector<VariableSpec> VariablesOfCalls(const Model& model, const Types& types,
                                           std::span<const TensorType> in) {
  std::vector<VariableSpec> variables;
  std::vector<bool> seen(model.layers.size());
  for (int call = 0; call < static_cast<int>(model.calls.size()); ++call) {
    const Call& at = model.calls[static_cast<size_t>(call)];
    const auto layer = static_cast<size_t>(at.layer);
    if (seen[layer]) continue;
    seen[layer] = true;
    for (VariableSpec& variable : VariablesOf(model, at, InputTypes(model, types, call, in))) {
      variables.push_back(std::move(variable));
    }
  }
  return variables;
}

bool Matches(const FrozenVariables& frozen, const VariableSpec& variable) {
  return fnmatch(frozen.pattern.c_str(), variable.name.c_str(), 0) == 0;
}

Status CheckFrozen(const Model& model, const Types& types, std::span<const TensorType> in) {
  if (model.frozen.empty()) return OkStatus();
  const std::vector<VariableSpec> variables = VariablesOfCalls(model, types, in);
  for (const FrozenVariables& frozen : model.frozen) {
    const bool used = std::ranges::any_of(
        variables, [&](const VariableSpec& variable) { return Matches(frozen, variable); });
    if (used || frozen.optional) continue;
    std::vector<std::string> names;
    for (const Layer& layer : model.layers) names.push_back(layer.name);
    for (const VariableSpec& variable : variables) names.push_back(variable.name);
    return InvalidArgument("model.frozen: \"", frozen.pattern,
                           "\" matches no layer and no variable",
                           DidYouMean(frozen.pattern, names));
  }
  return OkStatus();
}

}  // namespace

StatusOr<Types> CallTypes(const Model& model, std::span<const TensorType> in) {
  if (in.size() != model.inputs.size()) {
    return InvalidArgument("model ", model.name, " has ", model.inputs.size(),
                           " inputs, but the data provide ", in.size());
  }
  for (const TensorType& type : in) RETURN_IF_ERROR(Annotate(CheckSize(type.shape), "the data"));
  Types types;
  std::vector<bool> called(model.layers.size());
  for (int call = 0; call < static_cast<int>(model.calls.size()); ++call) {
    const Call& at = model.calls[static_cast<size_t>(call)];
    for (const ValueRef& input : at.inputs) RETURN_IF_ERROR(CheckOutput(model, types, input));
    const std::vector<TensorType> before = InputTypes(model, types, call, in);
    RETURN_IF_ERROR(CheckMasks(model, types, at, before));
    ASSIGN_OR_RETURN(std::vector<TensorType> after,
                     TypesAfter(model, at, !called[static_cast<size_t>(at.layer)], before));
    if (model.sequential && after.size() != 1) {
      return InvalidArgument(Describe(LayerOf(model, at)), " has ", after.size(),
                             " outputs; a layer of a Sequential model has one");
    }
    called[static_cast<size_t>(at.layer)] = true;
    types.push_back(std::move(after));
  }
  RETURN_IF_ERROR(CheckFrozen(model, types, in));
  return types;
}

StatusOr<std::vector<TensorType>> OutputTypes(const Model& model, std::span<const TensorType> in) {
  ASSIGN_OR_RETURN(const Types types, CallTypes(model, in));
  std::vector<TensorType> outputs;
  for (const ValueRef& output : model.outputs) {
    RETURN_IF_ERROR(CheckOutput(model, types, output));
    outputs.push_back(TypeOf(types, output));
  }
  return outputs;
}

StatusOr<std::vector<VariableSpec>> Variables(const Model& model, std::span<const TensorType> in) {
  ASSIGN_OR_RETURN(const Types types, CallTypes(model, in));
  std::vector<VariableSpec> variables = VariablesOfCalls(model, types, in);
  for (VariableSpec& variable : variables) {
    variable.frozen_by_name =
        variable.frozen_by_name ||
        std::ranges::any_of(model.frozen, [&](const auto& it) { return Matches(it, variable); });
  }
  return variables;
}

namespace {

// Returns "", " (frozen)", or the layer's variables that are frozen by their names.
std::string FrozenText(const Layer& layer, const std::vector<VariableSpec>& all) {
  if (!layer.trainable) return " (frozen)";
  std::string names;
  for (const VariableSpec& variable : all) {
    if (!variable.frozen_by_name || !variable.name.starts_with(layer.name + "/")) continue;
    names += StrCat(names.empty() ? "" : ", ", variable.name.substr(layer.name.size() + 1));
  }
  return names.empty() ? "" : StrCat(" (frozen: ", names, ")");
}

}  // namespace

StatusOr<std::string> Summary(const Model& model, std::span<const TensorType> in) {
  ASSIGN_OR_RETURN(const Types types, CallTypes(model, in));
  ASSIGN_OR_RETURN(const std::vector<VariableSpec> all, Variables(model, in));
  std::string text = StrCat("Model ", model.name);
  const std::vector<std::string> names = InputNames(model);
  for (size_t i = 0; i < names.size(); ++i)
    text += StrCat(", ", names[i], " ", in[i].shape.ToString());
  text += "\n";
  for (int call = 0; call < static_cast<int>(model.calls.size()); ++call) {
    const Layer& layer = LayerOf(model, ValueRef{call});
    const std::vector<VariableSpec> own = VariablesOf(model, model.calls[static_cast<size_t>(call)],
                                                      InputTypes(model, types, call, in));
    text += Padded(StrCat(layer.name, " (", layer.config.class_name(), ")"), 32) +
            Padded(ShapesOf(types[static_cast<size_t>(call)]), 16) +
            StrCat(Parameters(own), FrozenText(layer, all), "\n");
  }
  return text + StrCat("Parameters: ", Parameters(all), "\n");
}

}  // namespace tfjob::model
