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

// Holds references to values of the reconcile in progress.
struct ActContext {
  const Observation& observation;
  const Decision& decision;
  Memory& memory;

  const api::TFJob& job() const;
  const std::string& name_space() const;
  // Queues an event about a problem, but only once, however long the problem lasts. Leaves out
  // further refusals after the first 20 of different causes, until the server accepts an object.
  void ReportOnce(plan::NamedEvent event) const;
};

}  // namespace tfjob::control
