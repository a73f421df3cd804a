#include "runtime/model/call_writer.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/model/operations/operation.h"

namespace tfjob::model {
namespace {

Json Slice(const KeyPart& part) {
  const auto bound = [](const std::optional<int64_t>& at) { return at ? Json(*at) : Json(); };
  return {{"class_name", "__slice__"},
          {"config",
           {{"start", bound(part.start)}, {"stop", bound(part.stop)}, {"step", bound(part.step)}}}};
}

Json Written(const KeyPart& part) {
  switch (part.kind) {
    case KeyPart::Kind::kIndex:
      return part.index;
    case KeyPart::Kind::kSlice:
      return Slice(part);
    case KeyPart::Kind::kEllipsis:
      return {{"class_name", "__ellipsis__"}, {"config", Json::object()}};
    case KeyPart::Kind::kNewAxis:
      break;
  }
  return {};
}

Json Number(double number, bool integer) {
  return integer ? Json(static_cast<int64_t>(number)) : Json(number);
}

// Returns the part of the array that starts at element `next`, as nested lists for the axes from
// `axis` on. Advances `next` past the elements returned.
Json Nested(const CallOperand& array, size_t axis, size_t& next) {
  if (axis == array.dims.size()) return Number(array.array[next++], array.integer);
  Json list = Json::array();
  for (int64_t i = 0; i < array.dims[axis]; ++i) list.push_back(Nested(array, axis + 1, next));
  return list;
}

Json Array(const CallOperand& array) {
  size_t next = 0;
  const bool narrow = std::ranges::all_of(array.array, [](double number) {
    return number >= std::numeric_limits<int32_t>::min() &&
           number <= std::numeric_limits<int32_t>::max();
  });
  const std::string_view integers = narrow ? "int32" : "int64";
  return {{"class_name", "__tensor__"},
          {"config",
           {{"value", Nested(array, 0, next)},
            {"dtype", std::string(array.integer ? integers : "float32")}}}};
}

// Writes the call arguments that a layer lists: the first one by position, and all others by name.
// Omits arguments that are absent or false. For a function of keras.ops, writes all arguments by
// position.
class CallWriter : public CallVisitor {
 public:
  CallWriter(const std::vector<Json>& tensors, bool positional)
      : tensors_(tensors), positional_(positional) {}

  void Input(std::string_view name, int& index, bool) override {
    if (index != kNoInput) Add(name, Tensor(index));
  }

  void First(std::string_view name, int& index, std::vector<int>&) override {
    Input(name, index, true);
  }

  void Inputs(std::string_view name, std::vector<int>& indices, bool) override {
    if (indices.empty()) return;
    Json list = Json::array();
    for (int index : indices) list.push_back(index == kNoInput ? Json() : Tensor(index));
    Add(name, std::move(list));
  }

  void Flag(std::string_view name, bool& value) override {
    if (value) Add(name, value);
  }

  void Operand(std::string_view name, CallOperand& value) override {
    if (value.input != kNoInput) return Add(name, Tensor(value.input));
    if (!value.array.empty()) return Add(name, Array(value));
    Add(name, Number(value.number, value.integer));
  }

  void Key(std::string_view name, std::vector<KeyPart>& parts) override {
    Json key = Json::array();
    for (const KeyPart& part : parts) key.push_back(model::Written(part));
    Add(name, std::move(key));
  }

  void Unsupported(std::string_view) override {}

  Json Written() && { return {{"args", std::move(args_)}, {"kwargs", std::move(kwargs_)}}; }

 private:
  const Json& Tensor(int index) const { return tensors_[static_cast<size_t>(index)]; }

  void Add(std::string_view name, Json value) {
    if (args_.empty() || positional_) {
      args_.push_back(std::move(value));
    } else {
      kwargs_[std::string(name)] = std::move(value);
    }
  }

  const std::vector<Json>& tensors_;
  const bool positional_;
  Json args_ = Json::array(), kwargs_ = Json::object();
};

// Returns a single value as it is, and several values as a list.
Json OneOrList(std::vector<Json> values) {
  if (values.size() == 1) return std::move(values[0]);
  return Json(std::move(values));
}

}  // namespace

Json WriteCall(const Model& model, const Call& call, std::vector<Json> tensors,
               std::vector<Json> masks) {
  const LayerConfig& config = ConfigOf(model, call);
  if (config.takes_arguments()) {
    CallWriter writer(tensors, config.As<layers::Operation>() != nullptr);
    config.Called(writer);
    return std::move(writer).Written();
  }
  Json args = Json::array(), kwargs = Json::object();
  args.push_back(OneOrList(std::move(tensors)));
  if (!masks.empty()) kwargs["mask"] = OneOrList(std::move(masks));
  return {{"args", std::move(args)}, {"kwargs", std::move(kwargs)}};
}

}  // namespace tfjob::model
