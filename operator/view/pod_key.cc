#include "operator/view/pod_key.h"

#include <nlohmann/json.hpp>

#include "operator/api/names.h"

namespace tfjob::view {
namespace {

// Returns the member if it has this type, and an empty value of the type otherwise.
const Json& MemberOf(const Json& object, const char* name, Json::value_t type) {
  static const Json kNone[] = {Json::array(), Json::object(), Json("")};
  if (object.is_object()) {
    const auto found = object.find(name);
    if (found != object.end() && found->type() == type) return *found;
  }
  if (type == Json::value_t::array) return kNone[0];
  return type == Json::value_t::object ? kNone[1] : kNone[2];
}

bool IsNamed(const Json& object, const char* name) {
  return MemberOf(object, "name", Json::value_t::string) == name;
}

}  // namespace

std::optional<wire::JobKey> KeyOfPod(const Json& pod) {
  const Json& spec = MemberOf(pod, "spec", Json::value_t::object);
  std::optional<wire::JobKey> result;
  for (const Json& container : MemberOf(spec, "containers", Json::value_t::array)) {
    if (!IsNamed(container, api::kContainerName)) continue;
    for (const Json& variable : MemberOf(container, "env", Json::value_t::array)) {
      if (!IsNamed(variable, "TFJOB_KEY")) continue;
      const Json& value = MemberOf(variable, "value", Json::value_t::string);
      auto key = wire::JobKey::Parse(value.get_ref<const std::string&>());
      if (key.ok()) result = *std::move(key);
    }
  }
  return result;
}

}  // namespace tfjob::view
