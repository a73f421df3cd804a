#include "runtime/model/call_reader.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

namespace tfjob::model {
namespace {

enum class Version { kTfKeras2, kKeras3 };

// Contains the arguments of a call as given in the file.
struct Given {
  Version version = Version::kKeras3;
  std::vector<JsonField> positional;
  std::vector<std::pair<std::string, JsonField>> named;
};

// Returns the error for an argument that the layer does not accept.
Status Refuse(const JsonField& field, const Layer& layer) {
  return InvalidArgument(Describe(layer), ": ", field.path(), ": ", DescribeJson(*field.value()),
                         " is not supported as an argument of a call; only the inputs are");
}

// Returns whether the argument has no effect. Keras 3 writes `training` for every layer that
// accepts it, with the default value of the layer's call(). This value has no effect, because fit,
// evaluate and predict override it. tf.keras 2 writes `training` only if the user has set it; the
// layer then always (true) or never (false) behaves as in training.
bool ChangesNothing(std::string_view name, const JsonField& field, const Layer& layer,
                    Version version) {
  if (!field.present()) return true;
  if (version != Version::kKeras3 || name != "training") return false;
  return *field.value() == false || (*field.value() == true && layer.config.training_by_default());
}

JsonField Absent() {
  static const Json kNull;
  return JsonField(kNull);
}

// Returns the field that identifies the source of a tensor, or an absent field if the value is not
// a tensor.
JsonField HistoryOf(const JsonField& field, Version version) {
  if (version == Version::kKeras3) return field["config"]["keras_history"];
  return field.present() && IsHistory(*field.value()) ? field : Absent();
}

// Returns whether the value is an array of numbers in Keras 3's form.
bool IsArray(const JsonField& field) {
  const std::string class_name = field["class_name"].StringOr("").value_or("");
  return class_name == "__tensor__" || class_name == "__numpy__";
}

// Appends the numbers in nested lists whose lengths must be `dims`. Returns false if the lists have
// other lengths.
bool Numbers(const JsonField& field, std::span<const int64_t> dims, std::vector<double>& numbers) {
  if (!field.present()) return false;
  if (dims.empty()) {
    const StatusOr<double> number = field.Double();
    if (number.ok()) numbers.push_back(*number);
    return number.ok();
  }
  const bool fits = field.value()->is_array() && !field.value()->empty() &&
                    static_cast<int64_t>(field.value()->size()) == dims[0];
  for (int64_t i = 0; fits && i < dims[0]; ++i)
    if (!Numbers(field[static_cast<size_t>(i)], dims.subspan(1), numbers)) return false;
  return fits;
}

constexpr std::string_view kExactIntegers = "integers above -2^53 and below 2^53";

// Returns whether the number is an integer that no other integer would have been rounded to.
bool IsExact(double number) {
  return std::abs(number) < 0x1p53 && number == std::trunc(number);
}

// Reads the call arguments that a layer lists. Records the first error.
class CallReader : public CallVisitor {
 public:
  CallReader(const Layer& layer, const Given& given) : layer_(layer), given_(given) {}

  void Input(std::string_view name, int& index, bool required) override {
    const JsonField field = Next(name);
    if (!status_.ok()) return;
    index = kNoInput;
    if (field.present()) {
      index = Tensor(field);
    } else if (required) {
      Keep(InvalidArgument(Describe(layer_), ": a call lacks its argument ", name));
    }
  }

  void First(std::string_view name, int& index, std::vector<int>& rest) override {
    std::vector<int> indices;
    Inputs(name, indices, /*required=*/true);
    if (!status_.ok()) return;
    index = indices[0];
    rest.assign(indices.begin() + 1, indices.end());
    if (given_.version == Version::kKeras3 && !rest.empty())
      Keep(InvalidArgument(Describe(layer_), ": expected one tensor as ", name, ", got ",
                           indices.size()));
  }

