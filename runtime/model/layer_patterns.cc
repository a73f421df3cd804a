#include "runtime/model/layer_patterns.h"

#include <fnmatch.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/model/any_length.h"
#include "runtime/model/nested_model.h"

namespace tfjob::model {
namespace {

// Changes layers in a copy of a model. Records the names of all layers, and the patterns that have
// matched a layer.
class LayerPatterns {
 public:
  LayerPatterns(std::span<const std::string> patterns, absl::FunctionRef<void(Layer&)> change)
      : patterns_(patterns), change_(change), used_(patterns.size()) {}

  Model Changed(const Model& model, const std::string& prefix) {
    Model changed = model;
    for (Layer& layer : changed.layers) {
      const std::string name = prefix + layer.name;
      names_.push_back(name);
      if (Matches(name)) change_(layer);
      if (const auto* nested = layer.config.As<NestedModel>()) {
        layer.config = NestedModel{
            .model = std::make_shared<const Model>(Changed(*nested->model, name + "/"))};
      }
    }
    return changed;
  }

  // Returns whether the pattern has matched a layer.
  bool used(size_t pattern) const { return used_[pattern]; }

  // `nothing` says what the pattern does not match.
  Status Unused(std::string_view key, size_t pattern, std::string_view nothing) const {
    return InvalidArgument(key, ": \"", patterns_[pattern], "\" matches ", nothing,
                           DidYouMean(patterns_[pattern], names_));
  }

 private:
  bool Matches(const std::string& name) {
    bool any = false;
    for (size_t i = 0; i < patterns_.size(); ++i) {
      if (fnmatch(patterns_[i].c_str(), name.c_str(), 0) != 0) continue;
      used_[i] = any = true;
    }
    return any;
  }

  std::span<const std::string> patterns_;
  absl::FunctionRef<void(Layer&)> change_;
  std::vector<bool> used_;
  std::vector<std::string> names_;
};

// Returns whether a pattern may match names that contain a slash, as those of all variables do.
bool MayMatchVariables(const std::string& pattern) {
  return pattern.find_first_of("/*?[") != std::string::npos;
}

// Returns an error if the model states its inputs and a pattern in Model::frozen matches nothing.
Status CheckStatedTypes(const Model& model) {
  std::vector<TensorType> in;
  for (const std::optional<TensorType>& stated : StatedInputs(model)) {
    if (!stated || HasAnyLength(model)) return OkStatus();
    in.push_back(*stated);
  }
  return CallTypes(model, in).status();
}

}  // namespace

Status Freeze(Model& model, std::span<const std::string> patterns) {
  if (patterns.empty()) return OkStatus();
  const auto freeze = [](Layer& layer) {
    layer.frozen_from_outside = layer.trainable || layer.frozen_from_outside;
    layer.trainable = false;
  };
  LayerPatterns layers(patterns, freeze);
  Model changed = layers.Changed(model, "");
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (MayMatchVariables(patterns[i])) {
      changed.frozen.push_back({.pattern = patterns[i], .optional = layers.used(i)});
    } else if (!layers.used(i)) {
      return layers.Unused("model.frozen", i, "no layer and no variable");
    }
  }
  RETURN_IF_ERROR(CheckStatedTypes(changed));
  model = std::move(changed);
  return OkStatus();
}

Status Recompute(Model& model, std::span<const std::string> patterns) {
  if (patterns.empty()) return OkStatus();
  const auto recompute = [](Layer& layer) { layer.recompute = true; };
  LayerPatterns layers(patterns, recompute);
  Model changed = layers.Changed(model, "");
  for (size_t i = 0; i < patterns.size(); ++i) {
    if (!layers.used(i)) return layers.Unused("model.recompute", i, "no layer");
  }
  model = std::move(changed);
  return OkStatus();
}

}  // namespace tfjob::model
