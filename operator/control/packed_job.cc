#include "operator/control/packed_job.h"

#include <nlohmann/json.hpp>

#include "runtime/base/check.h"
#include "runtime/base/json_view.h"

namespace tfjob::control {
namespace {

std::string StateOf(const objects::CustomResource& job) {
  const JsonField conditions = JsonField(*job.object)["status"]["conditions"];
  const size_t count =
      conditions.present() && conditions.value()->is_array() ? conditions.value()->size() : 0;
  for (size_t i = count; i-- > 0;) {
    const JsonField condition = conditions[i];
    if (condition["status"].StringOr("").value_or("") != "True") continue;
    return condition["type"].StringOr("").value_or("");
  }
  return "Pending";
}

// The fast parser rejects only JSON that is nested too deeply, which ParseJson can still parse.
Json Parse(const std::string& text) {
  thread_local JsonDocument document;
  if (const auto view = document.Parse(text); view.ok()) return ToJson(*view);
  StatusOr<Json> json = ParseJson(text, "");
  ENFORCE(json.ok(), "the text of a stored job does not parse");
  return *std::move(json);
}

}  // namespace

PackedJob::PackedJob(const objects::CustomResource& job)
    : metadata_(job.metadata),
      api_version_(job.api_version),
      kind_(job.kind),
      state_(StateOf(job)),
      text_(PrintJson(*job.object)) {}

std::shared_ptr<const objects::CustomResource> PackedJob::Unpack() const {
  auto job = std::make_shared<objects::CustomResource>();
  job->metadata = metadata_;
  job->api_version = api_version_;
  job->kind = kind_;
  job->object = std::make_shared<const Json>(Parse(text_));
  return job;
}

}  // namespace tfjob::control
