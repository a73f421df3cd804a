#include "operator/control/act_context.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "operator/control/memory.h"
#include "operator/control/observation.h"
#include "operator/control/report.h"

namespace tfjob::control {
namespace {

// The maximum number of different refusals that are reported before the server accepts an object
// again. A webhook may return a different message every time.
constexpr int64_t kMostRefusals = 20;

// Returns how many refusals have been reported or are waiting to be reported.
int64_t CountRefusals(const Memory& memory) {
  const std::set<std::string>& sent = memory.history.reported;
  return std::count_if(sent.begin(), sent.end(), IsCreateFailed) +
         std::count_if(memory.events.begin(), memory.events.end(),
                       [&](const plan::NamedEvent& waiting) {
                         return IsCreateFailed(waiting.cause) && !sent.contains(waiting.cause);
                       });
}

}  // namespace

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
  if (IsCreateFailed(event.cause) && CountRefusals(memory) >= kMostRefusals) return;
  memory.events.push_back(std::move(event));
}

}  // namespace tfjob::control
