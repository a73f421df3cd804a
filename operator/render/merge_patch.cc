#include "operator/render/merge_patch.h"

#include <nlohmann/json.hpp>

namespace tfjob::render {

Json MergePatch(const Json& from, const Json& to) {
  if (!to.is_object()) return to;
  Json patch = Json::object();
  const Json& old = from.is_object() ? from : Json::object();
  for (const auto& [key, value] : old.items()) {
    if (!to.contains(key)) patch[key] = nullptr;
  }
  for (const auto& [key, value] : to.items()) {
    const auto found = old.find(key);
    if (found == old.end()) {
      patch[key] = value;
    } else if (*found != value) {
      patch[key] = MergePatch(*found, value);
    }
  }
  return patch;
}

}  // namespace tfjob::render
