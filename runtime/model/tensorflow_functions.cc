#include "runtime/model/tensorflow_functions.h"

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/did_you_mean.h"
#include "runtime/model/call_reader.h"

namespace tfjob::model {
namespace {

// Specifies the part of the Keras 3 call in which an argument is stored.
enum class Role {
  kOperand,  // an operand of the call
  kConfig,   // argument `target` in the function's config
  kOnly,     // nowhere; the only supported value is `target`, as JSON
};

struct Parameter {
  std::string_view name;
  Role role = Role::kOperand;
  std::string_view target = {};
};

struct TensorflowFunction {
  std::string_view name;  // without "tf."
  std::string_view module, class_name;
  std::span<const Parameter> parameters = {};  // all parameters except the first
  // TensorFlow's defaults, as JSON, for arguments whose defaults are different in Keras.
  std::string_view defaults = "{}";
};

constexpr Parameter kY[] = {{"y"}};
constexpr Parameter kB[] = {{"b"},
                            {"transpose_a", Role::kOnly, "false"},
                            {"transpose_b", Role::kOnly, "false"},
                            {"adjoint_a", Role::kOnly, "false"},
                            {"adjoint_b", Role::kOnly, "false"},
                            {"a_is_sparse", Role::kOnly, "false"},
                            {"b_is_sparse", Role::kOnly, "false"}};
constexpr Parameter kBias[] = {{"bias"}};
constexpr Parameter kXY[] = {{"x"}, {"y"}};
constexpr Parameter kAxis[] = {{"axis", Role::kConfig, "axis"}};
constexpr Parameter kReduction[] = {{"axis", Role::kConfig, "axis"},
                                    {"keepdims", Role::kConfig, "keepdims"}};
constexpr Parameter kNormalize[] = {{"axis", Role::kConfig, "axis"},
                                    {"epsilon", Role::kOnly, "1e-12"}};
constexpr Parameter kClip[] = {{"clip_value_min", Role::kConfig, "x_min"},
                               {"clip_value_max", Role::kConfig, "x_max"}};
constexpr Parameter kType[] = {{"dtype", Role::kConfig, "dtype"}};
constexpr Parameter kShape[] = {{"shape", Role::kConfig, "newshape"}};
constexpr Parameter kPermutation[] = {{"perm", Role::kConfig, "axes"},
                                      {"conjugate", Role::kOnly, "false"}};
constexpr Parameter kSplit[] = {{"num_or_size_splits", Role::kConfig, "indices_or_sections"},
                                {"axis", Role::kConfig, "axis"}};
constexpr Parameter kTile[] = {{"multiples", Role::kConfig, "repeats"}};
constexpr Parameter kPad[] = {{"paddings", Role::kConfig, "pad_width"},
                              {"mode", Role::kOnly, "\"CONSTANT\""},
                              {"constant_values", Role::kOnly, "0"}};
constexpr Parameter kSlope[] = {{"alpha", Role::kConfig, "negative_slope"}};
constexpr Parameter kGelu[] = {{"approximate", Role::kConfig, "approximate"}};
constexpr Parameter kBeta[] = {{"beta", Role::kOnly, "1.0"}};
constexpr Parameter kOneHot[] = {{"depth", Role::kConfig, "num_classes"},
                                 {"axis", Role::kConfig, "axis"},
                                 {"dtype", Role::kConfig, "dtype"}};
constexpr Parameter kArgmax[] = {{"axis", Role::kConfig, "axis"},
                                 {"output_type", Role::kOnly, "\"int32\""}};
constexpr Parameter kRoll[] = {{"shift", Role::kConfig, "shift"}, {"axis", Role::kConfig, "axis"}};
constexpr Parameter kSliceSpec[] = {{"slice_spec"}};

constexpr TensorflowFunction kElementwiseFunctions[] = {
    {"__operators__.add", "numpy", "Add", kY},
    {"math.add", "numpy", "Add", kY},
    {"nn.bias_add", "numpy", "Add", kBias},
    {"math.subtract", "numpy", "Subtract", kY},
    {"math.multiply", "numpy", "Multiply", kY},
    {"math.truediv", "numpy", "TrueDivide", kY},
    {"math.divide", "numpy", "TrueDivide", kY},
    {"math.pow", "numpy", "Power", kY},
    {"math.maximum", "numpy", "Maximum", kY},
    {"math.minimum", "numpy", "Minimum", kY},
    {"math.equal", "numpy", "Equal", kY},
    {"math.not_equal", "numpy", "NotEqual", kY},
    {"math.greater", "numpy", "Greater", kY},
    {"math.greater_equal", "numpy", "GreaterEqual", kY},
    {"math.less", "numpy", "Less", kY},
    {"math.less_equal", "numpy", "LessEqual", kY},
    {"math.logical_and", "numpy", "LogicalAnd", kY},
    {"math.logical_or", "numpy", "LogicalOr", kY},
    {"math.logical_not", "numpy", "LogicalNot"},
    {"where", "numpy", "Where", kXY},
    {"identity", "core", "ConvertToTensor"},
    {"math.negative", "numpy", "Negative"},
    {"math.abs", "numpy", "Absolute"},
    {"math.square", "numpy", "Square"},
    {"math.sqrt", "numpy", "Sqrt"},
    {"math.rsqrt", "math", "Rsqrt"},
    {"math.reciprocal", "numpy", "Reciprocal"},
    {"math.exp", "numpy", "Exp"},
    {"math.log", "numpy", "Log"},
    {"math.erf", "math", "Erf"},
    {"math.sin", "numpy", "Sin"},
    {"math.cos", "numpy", "Cos"},
    {"math.tanh", "numpy", "Tanh"},
    {"math.sigmoid", "nn", "Sigmoid"},
    {"math.softplus", "nn", "Softplus"},
    {"nn.softsign", "nn", "Softsign"},
    {"nn.relu", "nn", "Relu"},
    {"nn.relu6", "nn", "Relu6"},
    {"nn.elu", "nn", "Elu"},
    {"nn.selu", "nn", "Selu"},
    {"nn.silu", "nn", "Silu", kBeta},
    {"nn.leaky_relu", "nn", "LeakyRelu", kSlope},
    {"nn.gelu", "nn", "Gelu", kGelu, R"({"approximate": false})"},
    {"clip_by_value", "numpy", "Clip", kClip},
    {"cast", "core", "Cast", kType},
};

// Lists the functions that rearrange or combine elements.
constexpr TensorflowFunction kArrayFunctions[] = {
    {"__operators__.getitem", "numpy", "GetItem", kSliceSpec},
    {"linalg.matmul", "numpy", "Matmul", kB},
    {"nn.softmax", "nn", "Softmax", kAxis},
    {"nn.log_softmax", "nn", "LogSoftmax", kAxis},
    {"math.l2_normalize", "nn", "Normalize", kNormalize, R"({"epsilon": 1e-6})"},
    {"one_hot", "nn", "OneHot", kOneHot},
    {"reshape", "numpy", "Reshape", kShape},
    {"transpose", "numpy", "Transpose", kPermutation},
    {"compat.v1.transpose", "numpy", "Transpose", kPermutation},
    {"expand_dims", "numpy", "ExpandDims", kAxis},
    {"squeeze", "numpy", "Squeeze", kAxis},
    {"compat.v1.squeeze", "numpy", "Squeeze", kAxis},
    {"concat", "numpy", "Concatenate", kAxis},
    {"stack", "numpy", "Stack", kAxis, R"({"axis": 0})"},
    {"split", "numpy", "Split", kSplit, R"({"axis": 0})"},
    {"tile", "numpy", "Tile", kTile},
    {"pad", "numpy", "Pad", kPad},
    {"compat.v1.pad", "numpy", "Pad", kPad},
    {"reverse", "numpy", "Flip", kAxis},
    {"roll", "numpy", "Roll", kRoll},
    {"math.argmax", "numpy", "Argmax", kArgmax, R"({"axis": 0})"},
    {"math.reduce_mean", "numpy", "Mean", kReduction},
    {"math.reduce_sum", "numpy", "Sum", kReduction},
    {"math.reduce_max", "numpy", "Max", kReduction},
    {"math.reduce_min", "numpy", "Min", kReduction},
    {"math.reduce_any", "numpy", "Any", kReduction},
    {"math.reduce_all", "numpy", "All", kReduction},
    {"math.reduce_variance", "numpy", "Var", kReduction},
    {"math.reduce_std", "numpy", "Std", kReduction},
    {"math.reduce_logsumexp", "math", "Logsumexp", kReduction},
};

StatusOr<const TensorflowFunction*> FindFunction(const JsonField& config) {
  ASSIGN_OR_RETURN(const std::string name, config["function"].String());
  std::vector<std::string> known;
  for (const std::span<const TensorflowFunction> table :
       {std::span<const TensorflowFunction>(kElementwiseFunctions),
        std::span<const TensorflowFunction>(kArrayFunctions)}) {
    for (const TensorflowFunction& function : table) {
      if (function.name == name) return &function;
      known.emplace_back(function.name);
    }
  }
  return InvalidArgument(config["function"].path(), ": the function tf.", name, " is not supported",
                         DidYouMean(name, known));
}

Json TensorForm(const Json& history) {
  return {{"class_name", "__keras_tensor__"},
          {"config", {{"keras_history", {history[0], history[1], history[2]}}}}};
}

// Returns the type of a constant in TensorFlow. The constant is a number, or nested lists of
// numbers.
std::string_view ConstantType(const Json& value) {
  if (!value.is_array()) {
    if (!value.is_number_integer()) return "float32";
    return JsonField(value).Int32().ok() ? "int32" : "int64";
  }
  std::string_view type = "int32";
  for (const Json& element : value) {
    const std::string_view own = ConstantType(element);
    if (own == "float32") return own;
    if (own == "int64") type = own;
  }
  return type;
}

// tf.keras 2 writes this text in place of a layer's name if the first argument, or an element of a
// list, is a constant.
constexpr std::string_view kConstant = "_CONSTANT_VALUE";

// Converts a key, or a part of a key, to the form of Keras 3.
Json KeyForm(const Json& spec) {
  if (spec.is_array()) {
    Json key = Json::array();
    for (const Json& part : spec) key.push_back(KeyForm(part));
    return key;
  }
  if (!spec.is_object()) return spec;
  if (spec.contains("class_name")) return {{"class_name", "__ellipsis__"}, {"config", {}}};
  return {{"class_name", "__slice__"}, {"config", spec}};
}

// Converts an operand to the form of Keras 3: a tensor, a list of tensors, a number or an array.
StatusOr<Json> OperandForm(const JsonField& field) {
  const Json& value = *field.value();
  if (IsHistory(value)) return TensorForm(value);
  if (!value.is_array() || value.empty()) return Json(value);
  if (std::none_of(value.begin(), value.end(), IsHistory)) {
    return Json{{"class_name", "__numpy__"},
                {"config", {{"value", value}, {"dtype", std::string(ConstantType(value))}}}};
  }
  Json tensors = Json::array();
  for (size_t i = 0; i < value.size(); ++i) {
    if (!IsHistory(value[i]) || value[i][0] == kConstant)
      return field[i].Mismatch("a tensor (constants in a list of tensors are not supported)");
    tensors.push_back(TensorForm(value[i]));
  }
  return tensors;
}

// Contains the first argument of a call, and its keyword arguments.
struct GivenCall {
  JsonField first, named;
};

// Checks that all elements of a list of tensors have the same keyword arguments, which tf.keras 2
// repeats in each element.
Status ExpectSameArguments(const JsonField& node) {
  const JsonField first = node[0][3];
  for (size_t i = 1; i < node.value()->size(); ++i) {
    const JsonField arguments = node[i][3];
    if (!arguments.present()) continue;
    if (!first.present() || *arguments.value() != *first.value())
      return arguments.Mismatch("the arguments that the call's first input has");
  }
  return OkStatus();
}

StatusOr<GivenCall> ReadGivenCall(const JsonField& layer) {
  const JsonField nodes = layer["inbound_nodes"];
  if (!nodes.present() || !nodes.value()->is_array() || nodes.value()->size() != 1)
    return nodes.Mismatch("the only call of the function");
  const JsonField node = nodes[0];
  if (!node.present() || !node.value()->is_array() || node.value()->empty())
    return node.Mismatch("a call in the form of tf.keras 2");
  if (!(*node.value())[0].is_string()) {
    RETURN_IF_ERROR(ExpectSameArguments(node));
    return GivenCall{node, node[0][3]};
  }
  if (!IsHistory(*node.value())) return node.Mismatch("[layer, call, output, arguments]");
  // If the first argument is a constant, TensorFlow writes its value in place of the index of an
  // output.
  const bool constant = (*node.value())[0] == kConstant;
  return GivenCall{constant ? node[2] : node, node[3]};
}

// Stores an argument in the function's config, or in the arguments of the call.
Status Store(const Parameter& parameter, const JsonField& value, Json& config, Json& args) {
  switch (parameter.role) {
    case Role::kOperand: {
      if (!value.present()) return value.Mismatch("a tensor or a number");
      if (parameter.name == "slice_spec") {
        args.push_back(KeyForm(*value.value()));
        return OkStatus();
      }
      args.emplace_back();
      ASSIGN_OR_RETURN(args.back(), OperandForm(value));
      return OkStatus();
    }
    case Role::kConfig:
      if (value.present()) config[std::string(parameter.target)] = *value.value();
      return OkStatus();
    case Role::kOnly: {
      if (!value.present()) return OkStatus();
      ASSIGN_OR_RETURN(const Json only, ParseJson(parameter.target, parameter.name));
      if (*value.value() == only) return OkStatus();
      return value.Mismatch(StrCat(parameter.target, " (no other value is supported)"));
    }
  }
  return OkStatus();
}

// Replaces each occurrence of a path or a name, unless the occurrence is the start of a longer path
// or name.
void ReplaceAll(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at)) {
    const size_t end = at + from.size();
    const bool longer = end < text.size() &&
                        (std::isalnum(static_cast<unsigned char>(text[end])) || text[end] == '_');
    if (!longer) text.replace(at, from.size(), to);
    at += longer ? from.size() : to.size();
  }
}

}  // namespace

