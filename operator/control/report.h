// Builds the events that report the results of a plan's calls. For successes, there is one event
// for all objects of a kind: "Created pods: x, y" with reason SuccessfulCreatePod, "Deleted
// service: x". Failures ("Error creating: …") become warnings that are sent only once while the
// problem lasts. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/api/tfjob.h"
#include "operator/objects/kind.h"
#include "operator/plan/named_event.h"
#include "runtime/base/status.h"

namespace tfjob::control {

// Identifies an object of the job.
struct Child {
  std::string name;
  std::string uid;
};

plan::NamedEvent CreatedEvent(const api::TFJob& job, objects::Kind kind,
                              const std::vector<Child>& children);
// If two messages differ only in numbers (including UUIDs and hexadecimal ids), the events have
// different names but the same cause, so only the first is reported. The same applies to the other
// failures below.
plan::NamedEvent CreateFailedEvent(const api::TFJob& job, objects::Kind kind, const Status& error);
// Reports that the pod group or the NetworkPolicy could not be changed to match the spec.
plan::NamedEvent ChangeFailedEvent(const api::TFJob& job, objects::Kind kind, const Status& error);
// Returns true if `cause` is the cause of a CreateFailedEvent or a ChangeFailedEvent.
bool IsCreateFailed(std::string_view cause);

plan::NamedEvent DeletedEvent(const api::TFJob& job, objects::Kind kind,
                              const std::vector<Child>& children);
plan::NamedEvent DeleteFailedEvent(const api::TFJob& job, objects::Kind kind,
                                   const std::string& uid, const Status& error);

// Reports that the server dropped a pod's membership in the group that it was created for.
plan::NamedEvent SchedulingGroupDroppedEvent(const api::TFJob& job, const std::string& pod);

// Returns true if an event reports routine work ("Created pods: x, y") and may be dropped if there
// are too many events.
bool IsRoutine(const objects::Event& event);

}  // namespace tfjob::control
