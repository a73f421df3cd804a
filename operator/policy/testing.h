// Provides literal jobs, pods and snapshots for the tests of this package and of those that
// build on it.
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

// 2026-11-21T09:00:00Z plus `seconds`.
Time At(int64_t seconds);

struct TypeSpec {
  ReplicaType type = ReplicaType::kWorker;
  int32_t replicas = 1;
  RestartPolicy policy = RestartPolicy::kNever;
};
// The job "mnist" in namespace "ns", UID "job-uid", with defaults, not reconciled yet.
api::TFJob MakeJob(const std::vector<TypeSpec>& types);
// The same job after its first reconcile, at At(0): Created, started.
api::TFJob StartedJob(const std::vector<TypeSpec>& types);

// A pod of the job. Its UID is "uid-<name>"; its container `tensorflow` is in the state that fits
// the phase (terminated with 0 or 1) and started at At(0).
objects::Pod MakePod(const std::string& name, PodPhase phase);
objects::Pod Exited(const std::string& name, int32_t code);  // phase Succeeded or Failed
objects::Pod Evicted(const std::string& name);               // phase Failed, no container status
objects::Pod Terminating(objects::Pod pod, int64_t requested_at, int64_t grace = 30);
objects::Pod RestartedTimes(objects::Pod pod, int32_t times);  // by the kubelet, in place
objects::Pod WithAttempt(objects::Pod pod, int32_t attempt);
objects::Pod WithSidecar(objects::Pod pod, bool running);
objects::Service MakeService(const std::string& name);

std::shared_ptr<const objects::Pod> Share(objects::Pod pod);

// One job in one cluster, reconciled repeatedly.
struct Scene {
  api::TFJob job;
  Snapshot snapshot;
  History history;
  Options options;

  // `services`: all services that the job wants exist, so that verdicts are about pods.
  explicit Scene(api::TFJob of, bool services = true);
  Scene(const Scene&) = delete;

  // Puts the pod into the snapshot, replacing one of the same name.
  void Put(objects::Pod pod);
  void Remove(std::string name);  // by value: may be the name of the removed pod
  // Calls Remember and Decide; the job stays unchanged.
  Verdict Look(int64_t at);
  // The same, and writes the verdict's status into the job.
  Verdict LookAndWrite(int64_t at);
};

// Names, in order.
std::vector<std::string> Created(const Verdict& verdict);
std::vector<std::string> Deleted(const Verdict& verdict);
std::vector<std::string> Waiting(const Verdict& verdict);
std::vector<std::string> Reasons(const Verdict& verdict);  // of events
// "Created Running"; a type with status False is in parentheses.
std::string Conditions(const api::TFJobStatus& status);

}  // namespace tfjob::policy::testing
