#include "runtime/model/keras/layout.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "runtime/model/keras.h"
#include "runtime/model/nested_model.h"
#include "runtime/model/rnn.h"

namespace tfjob::keras {
namespace {

using Specs = std::vector<const model::VariableSpec*>;

// Returns the variables whose names start with `prefix`, in the original order.
Specs Below(const Specs& variables, std::string_view prefix) {
  Specs found;
  for (const model::VariableSpec* variable : variables) {
    if (variable->name.starts_with(prefix)) found.push_back(variable);
  }
  return found;
}

// Describes a part of a layer, such as the cell of an LSTM.
struct Part {
  std::string_view owner;  // the class of the outermost layer
  int level = 0;           // 0: directly in the outermost layer
  size_t index = 0;        // index among the parts of the same object
  std::string_view name;
};

// Returns the path of a cell within the StackedRNNCells of an RNN. As with layers, Keras numbers
// the cells of each class separately.
std::optional<std::string> StackedCellOf(const model::Layer& rnn, size_t index) {
  const auto cells = rnn.config.As<model::layers::RNN>()->Cells();
  if (index >= cells.size()) return std::nullopt;
  const std::string_view class_name = cells[index]->config.class_name();
  const auto number = std::count_if(
      cells.begin(), cells.begin() + static_cast<std::ptrdiff_t>(index),
      [&](const model::Layer* cell) { return cell->config.class_name() == class_name; });
  return StrCat("cells/", model::SnakeCase(class_name), number == 0 ? "" : StrCat("_", number));
}

// Returns the name of the Keras object's attribute that contains the part, or nullopt if the name
// is unknown.
std::optional<std::string> AttributeOf(const model::Layer& layer, const Part& part) {
  static const std::map<std::string_view, std::string> kAttention = {
      {"gate", "gate_dense"},
      {"query", "query_dense"},
      {"key", "key_dense"},
      {"value", "value_dense"},
      {"attention_output", "output_dense"}};
  if (part.level == 0 && part.owner == "TimeDistributed") return "layer";
  if (part.level == 0 && part.owner == "RNN") return "cell";
  if (part.level == 1 && part.owner == "RNN") return StackedCellOf(layer, part.index);
  if (part.level == 0 && part.owner == "Bidirectional")
    return part.index == 0 ? "forward_layer" : "backward_layer";
  if (part.name.ends_with("_cell")) return "cell";
  const auto found = kAttention.find(part.name);
  if (found != kAttention.end()) return found->second;
  return std::nullopt;
}

// Adds the group of an object and the groups of its parts. The names of the object's variables
// start with `prefix`. `level` is 0 for a layer, 1 for a part of a layer, and so on.
Status AddObject(const model::Layer& layer, int level, std::string path, const std::string& prefix,
                 std::string name, const Specs& variables, std::vector<Group>& groups) {
  const size_t own = groups.size();
  groups.push_back({.path = path, .name = std::move(name)});
  std::vector<std::string> parts;
  for (const model::VariableSpec* variable : variables) {
    const std::string_view rest = std::string_view(variable->name).substr(prefix.size());
    const size_t slash = rest.find('/');
    if (slash == std::string_view::npos) {
      groups[own].variables.push_back(variable->name);
    } else if (std::ranges::find(parts, rest.substr(0, slash)) == parts.end()) {
      parts.emplace_back(rest.substr(0, slash));
    }
  }
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::string& part = parts[i];
    const std::optional<std::string> attribute = AttributeOf(
        layer, {.owner = layer.config.class_name(), .level = level, .index = i, .name = part});
    if (!attribute) {
      return Unimplemented(model::Describe(layer), ": its part ", part,
                           " has no known place in Keras' weights files");
    }
    const std::string inner = StrCat(prefix, part, "/");
    RETURN_IF_ERROR(AddObject(layer, level + 1, StrCat(path, "/", *attribute), inner, part,
                              Below(variables, inner), groups));
  }
  return OkStatus();
}

std::string_view ClassOf(const model::Layer& layer) {
  const auto* nested = layer.config.As<model::NestedModel>();
  if (nested == nullptr) return layer.config.class_name();
  return nested->model->sequential ? "Sequential" : "Functional";
}

// Adds the groups of a model. The paths of the groups start with `path`, such as "" or
// "layers/functional/". The names of the model's variables start with `prefix`, such as "" or
// "inner/".
Status AddModel(const model::Model& model, const std::string& path, const std::string& prefix,
                const Specs& variables, std::vector<Group>& groups) {
  std::map<std::string, int> counts;
  for (const model::Layer& layer : model.layers) {
    const std::string base = model::SnakeCase(ClassOf(layer));
    const int number = counts[base]++;
    const std::string at = StrCat(path, "layers/", base, number == 0 ? "" : StrCat("_", number));
    const std::string inner = StrCat(prefix, layer.name, "/");
    const Specs below = Below(variables, inner);
    if (const auto* nested = layer.config.As<model::NestedModel>()) {
      groups.push_back({.path = at, .name = layer.name});
      RETURN_IF_ERROR(AddModel(*nested->model, at + "/", inner, below, groups));
    } else {
      RETURN_IF_ERROR(AddObject(layer, 0, at, inner, layer.name, below, groups));
    }
  }
  return OkStatus();
}

// Adds the variables in the order of the layers.
void AddInOrder(const model::Model& model, const std::string& prefix, const Specs& variables,
                Specs& ordered) {
  for (const model::Layer& layer : model.layers) {
    const std::string inner = StrCat(prefix, layer.name, "/");
    const Specs below = Below(variables, inner);
    if (const auto* nested = layer.config.As<model::NestedModel>()) {
      AddInOrder(*nested->model, inner, below, ordered);
    } else {
      ordered.insert(ordered.end(), below.begin(), below.end());
    }
  }
}

Specs PointersTo(std::span<const model::VariableSpec> variables) {
  Specs pointers;
  for (const model::VariableSpec& variable : variables) pointers.push_back(&variable);
  return pointers;
}

Specs InOrder(const model::Model& model, std::span<const model::VariableSpec> variables) {
  Specs ordered;
  AddInOrder(model, "", PointersTo(variables), ordered);
  return ordered;
}

}  // namespace

StatusOr<std::vector<Group>> Groups(const model::Model& model,
                                    std::span<const model::VariableSpec> variables) {
  std::vector<Group> groups;
  RETURN_IF_ERROR(AddModel(model, "", "", PointersTo(variables), groups));
  return groups;
}

std::vector<LayerWeights> WeightsByLayer(const model::Model& model,
                                         std::span<const model::VariableSpec> variables,
                                         TrainableFlags flags) {
  const Specs ordered = InOrder(model, variables);
  const auto trainable = [flags](const model::VariableSpec* variable) {
    return variable->trainable ||
           (flags == TrainableFlags::kOfFile && variable->frozen_from_outside);
  };
  std::vector<LayerWeights> layers;
  for (const model::Layer& layer : model.layers) {
    Specs weights = Below(ordered, layer.name + "/");
    std::ranges::stable_partition(weights, trainable);
    layers.push_back({.layer = layer.name});
    for (const model::VariableSpec* weight : weights)
      layers.back().variables.push_back(weight->name);
  }
  return layers;
}

std::vector<std::string> KerasOrder(const model::Model& model,
                                    std::span<const model::VariableSpec> variables) {
  std::vector<std::string> names;
  for (const model::VariableSpec* variable : InOrder(model, variables))
    names.push_back(variable->name);
  return names;
}

}  // namespace tfjob::keras