  void Inputs(std::string_view name, std::vector<int>& indices, bool required) override {
    const JsonField field = Next(name);
    if (!status_.ok()) return;
    indices.clear();
    if (!field.present()) {
      if (required) Keep(InvalidArgument(Describe(layer_), ": a call lacks its argument ", name));
      return;
    }
    if (HistoryOf(field, given_.version).present()) return indices.push_back(Tensor(field));
    const auto elements = field.Elements();
    if (!elements.ok() || (required && elements->empty())) return Keep(Refused(field));
    for (const JsonField& element : *elements) {
      if (!element.present() && required) return Keep(element.Mismatch("a tensor"));
      indices.push_back(element.present() ? Tensor(element) : kNoInput);
    }
  }

  void Flag(std::string_view name, bool& value) override {
    const JsonField field = Next(name);
    if (!status_.ok()) return;
    const StatusOr<bool> read = field.BoolOr(false);
    if (!read.ok()) return Keep(Refused(field));
    value = *read;
  }

  void Operand(std::string_view name, CallOperand& value) override {
    const JsonField field = Next(name);
    if (!status_.ok()) return;
    value = {};
    if (!field.present()) {
      return Keep(InvalidArgument(Describe(layer_), ": a call lacks its argument ", name));
    }
    if (IsArray(field)) return Array(field["config"], value);
    if (given_.version == Version::kKeras3 && field.value()->is_array()) return List(field, value);
    if (!field.value()->is_number()) {
      value.input = Tensor(field);
      return;
    }
    value.number = field.Double().value_or(0);
    value.integer = field.value()->is_number_integer();
    if (value.integer && !IsExact(value.number)) Keep(field.Mismatch(kExactIntegers));
  }

  void Key(std::string_view name, std::vector<KeyPart>& parts) override {
    const JsonField field = Next(name);
    if (!status_.ok()) return;
    parts.clear();
    std::vector<JsonField> elements = {field};
    if (field.present() && field.value()->is_array()) elements = *field.Elements();
    for (const JsonField& element : elements) parts.push_back(Part(element));
  }

  void Unsupported(std::string_view name) override {
    const JsonField field = Next(name);
    if (status_.ok() && !ChangesNothing(name, field, layer_, given_.version)) Keep(Refused(field));
  }

  // Returns the inputs, or an error if an argument was rejected or was not read.
  StatusOr<std::vector<History>> Finish() {
    if (!status_.ok()) return status_;
    for (size_t i = position_; i < given_.positional.size(); ++i) {
      if (given_.positional[i].present()) return Refused(given_.positional[i]);
    }
    for (const auto& [name, field] : given_.named) {
      if (!known_.contains(name) && !ChangesNothing(name, field, layer_, given_.version))
        return Refused(field);
    }
    return std::move(inputs_);
  }

 private:
  Status Refused(const JsonField& field) const { return Refuse(field, layer_); }
  void Keep(Status status) {
    if (status_.ok()) status_ = std::move(status);
  }

  // Returns the next positional argument or, if there is none, the argument with this name.
  JsonField Next(std::string_view name) {
    known_.insert(std::string(name));
    const auto found = std::ranges::find(given_.named, name, [](const auto& n) { return n.first; });
    const bool named = found != given_.named.end();
    if (position_ >= given_.positional.size()) return named ? found->second : Absent();
    if (named) Keep(found->second.Mismatch("an argument that is given once"));
    return given_.positional[position_++];
  }

  // Reads a constant: {value: numbers or nested lists of numbers, dtype}.
  void Array(const JsonField& config, CallOperand& value) {
    const std::string dtype = config["dtype"].StringOr("float32").value_or("");
    value.integer = dtype.find("int") != std::string::npos;
    Values(config["value"], value);
  }

  // Reads nested lists of numbers. They are integers if the first number is one.
  void List(const JsonField& field, CallOperand& value) {
    JsonField first = field;
    while (first.present() && first.value()->is_array()) first = first[0];
    value.integer = first.present() && first.value()->is_number_integer();
    Values(field, value);
  }

