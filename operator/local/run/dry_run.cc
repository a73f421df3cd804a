#include "operator/local/run/dry_run.h"

#include <nlohmann/json.hpp>

#include "operator/api/names.h"
#include "operator/api/replicas.h"
#include "operator/policy/verdict.h"
#include "operator/render/render.h"

namespace tfjob::local {
namespace {

// Returns a verdict that creates the first service and the first pod of each replica type, as for a
// running job.
policy::Verdict FirstOfEachType(const api::TFJob& job) {
  policy::Verdict verdict;
  for (const auto& [type, spec] : job.spec.replicas) {
    if (api::Replicas(job, type) == 0) continue;
    const policy::Slot slot{type, 0};
    const std::string name = api::ReplicaName(job.metadata.name, type, 0);
    verdict.create_services.push_back({slot, name});
    verdict.create_pods.push_back({slot, name, 0});
  }
  return verdict;
}

}  // namespace

Status DryRun::Add(objects::Kind kind, const Json& object, const std::string& where) {
  const StatusOr<client::Object> created = store_.Create(kind, object);
  if (!created.ok() && !absl::IsAlreadyExists(created.status())) {
    return InvalidArgument(where, ": ", Message(created.status()));
  }
  const JsonField metadata = JsonField(object)["metadata"];
  const std::string name_space = metadata["namespace"].StringOr("").value_or("");
  const std::string name = metadata["name"].StringOr("").value_or("");
  const auto [place, fresh] = places_.emplace(client::Key{kind, name_space, name}, where);
  if (fresh) return OkStatus();
  return InvalidArgument(where, ": metadata.name: ", place->second,
                         " is the same object, in namespace \"", name_space, "\"");
}

Status DryRun::AddConfigMap(const Json& object, const std::string& where) {
  return Add(objects::Kind::kConfigMap, object, where);
}

Status DryRun::AddJob(const Json& object, const api::TFJob& job, const std::string& where) {
  RETURN_IF_ERROR(Add(objects::Kind::kTFJob, object, where));
  const auto desired = render::Render(job, FirstOfEachType(job), render::Loopback(1));
  if (!desired.ok()) return Annotate(desired.status(), where);
  for (const render::DesiredObject& child : desired->objects()) {
    const auto created = store_.Create(child.kind, desired->Build(child));
    if (created.ok()) continue;
    return InvalidArgument(where, ": spec.tfReplicaSpecs.", api::Name(child.slot.type),
                           ".template: ", Message(created.status()));
  }
  return OkStatus();
}

}  // namespace tfjob::local
