#include "operator/control/cache/pack_job.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/conditions.h"
#include "operator/api/names.h"
#include "operator/api/status_json.h"
#include "operator/objects/custom_resource.h"

namespace tfjob::control {
namespace {

using objects::CustomResource;
using objects::PackedResource;

constexpr char kLastApplied[] = "kubectl.kubernetes.io/last-applied-configuration";

// Returns the type of the newest condition that is True; "Pending" if there is none.
std::string StateOf(const JsonField& status) {
  const JsonField conditions = status["conditions"];
  const size_t count =
      conditions.present() && conditions.value()->is_array() ? conditions.value()->size() : 0;
  for (size_t i = count; i-- > 0;) {
    const JsonField condition = conditions[i];
    if (condition["status"].StringOr("").value_or("") != "True") continue;
    return condition["type"].StringOr("").value_or("");
  }
  return "Pending";
}

// Returns a copy of the spec without the pod templates.
Json WithoutTemplates(Json spec) {
  if (!spec.is_object()) return spec;
  const auto replicas = spec.find("tfReplicaSpecs");
  if (replicas == spec.end() || !replicas->is_object()) return spec;
  for (auto& [type, replica] : replicas->items()) {
    if (replica.is_object()) replica.erase("template");
  }
  return spec;
}

std::string TextOf(const JsonField& root, bool ended) {
  const JsonField spec = root["spec"];
  const JsonField status = root["status"];
  std::string text = "{";
  if (spec.present()) {
    const std::string printed =
        ended ? PrintJson(WithoutTemplates(*spec.value())) : PrintJson(*spec.value());
    text += StrCat("\"spec\":", printed);
  }
  if (status.present()) {
    text += StrCat(spec.present() ? "," : "", "\"status\":", PrintJson(*status.value()));
  }
  text += '}';
  text.shrink_to_fit();
  return text;
}

}  // namespace

std::shared_ptr<const PackedResource> PackJob(const CustomResource& job) {
  const JsonField root(*job.object);
  auto packed = std::make_shared<PackedResource>();
  packed->metadata = job.metadata;
  packed->metadata.annotations.erase(kLastApplied);
  packed->api_version = job.api_version;
  packed->kind = job.kind;
  packed->state = StateOf(root["status"]);
  packed->text = TextOf(root, api::IsFinished(api::ReadStatus(root["status"])));
  packed->problem = job.problem;
  return packed;
}

std::shared_ptr<const PackedResource> AsPackedJob(const client::Object& object) {
  if (auto packed = client::As<PackedResource>(object)) return packed;
  const auto job = client::As<CustomResource>(object);
  return job == nullptr ? nullptr : PackJob(*job);
}

client::Object PackIfJob(client::Object object) {
  const auto job = client::As<CustomResource>(object);
  if (job == nullptr || job->kind != api::kKind) return object;
  return PackJob(*job);
}

}  // namespace tfjob::control
