#include "operator/control/act_context.h"

#include <algorithm>
#include <utility>

#include "operator/control/memory.h"
#include "operator/control/observation.h"

namespace tfjob::control {

const api::TFJob& ActContext::job() const {
  return observation.job;
}

const std::string& ActContext::name_space() const {
  return observation.job.metadata.name_space;
}

void ActContext::ReportOnce(plan::NamedEvent event) const {
  if (memory.history.reported.count(event.cause) > 0) return;
  const auto same = [&](const plan::NamedEvent& waiting) { return waiting.cause == event.cause; };
  if (std::any_of(memory.events.begin(), memory.events.end(), same)) return;
  memory.events.push_back(std::move(event));
}

}  // namespace tfjob::control
