// Bundles what acting on one job needs: the job as observed, the decision, and what the loop
// remembers.
#pragma once

#include "operator/control/memory.h"
#include "operator/control/observation.h"

namespace tfjob::control {

// Refers to values of the reconcile in progress.
struct Turn {
  const Observation& observation;
  const Decision& decision;
  Memory& memory;

  const api::TFJob& job() const { return observation.job; }
  const std::string& name_space() const { return observation.job.metadata.name_space; }
  // Queues an event about a problem, once, however long the problem lasts.
  void ReportOnce(plan::NamedEvent event) const;
};

}  // namespace tfjob::control
