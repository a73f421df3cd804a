#include "tests/fuzz/manifest_property.h"

#include <nlohmann/json.hpp>

#include "operator/api/defaults.h"
#include "operator/api/replicas.h"
#include "operator/api/validate.h"
#include "operator/manifest/manifest.h"
#include "operator/manifest/tfjob_json.h"
#include "operator/objects/pod.h"
#include "operator/objects/service.h"
#include "runtime/base/check.h"

namespace tfjob::fuzz {
namespace {

void CheckJob(const api::TFJob& job) {
  const StatusOr<api::TFJob> again = manifest::ParseTFJob(manifest::ToJson(job));
  ENFORCE(again.ok(), StrCat("a printed job must read: ", Message(again.status())));
  ENFORCE(*again == job, "a printed job must read as the same job");
  api::TFJob defaulted = job;
  api::SetDefaults(defaulted);
  api::TFJob twice = defaulted;
  api::SetDefaults(twice);
  ENFORCE(twice == defaulted, "defaults must be idempotent");
  ENFORCE(api::Validate(job) == api::Validate(defaulted), "defaults must not change the verdict");
  (void)api::Warnings(defaulted);
  for (const api::ReplicaType type : api::kReplicaTypes) (void)api::TFJobPort(defaulted, type);
}

}  // namespace

void CheckManifestProperties(std::string_view text) {
  const manifest::ManifestReport report = manifest::CheckManifest(text, "fuzz");
  const bool parsed = manifest::ParseManifest(text, "fuzz").ok();
  ENFORCE(parsed || !report.ok(), "a manifest that does not parse must not be valid");
  ENFORCE(!manifest::Print(report, "fuzz").empty(), "a report must say something");
  for (const manifest::ManifestObject& object : report.objects) {
    if (object.job) CheckJob(*object.job);
    (void)objects::ParsePod(*object.object);
    (void)objects::ParseService(*object.object);
  }
}

}  // namespace tfjob::fuzz
