#include "runtime/model/call_writer.h"

#include <nlohmann/json.hpp>

namespace tfjob::model {
namespace {

// Writes the first argument that a layer lists by position, and the others by name, without those
// that are absent or false.
class CallWriter : public CallVisitor {
 public:
  explicit CallWriter(const std::vector<Json>& tensors) : tensors_(tensors) {}

  void Input(std::string_view name, int& index, bool) override {
    if (index != kNoInput) Add(name, Tensor(index));
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

  void Unsupported(std::string_view) override {}

  Json Written() && { return {{"args", std::move(args_)}, {"kwargs", std::move(kwargs_)}}; }

 private:
  const Json& Tensor(int index) const { return tensors_[static_cast<size_t>(index)]; }

  void Add(std::string_view name, Json value) {
    if (args_.empty()) {
      args_.push_back(std::move(value));
    } else {
      kwargs_[std::string(name)] = std::move(value);
    }
  }

  const std::vector<Json>& tensors_;
  Json args_ = Json::array(), kwargs_ = Json::object();
};

}  // namespace

Json WriteCall(const Model& model, const Call& call, std::vector<Json> tensors) {
  const LayerConfig& config = ConfigOf(model, call);
  if (config.takes_arguments()) {
    CallWriter writer(tensors);
    config.Called(writer);
    return std::move(writer).Written();
  }
  // Several inputs are one argument, a list.
  Json args = Json::array();
  if (tensors.size() == 1) {
    args.push_back(std::move(tensors[0]));
  } else {
    args.push_back(Json(std::move(tensors)));
  }
  return {{"args", std::move(args)}, {"kwargs", Json::object()}};
}

}  // namespace tfjob::model
