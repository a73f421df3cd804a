#include "runtime/model/keras/layout.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string_view>

#include "runtime/model/keras.h"
#include "runtime/model/nested_model.h"
#include "runtime/model/rnn.h"
#include "runtime/model/wrappers.h"

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

// A part of a Keras object: the object's attribute that contains it and, if the part is a layer of
// this project, that layer.
struct Part {
  std::string attribute;
  const model::Layer* layer = nullptr;
};

// Returns the path of a cell within StackedRNNCells. As with layers, Keras numbers the cells of
// each class separately.
std::optional<Part> CellOf(const model::layers::StackedRNNCells& stack, size_t index) {
  if (index >= stack.cells.size()) return std::nullopt;
  const std::string_view class_name = stack.cells[index]->config.class_name();
  const auto number =
      std::count_if(stack.cells.begin(), stack.cells.begin() + static_cast<std::ptrdiff_t>(index),
                    [&](const auto& cell) { return cell->config.class_name() == class_name; });
  return Part{
      StrCat("cells/", model::SnakeCase(class_name), number == 0 ? "" : StrCat("_", number)),
      stack.cells[index].get()};
}

// Returns the part of a wrapper, an RNN or a stack of cells with this index, or nullopt for other
// layers.
std::optional<Part> WrappedPart(const model::Layer& layer, size_t index) {
  namespace layers = model::layers;
  if (const auto* each = layer.config.As<layers::TimeDistributed>())
    return Part{"layer", each->layer.get()};
  if (const auto* rnn = layer.config.As<layers::RNN>()) return Part{"cell", rnn->cell.get()};
  if (const auto* stack = layer.config.As<layers::StackedRNNCells>()) return CellOf(*stack, index);
  const auto* both = layer.config.As<layers::Bidirectional>();
  if (both == nullptr) return std::nullopt;
  const bool given = index > 0 && both->backward_layer != nullptr;
  return Part{index == 0 ? "forward_layer" : "backward_layer",
              given ? both->backward_layer.get() : both->layer.get()};
}

// Returns the part with this name and index, or nullopt if its attribute is unknown. `object` is
// null for an object that is no layer of this project.
std::optional<Part> PartOf(const model::Layer* object, size_t index, std::string_view name) {
  static const std::map<std::string_view, std::string> kAttention = {
      {"gate", "gate_dense"},
      {"query", "query_dense"},
      {"key", "key_dense"},
      {"value", "value_dense"},
      {"attention_output", "output_dense"}};
  if (object != nullptr) {
    if (std::optional<Part> wrapped = WrappedPart(*object, index)) return wrapped;
  }
  if (name.ends_with("_cell")) return Part{"cell"};
  const auto found = kAttention.find(name);
  return found == kAttention.end() ? std::nullopt : std::optional(Part{found->second});
}

Status AddModel(const model::Model& model, const std::string& path, const std::string& prefix,
                const Specs& variables, std::vector<Group>& groups);

// Adds the groups of a layer, or of another part of a layer, and those of its parts. The names of
// the object's variables start with `prefix`.
class ObjectAdder {
 public:
  ObjectAdder(const model::Layer& layer, std::vector<Group>& groups)
      : layer_(layer), groups_(groups) {}

  Status Add(const model::Layer* object, const std::string& path, const std::string& prefix,
             std::string name, const Specs& variables) {
    const size_t own = groups_.size();
    groups_.push_back({.path = path, .name = std::move(name)});
    const auto* nested = object == nullptr ? nullptr : object->config.As<model::NestedModel>();
    if (nested != nullptr) return AddModel(*nested->model, path + "/", prefix, variables, groups_);
    std::vector<std::string> parts;
    for (const model::VariableSpec* variable : variables) {
      const std::string_view rest = std::string_view(variable->name).substr(prefix.size());
      const size_t slash = rest.find('/');
      if (slash == std::string_view::npos) {
        groups_[own].variables.push_back(variable->name);
      } else if (std::ranges::find(parts, rest.substr(0, slash)) == parts.end()) {
        parts.emplace_back(rest.substr(0, slash));
      }
    }
    for (size_t i = 0; i < parts.size(); ++i) {
      const std::optional<Part> part = PartOf(object, i, parts[i]);
      if (!part) {
        return Unimplemented(model::Describe(layer_), ": its part ", parts[i],
                             " has no known place in Keras' weights files");
      }
      const std::string inner = StrCat(prefix, parts[i], "/");
      RETURN_IF_ERROR(Add(part->layer, StrCat(path, "/", part->attribute), inner, parts[i],
                          Below(variables, inner)));
    }
    return OkStatus();
  }

 private:
  const model::Layer& layer_;  // for errors
  std::vector<Group>& groups_;
};

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
    RETURN_IF_ERROR(
        ObjectAdder(layer, groups).Add(&layer, at, inner, layer.name, Below(variables, inner)));
  }
  return OkStatus();
}

void AddInOrder(const model::Layer& layer, const std::string& prefix, const Specs& variables,
                Specs& ordered);

// Adds the variables in the order of the layers.
void AddInOrder(const model::Model& model, const std::string& prefix, const Specs& variables,
                Specs& ordered) {
  for (const model::Layer& layer : model.layers) AddInOrder(layer, prefix, variables, ordered);
}

void AddInOrder(const model::Layer& layer, const std::string& prefix, const Specs& variables,
                Specs& ordered) {
  const std::string inner = StrCat(prefix, layer.name, "/");
  const Specs below = Below(variables, inner);
  if (const auto* nested = layer.config.As<model::NestedModel>()) {
    AddInOrder(*nested->model, inner, below, ordered);
  } else if (const auto* each = layer.config.As<model::layers::TimeDistributed>()) {
    AddInOrder(*each->layer, inner, below, ordered);
  } else {
    ordered.insert(ordered.end(), below.begin(), below.end());
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
