#include "runtime/model/freeze.h"

#include <fnmatch.h>

#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/did_you_mean.h"
#include "runtime/model/nested_model.h"

namespace tfjob::model {
namespace {

// Freezes layers in a copy of a model. Records the names of all layers, and the patterns that have
// matched a layer.
class Freezing {
 public:
  explicit Freezing(std::span<const std::string> patterns)
      : patterns_(patterns), used_(patterns.size()) {}

  Model Frozen(const Model& model, const std::string& prefix) {
    Model frozen = model;
    for (Layer& layer : frozen.layers) {
      const std::string name = prefix + layer.name;
      names_.push_back(name);
      if (Matches(name)) {
        layer.frozen_from_outside = layer.trainable || layer.frozen_from_outside;
        layer.trainable = false;
      }
      if (const auto* nested = layer.config.As<NestedModel>()) {
        layer.config =
            NestedModel{.model = std::make_shared<const Model>(Frozen(*nested->model, name + "/"))};
      }
    }
    return frozen;
  }

  Status CheckUse() const {
    for (size_t i = 0; i < used_.size(); ++i) {
      if (used_[i]) continue;
      return InvalidArgument("model.frozen: \"", patterns_[i], "\" matches no layer",
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
  std::vector<bool> used_;
  std::vector<std::string> names_;
};

}  // namespace

Status Freeze(Model& model, std::span<const std::string> patterns) {
  if (patterns.empty()) return OkStatus();
  Freezing freezing(patterns);
  Model frozen = freezing.Frozen(model, "");
  RETURN_IF_ERROR(freezing.CheckUse());
  model = std::move(frozen);
  return OkStatus();
}

}  // namespace tfjob::model