  void Values(const JsonField& field, CallOperand& value) {
    JsonField first = field;
    while (first.present() && first.value()->is_array()) {
      value.dims.push_back(static_cast<int64_t>(first.value()->size()));
      first = first[0];
    }
    std::vector<double> numbers;
    if (!Numbers(field, value.dims, numbers))
      return Keep(field.Mismatch("a number, or nested lists of numbers of equal lengths"));
    if (value.integer && !std::ranges::all_of(numbers, IsExact))
      return Keep(field.Mismatch(kExactIntegers));
    if (value.dims.empty()) {
      value.number = numbers[0];
    } else {
      value.array = std::move(numbers);
    }
  }

  // Reads one part of a key in Keras' form. Null represents a new axis.
  KeyPart Part(const JsonField& field) {
    if (!field.present()) return {.kind = KeyPart::Kind::kNewAxis};
    const std::string class_name = field["class_name"].StringOr("").value_or("");
    if (class_name == "__ellipsis__") return {.kind = KeyPart::Kind::kEllipsis};
    if (class_name == "__slice__") {
      const JsonField slice = field["config"];
      return {.start = Bound(slice["start"]),
              .stop = Bound(slice["stop"]),
              .step = Bound(slice["step"])};
    }
    const StatusOr<int32_t> index = field.Int32();
    if (!index.ok()) Keep(Refused(field));
    return {.kind = KeyPart::Kind::kIndex, .index = index.value_or(0)};
  }

  std::optional<int64_t> Bound(const JsonField& field) {
    if (!field.present()) return std::nullopt;
    const StatusOr<int32_t> bound = field.Int32();
    if (!bound.ok()) Keep(Refused(field));
    return bound.value_or(0);
  }

  int Tensor(const JsonField& field) {
    const JsonField history = HistoryOf(field, given_.version);
    StatusOr<History> read = history.present() ? ReadHistory(history) : Refused(field);
    if (!read.ok()) {
      Keep(read.status());
      return kNoInput;
    }
    inputs_.push_back(*std::move(read));
    return static_cast<int>(inputs_.size()) - 1;
  }

