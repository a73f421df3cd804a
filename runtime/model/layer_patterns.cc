#include "runtime/model/layer_patterns.h"

#include <fnmatch.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/did_you_mean.h"
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

  Status CheckUse(std::string_view key) const {
    for (size_t i = 0; i < used_.size(); ++i) {
      if (used_[i]) continue;
      return InvalidArgument(key, ": \"", patterns_[i], "\" matches no layer",
                             DidYouMean(patterns_[i], names_));
    }
    return OkStatus();
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

Status ChangeLayers(Model& model, std::string_view key, std::span<const std::string> patterns,
                    absl::FunctionRef<void(Layer&)> change) {
  if (patterns.empty()) return OkStatus();
  LayerPatterns layers(patterns, change);
  Model changed = layers.Changed(model, "");
  RETURN_IF_ERROR(layers.CheckUse(key));
  model = std::move(changed);
  return OkStatus();
}

}  // namespace

Status Freeze(Model& model, std::span<const std::string> patterns) {
  return ChangeLayers(model, "model.frozen", patterns, [](Layer& layer) {
    layer.frozen_from_outside = layer.trainable || layer.frozen_from_outside;
    layer.trainable = false;
  });
}

Status Recompute(Model& model, std::span<const std::string> patterns) {
  return ChangeLayers(model, "model.recompute", patterns,
                      [](Layer& layer) { layer.recompute = true; });
}

}  // namespace tfjob::model
