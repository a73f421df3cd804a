#include "runtime/model/keras_layer.h"

#include <algorithm>
#include <cctype>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/base/did_you_mean.h"
#include "runtime/model/any_length.h"
#include "runtime/model/argument_reader.h"
#include "runtime/model/argument_writer.h"
#include "runtime/model/keras.h"
#include "runtime/model/layer/constraint.h"
#include "runtime/model/layer/regularizer.h"
#include "runtime/model/layer_table.h"
#include "runtime/model/layers/categories.h"
#include "runtime/model/layers/embedding.h"
#include "runtime/model/layers/multi_head_attention.h"
#include "runtime/model/layers/noise.h"
#include "runtime/model/nested_model.h"
#include "runtime/model/operations/custom_layer.h"
#include "runtime/model/operations/operation.h"
#include "runtime/model/shape.h"
#include "runtime/model/wrapped_layers.h"

namespace tfjob::model {
namespace {

constexpr size_t kLongestName = 256;

Status CheckName(const std::string& name, const JsonField& field) {
  for (char c : name) {
    const bool fine =
        std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
    if (!fine) return field.Mismatch("a name of letters, digits, '_', '-' and '.'");
  }
  if (name.empty() || name.size() > kLongestName)
    return field.Mismatch("a name of 1 to 256 characters");
  return OkStatus();
}

// Reads the description of the first layer's input that Keras 2 writes.
Status ReadStatedInput(Arguments& arguments, Layer& layer) {
  if (layer.config.As<layers::Embedding>() != nullptr) {
    // Ignore the stated shape: an Embedding accepts lists of any length, which tf.keras 2 writes as
    // null. Do not read input_dim here, because it is the number of rows of the Embedding's table.
    arguments.Ignore("batch_input_shape");
    arguments.Ignore("input_shape");
    return OkStatus();
  }
  RETURN_IF_ERROR(arguments.ReadBatchShape("batch_input_shape", layer.stated_input));
  RETURN_IF_ERROR(arguments.ReadShape("input_shape", layer.stated_input));
  int64_t dim = 0;
  RETURN_IF_ERROR(arguments.Read("input_dim", dim));
  if (dim > 0) layer.stated_input = Shape({dim});
  return OkStatus();
}

// Reads the input shape that Keras 3 built the layer for. Returns nullopt if the form is unknown.
std::optional<Shape> ReadBuildShape(const JsonField& field) {
  if (!field.present() || !field.value()->is_array() || field.value()->empty()) return std::nullopt;
  std::vector<int64_t> dims;
  for (size_t i = 1; i < field.value()->size(); ++i) {
    const StatusOr<int64_t> dim = field[i].Int();
    if (!dim.ok() || *dim < 1) return std::nullopt;
    dims.push_back(*dim);
  }
  return Shape(std::move(dims));
}

// Returns whether the layer class lists the argument activity_regularizer. If it does not,
// ReadCommon reads this argument.
bool ListsActivityRegularizer(const LayerConfig& layer) {
  return layer.As<layers::MultiHeadAttention>() != nullptr;
}

// Reads the dtype policy in a form of Keras 3 or tf.keras 2: a name, or an object that contains the
// name.
Status ReadPolicy(Arguments& arguments, Layer& layer) {
  const JsonField dtype = arguments["dtype"];
  const JsonField name = dtype["config"]["name"].present() ? dtype["config"]["name"] : dtype;
  if (!name.present()) return OkStatus();
  const std::string text = name.String().value_or("");
  layer.policy = ParseDTypePolicy(text);
  if (layer.policy) return OkStatus();
  const bool half = text == "bfloat16" || text == "float16";
  const std::string advice = half ? StrCat(": the variables would be ", text, "; use mixed_", text,
                                           ", which keeps them in float32")
                                  : "; only float32, mixed_bfloat16 and mixed_float16 are";
  return InvalidArgument(arguments.subject(), ": ", name.path(), ": dtype ",
                         DescribeJson(*name.value()), " is not supported", advice);
}

// Reads the fields that every layer's config may contain.
Status ReadCommon(Arguments& arguments, Layer& layer) {
  RETURN_IF_ERROR(arguments.Read("trainable", layer.trainable));
  if (layer.config.As<layers::InputLayer>() != nullptr) return OkStatus();
  RETURN_IF_ERROR(ReadPolicy(arguments, layer));
  if (!ListsActivityRegularizer(layer.config)) {
    const JsonField regularizer = arguments["activity_regularizer"];
    if (regularizer.present()) {
      auto read = ReadRegularizer(regularizer);
      if (!read.ok()) return arguments.Named(read.status());
      layer.activity_regularizer = *read;
    }
  }
  return ReadStatedInput(arguments, layer);
}

Status UnsupportedClass(const JsonField& field, const std::string& class_name) {
  if (class_name == "Lambda") {
    return InvalidArgument(field.path(), ": a Lambda layer holds Python code, which is not run; ",
                           "replace it by layers, and save the model again");
  }
  return InvalidArgument(field.path(), ": layer class ", class_name, " is not supported",
                         DidYouMean(class_name, LayerClasses()));
}

StatusOr<Shape> ReadVariableShape(const JsonField& field) {
  constexpr size_t kMostAxes = 8;
  constexpr int64_t kMostElements = int64_t{1} << 40;
  ASSIGN_OR_RETURN(const std::vector<JsonField> lengths, field.Elements());
  std::vector<int64_t> dims;
  int64_t elements = 1;
  for (const JsonField& length : lengths) {
    ASSIGN_OR_RETURN(const int64_t dim, length.Int());
    if (dim < 1) return length.Mismatch("a length of at least 1");
    if (dim > kMostElements / elements || dims.size() == kMostAxes)
      return field.Mismatch("a shape of at most 8 axes and 2^40 elements");
    elements *= dim;
    dims.push_back(dim);
  }
  return Shape(std::move(dims));
}

StatusOr<VariableSpec> ReadLayerVariable(const JsonField& field) {
  VariableSpec variable;
  ASSIGN_OR_RETURN(variable.name, field["name"].String());
  ASSIGN_OR_RETURN(variable.shape, ReadVariableShape(field["shape"]));
  ASSIGN_OR_RETURN(variable.trainable, field["trainable"].BoolOr(true));
  ASSIGN_OR_RETURN(variable.initializer, ReadInitializer(field["initializer"]));
  if (const JsonField regularizer = field["regularizer"]; regularizer.present()) {
    ASSIGN_OR_RETURN(variable.rules.regularizer, ReadRegularizer(regularizer));
  }
  if (const JsonField constraint = field["constraint"]; constraint.present()) {
    ASSIGN_OR_RETURN(variable.rules.constraint, ReadConstraint(constraint));
  }
  return variable;
}

// Adds the calls of the body to the layer, whose variables have already been read.
Status AddSteps(const Model& body, layers::CustomLayer& layer) {
  const size_t given = body.inputs.size();
  if (body.sequential || body.outputs.size() != 1 || given <= layer.variables.size()) {
    return InvalidArgument("expected a functional model whose inputs are those of the layer, ",
                           "followed by its variables, and one output");
  }
  layer.inputs = given - layer.variables.size();
  std::vector<size_t> values;  // the value that each call computes
  for (const Call& call : body.calls) {
    if (call.inputs.empty()) {
      const auto number = static_cast<int>(values.size());
      const auto found = std::ranges::find(body.inputs, number);
      if (found == body.inputs.end())
        return InvalidArgument("an output depends on an input that is not among `input_layers`");
      values.push_back(static_cast<size_t>(found - body.inputs.begin()));
      continue;
    }
    const Layer& part = body.layers[static_cast<size_t>(call.layer)];
    const auto* operation = ConfigOf(body, call).As<layers::Operation>();
    if (operation == nullptr) {
      return InvalidArgument("expected only operations, got ", Describe(part), "; a layer that ",
                             "consists of other layers is a model");
    }
    layers::CustomLayer::Step step{.name = part.name, .operation = *operation};
    for (const ValueRef& input : call.inputs) {
      step.inputs.push_back({.value = values[static_cast<size_t>(input.call)],
                             .output = static_cast<size_t>(input.output)});
    }
    values.push_back(given + layer.steps.size());
    layer.steps.push_back(std::move(step));
  }
  const ValueRef& output = body.outputs[0];
  layer.output = {.value = values[static_cast<size_t>(output.call)],
                  .output = static_cast<size_t>(output.output)};
  return OkStatus();
}

StatusOr<layers::CustomLayer> ReadCustomLayer(const JsonField& arguments) {
  layers::CustomLayer layer;
  ASSIGN_OR_RETURN(const auto variables, arguments["variables"].Elements());
  for (const JsonField& variable : variables) {
    ASSIGN_OR_RETURN(layer.variables.emplace_back(), ReadLayerVariable(variable));
  }
  RETURN_IF_ERROR(Annotate(CheckVariables(layer), arguments.path()));
  const JsonField body = arguments["body"];
  ASSIGN_OR_RETURN(const Model steps, ReadModel(body));
  RETURN_IF_ERROR(Annotate(AddSteps(steps, layer), body.path()));
  layer.body = std::make_shared<const Json>(*body.value());
  return layer;
}

StatusOr<Layer> ReadConfigured(const JsonField& field, const ClassForm& form) {
  if (IsModelClass(form.class_name)) {
    ASSIGN_OR_RETURN(Model nested, ReadModel(field));
    return Layer{.config = NestedModel{std::make_shared<const Model>(std::move(nested))}};
  }
  const std::string module = field["module"].StringOr("").value_or("");
  if (module.starts_with("keras.src.ops.")) {
    const std::optional<layers::Operation> made = layers::MakeOperation(module, form.class_name);
    if (made) return Layer{.config = *made};
    return InvalidArgument(field.path(), ": the function ", form.class_name, " of ", module,
                           " is not supported",
                           DidYouMean(form.class_name, layers::OperationClasses()));
  }
  const std::string registered = field["registered_name"].StringOr("").value_or("");
  if (registered == layers::CustomLayer::kRegistered) {
    ASSIGN_OR_RETURN(layers::CustomLayer layer, ReadCustomLayer(form.arguments));
    return Layer{.config = std::move(layer)};
  }
  const std::optional<LayerConfig> config = MakeLayer(form.class_name);
  if (!config || registered.find('>') != std::string::npos)
    return UnsupportedClass(field, form.class_name);
  return Layer{.config = *config};
}

// Reads the arguments of a layer whose name is already set.
Status ReadArguments(const ClassForm& form, Layer& layer) {
  Arguments arguments(Describe(layer), form.arguments);
  arguments.Ignore("name");
  if (layer.config.As<layers::CustomLayer>() != nullptr) {
    for (const char* name : {"variables", "body"}) arguments.Ignore(name);
  }
  // Functions of keras.ops do not have the arguments that all layers have in common.
  if (layer.config.As<layers::Operation>() == nullptr)
    RETURN_IF_ERROR(ReadCommon(arguments, layer));
  ArgumentReader reader(arguments);
  layer.config = layer.config.Visited(reader);
  RETURN_IF_ERROR(reader.status());
  RETURN_IF_ERROR(SharePolicy(layer));
  return arguments.Finish();
}

}  // namespace

// Follows Keras' rule: a word starts at a capital letter that is next to a lower-case letter.
std::string SnakeCase(std::string_view name) {
  const auto upper = [&](size_t i) {
    return i < name.size() && std::isupper(static_cast<unsigned char>(name[i]));
  };
  const auto lower = [&](size_t i) {
    return i < name.size() && std::islower(static_cast<unsigned char>(name[i]));
  };
  std::string snake;
  for (size_t i = 0; i < name.size(); ++i) {
    if (i > 0 && upper(i) && (lower(i - 1) || lower(i + 1))) snake += '_';
    snake += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return snake;
}

std::string LayerNames::Next(std::string_view class_name) {
  std::string base = SnakeCase(class_name);
  const int number = counts_[base]++;
  return number == 0 ? base : StrCat(base, "_", number);
}

Status LayerNames::Take(const std::string& name, const JsonField& field) {
  if (taken_.insert(name).second) return OkStatus();
  return InvalidArgument(field.path(), ": two layers are called \"", name,
                         "\"; give each its own name");
}

StatusOr<Layer> ReadLayer(const JsonField& field, LayerNames& names) {
  ASSIGN_OR_RETURN(ClassForm form, ReadClassForm(field, "a layer"));
  ASSIGN_OR_RETURN(Layer layer, ReadConfigured(field, form));
  const JsonField name = form.arguments["name"];
  if (name.present()) {
    ASSIGN_OR_RETURN(layer.name, name.String());
    RETURN_IF_ERROR(CheckName(layer.name, name));
  } else {
    layer.name = names.Next(form.class_name);
  }
  RETURN_IF_ERROR(names.Take(layer.name, field));
  if (layer.config.As<NestedModel>() != nullptr) {
    ASSIGN_OR_RETURN(layer.trainable, form.arguments["trainable"].BoolOr(true));
    return layer;
  }
  RETURN_IF_ERROR(ReadArguments(form, layer));
  const std::optional<Shape> built = ReadBuildShape(form.stated);
  if (built && !layer.stated_input) layer.stated_input = built;
  return layer;
}

Json BatchShape(const Shape& example) {
  Json dims = Json::array({nullptr});
  for (int64_t dim : example.dims()) dims.push_back(dim == kAnyLength ? Json() : Json(dim));
  return dims;
}

Json WriteDTypePolicy(DTypePolicy policy) {
  return {{"module", "keras"},
          {"class_name", "DTypePolicy"},
          {"config", {{"name", std::string(Name(policy))}}},
          {"registered_name", nullptr}};
}

namespace {

// Returns whether the Keras class accepts the argument `trainable`; some classes do not.
bool TakesTrainable(const LayerConfig& layer) {
  return layer.As<layers::InputLayer>() == nullptr &&
         layer.As<layers::Discretization>() == nullptr &&
         layer.As<layers::SpatialDropout1D>() == nullptr &&
         layer.As<layers::SpatialDropout2D>() == nullptr &&
         layer.As<layers::SpatialDropout3D>() == nullptr;
}

}  // namespace

namespace {

Json WriteLayerVariable(const VariableSpec& variable) {
  Json json = {{"name", variable.name}, {"shape", variable.shape.dims()}};
  json["initializer"] = WriteInitializer(variable.initializer);
  if (variable.rules.regularizer.present())
    json["regularizer"] = WriteRegularizer(variable.rules.regularizer);
  if (variable.rules.constraint.present())
    json["constraint"] = WriteConstraint(variable.rules.constraint);
  json["trainable"] = variable.trainable;
  return json;
}

Json WriteArguments(const layers::CustomLayer& layer) {
  Json variables = Json::array();
  for (const VariableSpec& variable : layer.variables)
    variables.push_back(WriteLayerVariable(variable));
  return {{"variables", std::move(variables)}, {"body", *layer.body}};
}

}  // namespace

Json WriteLayer(const Layer& layer) {
  if (const auto* nested = layer.config.As<NestedModel>()) {
    Json json = WriteModel(*nested->model);
    json["config"]["name"] = layer.name;
    // Write `trainable` only if it is false: Keras would apply a true value to every layer of the
    // nested model.
    json["config"].erase("trainable");
    if (!layer.trainable) json["config"]["trainable"] = false;
    return json;
  }
  Json config = Json::object();
  ArgumentWriter writer(config);
  layer.config.Visited(writer);
  const auto* custom = layer.config.As<layers::CustomLayer>();
  if (custom != nullptr) config = WriteArguments(*custom);
  config["name"] = layer.name;
  if (const auto* operation = layer.config.As<layers::Operation>()) {
    return {{"module", StrCat("keras.src.ops.", operation->module())},
            {"class_name", std::string(operation->class_name())},
            {"config", std::move(config)},
            {"registered_name", std::string(operation->class_name())}};
  }
  if (layer.config.As<layers::InputLayer>() == nullptr) {
    config["dtype"] = WriteDTypePolicy(layer.policy.value_or(DTypePolicy::kFloat32));
  }
  if (TakesTrainable(layer.config)) config["trainable"] = layer.trainable;
  // If there is no regularizer, Keras omits the argument or writes null.
  if (layer.activity_regularizer.present())
    config["activity_regularizer"] = WriteRegularizer(layer.activity_regularizer);
  Json json = {{"module", "keras.layers"},
               {"class_name", std::string(layer.config.class_name())},
               {"config", std::move(config)},
               {"registered_name", nullptr}};
  if (custom != nullptr) {
    json["module"] = nullptr;
    json["registered_name"] = layers::CustomLayer::kRegistered;
  }
  if (layer.stated_input) json["build_config"] = {{"input_shape", BatchShape(*layer.stated_input)}};
  return json;
}

}  // namespace tfjob::model
