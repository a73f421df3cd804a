// Holds a verdict under construction: what every step of Decide reads, and the few ways in
// which steps write.
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
  Verdict verdict;  // initially has the job's status
  Replicas replicas;
  // Nothing may be created until the pod group has been admitted to its queue, or can be
  // created at all.
  bool waits_for_queue = false;
  // Why the pod group cannot be created; "" if it can.
  std::string obstacle;
  // The job is being resumed: departed pods belong to its run before the suspension.
  bool resumes = false;

  api::TFJobStatus& status() { return verdict.status; }
  const History* history() const { return snapshot.history; }
  std::string NameOf(const Slot& slot) const;

  // Arranges the pods again according to the current status.
  void Rearrange();
  // Adds an event unless it is a standing one that has already been reported.
  void AddEvent(Event event);
  void AddEvent(objects::EventType type, std::string reason, std::string message,
                std::string cause);
  // Requests a reconcile after `delay` at the latest.
  void RequeueAfter(Duration delay);
  void DeletePod(const objects::Pod& pod, DeleteReason reason);

  // Returns the verdict, with its lists in slot order. Its status is the job's own if it
  // contains no news.
  Verdict Finish();
};

}  // namespace tfjob::policy
