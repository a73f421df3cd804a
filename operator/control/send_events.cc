#include "operator/control/send_events.h"

#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "operator/control/call_errors.h"
#include "operator/control/dependencies.h"
#include "operator/control/log.h"
#include "operator/control/memory.h"
#include "operator/control/pacing.h"
#include "operator/objects/event.h"
#include "runtime/base/clock.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::control {
namespace {

void MarkReported(const plan::NamedEvent& event, Memory& memory) {
  if (event.standing) memory.history.reported.insert(event.cause);
}

std::vector<Status> CreateEvents(const Dependencies& dependencies,
                                 const std::vector<plan::NamedEvent>& events) {
  std::vector<Status> results(events.size());
  const Time now = dependencies.clock.Now();
  dependencies.pool.ParallelFor(
      static_cast<int64_t>(events.size()), 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          Json event = objects::ToJson(events[i].event, now);
          event["metadata"]["name"] = events[i].name;
          results[i] = dependencies.client.Create(objects::Kind::kEvent, event).status();
        }
      });
  return results;
}

}  // namespace

void SendEvents(const Dependencies& dependencies, const RecordEvent& record, Memory& memory) {
  if (memory.events.empty()) return;
  std::vector<plan::NamedEvent> events = std::exchange(memory.events, {});
  if (record) {
    for (plan::NamedEvent& event : events) {
      MarkReported(event, memory);
      record(std::move(event.name), std::move(event.event));
    }
    return;
  }
  const std::vector<Status> results = CreateEvents(dependencies, events);
  for (size_t i = 0; i < events.size(); ++i) {
    // The name is derived from the cause, so if it is taken, the event has already been sent.
    if (results[i].ok() || absl::IsAlreadyExists(results[i])) {
      MarkReported(events[i], memory);
    } else if (IsTransient(results[i])) {
      kLog.Debug("event not sent yet", {{"event", events[i].event.message}, {"error", results[i]}});
      if (memory.events.size() < kMaxEventsKept) memory.events.push_back(std::move(events[i]));
    } else if (!absl::IsFailedPrecondition(results[i])) {  // the namespace is terminating
      kLog.Warning("event refused", {{"event", events[i].event.message}, {"error", results[i]}});
    }
  }
}

}  // namespace tfjob::control
