// Bundles what is needed to act on a job: the observation, the decision, and what the control loop
// remembers about the job.
#pragma once

#include <string>

namespace tfjob::api {
struct TFJob;
}
namespace tfjob::plan {
struct NamedEvent;
}

namespace tfjob::control {

struct Decision;
struct Memory;
struct Observation;

// References values of the reconcile in progress.
struct ActContext {
  const Observation& observation;
  const Decision& decision;
  Memory& memory;

  const api::TFJob& job() const;
  const std::string& name_space() const;
  // Queues an event about a problem, but only once while the problem lasts. After refusals with 20
  // different causes, drops further refusals until the server accepts an object.
  void ReportOnce(plan::NamedEvent event) const;
};

}  // namespace tfjob::control