bool IsTensorflowFunction(const JsonField& layer) {
  const std::string class_name = layer["class_name"].StringOr("").value_or("");
  return class_name == "TFOpLambda" || class_name == "SlicingOpLambda";
}

StatusOr<Json> TranslateTensorflowFunction(const JsonField& layer) {
  ASSIGN_OR_RETURN(const TensorflowFunction* const function, FindFunction(layer["config"]));
  ASSIGN_OR_RETURN(const GivenCall given, ReadGivenCall(layer));
  ASSIGN_OR_RETURN(const auto named, given.named.Members());
  for (const auto& [name, value] : named) {
    const auto known = std::ranges::find(function->parameters, name, &Parameter::name);
    if (known != function->parameters.end() || name == "name" || !value.present()) continue;
    return InvalidArgument(value.path(), ": this argument of tf.", function->name,
                           " is not supported");
  }
  ASSIGN_OR_RETURN(Json config, ParseJson(function->defaults, function->name));
  if (layer["config"]["name"].present()) config["name"] = *layer["config"]["name"].value();
  if (!given.first.present()) return given.first.Mismatch("a tensor or a number");
  Json args = Json::array({nullptr});
  ASSIGN_OR_RETURN(args[0], OperandForm(given.first));
  for (const Parameter& parameter : function->parameters) {
    RETURN_IF_ERROR(Store(parameter, given.named[parameter.name], config, args));
  }
  Json written = {{"module", StrCat("keras.src.ops.", function->module)},
                  {"class_name", std::string(function->class_name)},
                  {"config", std::move(config)},
                  {"registered_name", std::string(function->class_name)}};
  written["inbound_nodes"] = Json::array({{{"args", std::move(args)}, {"kwargs", Json::object()}}});
  return written;
}

// Replaces the names and paths of the translated layer in the error message with those in the file.
Status InTermsOfTensorflow(const JsonField& layer, const Status& error) {
  if (error.ok()) return error;
  ASSIGN_OR_RETURN(const TensorflowFunction* const function, FindFunction(layer["config"]));
  ASSIGN_OR_RETURN(const GivenCall given, ReadGivenCall(layer));
  std::string text(Message(error));
  const std::string args = layer.path() + ".inbound_nodes[0].args";
  ReplaceAll(text, StrCat("(", function->class_name, ")"), StrCat("(tf.", function->name, ")"));
  ReplaceAll(text, args + "[0]", given.first.path());
  int arg = 0;
  for (const Parameter& parameter : function->parameters) {
    const std::string path = given.named[parameter.name].path();
    if (parameter.role == Role::kOperand) ReplaceAll(text, StrCat(args, "[", ++arg, "]"), path);
    if (parameter.role == Role::kConfig)
      ReplaceAll(text, StrCat(layer.path(), ".config.", parameter.target), path);
  }
  for (const char* added : {".config.keras_history", ".config.value"}) ReplaceAll(text, added, "");
  return Status(error.code(), text);
}

}  // namespace tfjob::model
