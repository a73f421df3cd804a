#include "operator/control/turn.h"

#include <algorithm>
#include <utility>

namespace tfjob::control {

void Turn::ReportOnce(plan::NamedEvent event) const {
  if (memory.history.reported.count(event.cause) > 0) return;
  const auto same = [&](const plan::NamedEvent& waiting) { return waiting.cause == event.cause; };
  if (std::any_of(memory.events.begin(), memory.events.end(), same)) return;
  memory.events.push_back(std::move(event));
}

}  // namespace tfjob::control
