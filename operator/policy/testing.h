// Provides jobs, pods and snapshots for the tests of this package and of packages that use it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator/policy/decide.h"
#include "operator/policy/facts/history.h"

namespace tfjob::policy::testing {

using api::ConditionType;
using api::ReplicaType;
using api::RestartPolicy;
using objects::PodPhase;

// Returns 2026-11-21T09:00:00Z plus `seconds`.
Time At(int64_t seconds);
// Returns the time of the steady clock at At(seconds).
Duration Steady(int64_t seconds);

struct TypeSpec {
  ReplicaType type = ReplicaType::kWorker;
  int32_t replicas = 1;
  RestartPolicy policy = RestartPolicy::kNever;
};
// Returns the job "mnist" in namespace "ns" with UID "job-uid" and defaults, not reconciled yet.
api::TFJob MakeJob(const std::vector<TypeSpec>& types);
// Returns the same job after its first reconcile at At(0), which sets Created and startTime.
api::TFJob StartedJob(const std::vector<TypeSpec>& types);

// MakePod returns a pod of the job. Its UID is "uid-<name>". The state of its container
// `tensorflow` matches the phase: terminated with exit code 0 (Succeeded) or 1 (Failed), running
// (Running), or waiting (any other phase). Unless the container is waiting, it started at At(0).
objects::Pod MakePod(const std::string& name, PodPhase phase);
objects::Pod Exited(const std::string& name, int32_t code);  // phase Succeeded or Failed
objects::Pod Evicted(const std::string& name);               // phase Failed, no container status
objects::Pod Terminating(objects::Pod pod, int64_t requested_at, int64_t grace = 30);
objects::Pod RestartedTimes(objects::Pod pod, int32_t times);  // by the kubelet, in place
objects::Pod WithAttempt(objects::Pod pod, int32_t attempt);
objects::Pod WithSidecar(objects::Pod pod, bool running);
objects::Service MakeService(const std::string& name);

std::shared_ptr<const objects::Pod> Share(objects::Pod pod);

// Represents a job in a cluster, for repeated reconciles.
struct Scene {
  api::TFJob job;
  Snapshot snapshot;
  History history;
  DecisionOptions options;

  // If `services` is true, all services that the job wants exist, so verdicts concern only pods.
  explicit Scene(api::TFJob of, bool services = true);
  Scene(const Scene&) = delete;

  // Adds the pod to the snapshot, replacing any pod with the same name.
  void Put(objects::Pod pod);
  void Remove(std::string name);  // by value, because it may be the removed pod's own name
  // Calls Remember and Decide, and leaves the job unchanged.
  Verdict Reconcile(int64_t at);
  // Calls Remember and Decide, and writes the verdict's status into the job.
  Verdict ReconcileAndWrite(int64_t at);
};

// Return the names (for events, the reasons) in a list of the verdict, in the list's order.
std::vector<std::string> Created(const Verdict& verdict);
std::vector<std::string> Deleted(const Verdict& verdict);
std::vector<std::string> Waiting(const Verdict& verdict);
std::vector<std::string> Reasons(const Verdict& verdict);
// Prints the condition types, with those that are False in parentheses: "Created (Running) Failed".
std::string Conditions(const api::TFJobStatus& status);

}  // namespace tfjob::policy::testing