  const Layer& layer_;
  const Given& given_;
  size_t position_ = 0;
  std::set<std::string> known_;
  std::vector<History> inputs_;
  Status status_;
};

// Reads the tensors in a value, which is a tensor or a (nested) list of tensors.
Status ReadTensors(const JsonField& field, const Layer& layer, std::vector<History>& inputs) {
  if (!field.present()) return OkStatus();
  if (field.value()->is_array()) {
    ASSIGN_OR_RETURN(const std::vector<JsonField> elements, field.Elements());
    for (const JsonField& element : elements) RETURN_IF_ERROR(ReadTensors(element, layer, inputs));
    return OkStatus();
  }
  const JsonField history = HistoryOf(field, Version::kKeras3);
  if (!history.present()) return Refuse(field, layer);
  ASSIGN_OR_RETURN(History input, ReadHistory(history));
  inputs.push_back(std::move(input));
  return OkStatus();
}

// Rejects all arguments, except for the mask if the layer accepts one; the caller reads the mask.
Status ExpectNoArguments(const JsonField& field, const Layer& layer, Version version) {
  ASSIGN_OR_RETURN(const auto members, field.Members());
  for (const auto& [name, member] : members) {
    const bool read = version == Version::kKeras3 && name == "mask" && layer.config.takes_mask();
    if (!read && !ChangesNothing(name, member, layer, version)) return Refuse(member, layer);
  }
  return OkStatus();
}

// Reads the `mask` argument: a tensor if there is a single input, or a list with a tensor or null
// for each input.
Status ReadMasks(const JsonField& field, const Layer& layer, CallForm& call) {
  if (!field.present() || !layer.config.takes_mask()) return OkStatus();
  std::vector<JsonField> elements = {field};
  if (field.value()->is_array()) {
    ASSIGN_OR_RETURN(elements, field.Elements());
  }
  if (elements.size() != call.inputs.size()) return field.Mismatch("as many masks as inputs");
  for (const JsonField& element : elements) {
    call.masks.emplace_back();
    if (!element.present()) continue;
    const JsonField history = HistoryOf(element, Version::kKeras3);
    if (!history.present()) return Refuse(element, layer);
    ASSIGN_OR_RETURN(call.masks.back(), ReadHistory(history));
  }
  return OkStatus();
}

// Reads {args: [tensors or lists of tensors], kwargs: {…}}.
StatusOr<CallForm> ReadInputs(const JsonField& node, const Layer& layer) {
  CallForm call;
  ASSIGN_OR_RETURN(const std::vector<JsonField> args, node["args"].Elements());
  for (const JsonField& arg : args) RETURN_IF_ERROR(ReadTensors(arg, layer, call.inputs));
  RETURN_IF_ERROR(ExpectNoArguments(node["kwargs"], layer, Version::kKeras3));
  RETURN_IF_ERROR(ReadMasks(node["kwargs"]["mask"], layer, call));
  return call;
}

// Returns the inputs in a node of tf.keras 2: a list [[layer, node, tensor, {kwargs}], …] or a
// single element of such a list.
StatusOr<std::vector<JsonField>> OldElements(const JsonField& node) {
  if (!node.present() || !node.value()->is_array()) return node.Mismatch("a call");
  if (IsHistory(*node.value())) return std::vector{node};
  return node.Elements();
}

StatusOr<CallForm> ReadOldInputs(const JsonField& node, const Layer& layer) {
  CallForm call;
  ASSIGN_OR_RETURN(const std::vector<JsonField> elements, OldElements(node));
  for (const JsonField& element : elements) {
    ASSIGN_OR_RETURN(History input, ReadHistory(element));
    call.inputs.push_back(std::move(input));
    RETURN_IF_ERROR(ExpectNoArguments(element[3], layer, Version::kTfKeras2));
  }
  return call;
}

StatusOr<Given> ReadGiven(const JsonField& node) {
  Given given;
  if (node.IsObject()) {
    ASSIGN_OR_RETURN(given.positional, node["args"].Elements());
    ASSIGN_OR_RETURN(given.named, node["kwargs"].Members());
    return given;
  }
  given.version = Version::kTfKeras2;
  ASSIGN_OR_RETURN(const std::vector<JsonField> elements, OldElements(node));
  if (elements.empty()) return given;
  // The inputs are the first argument. The other arguments are repeated in every element.
  given.positional = {elements.size() == 1 ? elements[0] : node};
  const JsonField first = elements[0][3];
  ASSIGN_OR_RETURN(given.named, first.Members());
  for (const JsonField& element : elements) {
    const JsonField arguments = element[3];
    if (!arguments.present()) continue;
    if (!first.present() || *arguments.value() != *first.value())
      return arguments.Mismatch("the arguments that the call's first input has");
  }
  return given;
}

}  // namespace

bool IsHistory(const Json& value) {
  return value.is_array() && value.size() >= 3 && value[0].is_string();
}

StatusOr<History> ReadHistory(const JsonField& field) {
  if (!field.present() || !IsHistory(*field.value()))
    return field.Mismatch("[layer, number of the call, number of the output]");
  History history;
  ASSIGN_OR_RETURN(history.layer, field[0].String());
  ASSIGN_OR_RETURN(history.node, field[1].Int());
  ASSIGN_OR_RETURN(history.tensor, field[2].Int());
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  if (history.node < 0 || history.node > kMost) return field[1].Mismatch("the number of a call");
  if (history.tensor < 0 || history.tensor > kMost)
    return field[2].Mismatch("the number of an output");
  return history;
}

StatusOr<CallForm> ReadCall(const JsonField& node, const Layer& layer) {
  if (!layer.config.takes_arguments())
    return node.IsObject() ? ReadInputs(node, layer) : ReadOldInputs(node, layer);
  CallForm call;
  ASSIGN_OR_RETURN(const Given given, ReadGiven(node));
  CallReader reader(layer, given);
  call.config = layer.config.Called(reader);
  ASSIGN_OR_RETURN(call.inputs, reader.Finish());
  return call;
}

}  // namespace tfjob::model
