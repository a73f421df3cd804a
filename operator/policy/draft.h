// A verdict in the making: what every step of Decide reads, and the few ways in which steps write.
#pragma once

#include <memory>
#include <string>

#include "operator/policy/facts/options.h"
#include "operator/policy/facts/replicas.h"
#include "operator/policy/facts/snapshot.h"
#include "operator/policy/verdict.h"

namespace tfjob::policy {

class Draft {
 public:
  // All arguments must outlive the draft.
  Draft(const api::TFJob& job, const Snapshot& snapshot, Time now, const Options& options);

  const api::TFJob& job;
  const Snapshot& snapshot;
  const Time now;
  const Options& options;
  Verdict verdict;  // starts with the job's status
  Replicas replicas;
  // Nothing may be created before the pod group is let into its queue, or can be made at all.
  bool waits_for_queue = false;
  // Why it cannot be made; "" when it can.
  std::string obstacle;
  // The job is resumed: pods that are gone belong to its life before.
  bool begins_anew = false;

  api::TFJobStatus& status() { return verdict.status; }
  const History* history() const { return snapshot.history; }
  std::string NameOf(const Slot& slot) const;

  // Arranges the pods anew by what the status says now.
  void Rearrange();
  // Adds an event unless it is a standing one that was reported.
  void Tell(Event event);
  void Tell(objects::EventType type, std::string reason, std::string message, std::string cause);
  // Asks for a look after `delay` at the latest.
  void WakeAfter(Duration delay);
  void DeletePod(const objects::Pod& pod, DeleteReason reason);

  // The verdict, its lists in slot order; its status is the job's own when nothing of it is news.
  Verdict Finish();
};

}  // namespace tfjob::policy
