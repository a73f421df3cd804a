// Words the events that report what became of a plan's calls: "Created pods: x, y" under
// SuccessfulCreatePod, "Deleted service: x", one for all objects of a kind; and failures,
// "Error creating: …", as standing warnings. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/objects/kind.h"
#include "operator/plan/named_event.h"
#include "runtime/base/status.h"

namespace tfjob::control {

// An object of the job.
struct Child {
  std::string name;
  std::string uid;
};

plan::NamedEvent CreatedEvent(const api::TFJob& job, objects::Kind kind,
                              const std::vector<Child>& children);
// Refusals that differ only in numbers share one cause, but have names of their own.
plan::NamedEvent CreateFailedEvent(const api::TFJob& job, objects::Kind kind, const Status& error);
// The pod group could not be brought into step with the spec.
plan::NamedEvent ChangeFailedEvent(const api::TFJob& job, const Status& error);
// Returns true if `cause` is that of a CreateFailedEvent or a ChangeFailedEvent.
bool IsCreateFailed(std::string_view cause);

plan::NamedEvent DeletedEvent(const api::TFJob& job, objects::Kind kind,
                              const std::vector<Child>& children);
plan::NamedEvent DeleteFailedEvent(const api::TFJob& job, objects::Kind kind,
                                   const std::string& uid, const Status& error);

// A pod is not a member of the group it was created for.
plan::NamedEvent SchedulingGroupDroppedEvent(const api::TFJob& job, const std::string& pod);

// Returns true if an event reports routine work ("Created pods: x, y"), so that it may be dropped
// if there are too many.
bool IsRoutine(const objects::Event& event);

}  // namespace tfjob::control
