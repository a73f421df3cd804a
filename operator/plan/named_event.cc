#include "operator/plan/named_event.h"

#include <utility>

#include "operator/policy/verdict.h"

namespace tfjob::plan {
namespace {

objects::ObjectReference ReferenceTo(const api::TFJob& job) {
  objects::ObjectReference reference;
  reference.api_version = api::kApiVersion;
  reference.kind = api::kKind;
  reference.name_space = job.metadata.name_space;
  reference.name = job.metadata.name;
  reference.uid = job.metadata.uid;
  reference.resource_version = job.metadata.resource_version;
  return reference;
}

}  // namespace

NamedEvent MakeEvent(const api::TFJob& job, objects::EventType type, std::string reason,
                     std::string message, std::string cause, bool standing) {
  NamedEvent event;
  event.name = policy::EventName(job, cause);
  event.event = {ReferenceTo(job), type, std::move(reason), std::move(message)};
  event.cause = std::move(cause);
  event.standing = standing;
  return event;
}

}  // namespace tfjob::plan
