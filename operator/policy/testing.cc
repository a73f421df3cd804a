#include "operator/policy/testing.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/defaults.h"
#include "operator/api/names.h"
#include "operator/api/replicas.h"
#include "operator/objects/service.h"

namespace tfjob::policy::testing {
namespace {

using State = objects::ContainerStatus::State;

objects::ContainerStatus Container(PodPhase phase) {
  objects::ContainerStatus container;
  container.name = api::kContainerName;
  container.started_at = At(0);
  switch (phase) {
    case PodPhase::kRunning:
      container.state = State::kRunning;
      break;
    case PodPhase::kSucceeded:
    case PodPhase::kFailed:
      container.state = State::kTerminated;
      container.exit_code = phase == PodPhase::kFailed ? 1 : 0;
      container.finished_at = At(1);
      break;
    default:
      container.started_at = Time();
      container.state = State::kWaiting;
  }
  return container;
}

template <typename Item>
std::vector<std::string> NamesOf(const std::vector<Item>& items) {
  std::vector<std::string> names;
  for (const Item& item : items) names.push_back(item.name);
  return names;
}

}  // namespace

Time At(int64_t seconds) {
  return *ParseTime("2026-11-21T09:00:00Z") + std::chrono::seconds(seconds);
}

Duration Steady(int64_t seconds) {
  return std::chrono::seconds(seconds);
}

api::TFJob MakeJob(const std::vector<TypeSpec>& types) {
  api::TFJob job;
  job.metadata.name = "mnist";
  job.metadata.name_space = "ns";
  job.metadata.uid = "job-uid";
  job.metadata.resource_version = "1";
  const Json pod_template = {
      {"spec", {{"containers", {{{"name", "tensorflow"}, {"image", "trainer"}}}}}}};
  for (const TypeSpec& type : types) {
    api::ReplicaSpec& spec = job.spec.replicas[type.type];
    spec.replicas = type.replicas;
    spec.restart_policy = type.policy;
    spec.pod_template = std::make_shared<const Json>(pod_template);
  }
  api::SetDefaults(job);
  return job;
}

api::TFJob StartedJob(const std::vector<TypeSpec>& types) {
  api::TFJob job = MakeJob(types);
  job.status = Decide(job, Snapshot(), At(0), DecisionOptions()).status;
  return job;
}

objects::Pod MakePod(const std::string& name, PodPhase phase) {
  objects::Pod pod;
  pod.metadata.name = name;
  pod.metadata.name_space = "ns";
  pod.metadata.uid = "uid-" + name;
  pod.phase = phase;
  pod.node_name = "node-1";
  pod.containers = {Container(phase)};
  return pod;
}

objects::Pod Exited(const std::string& name, int32_t code) {
  objects::Pod pod = MakePod(name, code == 0 ? PodPhase::kSucceeded : PodPhase::kFailed);
  pod.containers[0].exit_code = code;
  return pod;
}

objects::Pod Evicted(const std::string& name) {
  objects::Pod pod = MakePod(name, PodPhase::kFailed);
  pod.containers.clear();
  pod.reason = "Evicted";
  pod.message = "the node was low on memory";
  return pod;
}

objects::Pod Terminating(objects::Pod pod, int64_t requested_at, int64_t grace) {
  pod.metadata.deletion_timestamp = At(requested_at + grace);
  pod.metadata.deletion_grace_period_seconds = grace;
  return pod;
}

objects::Pod RestartedTimes(objects::Pod pod, int32_t times) {
  pod.containers[0].restart_count = times;
  return pod;
}

objects::Pod WithAttempt(objects::Pod pod, int32_t attempt) {
  pod.metadata.labels.Set(api::kAttemptLabel, StrCat(attempt));
  return pod;
}

objects::Pod WithSidecar(objects::Pod pod, bool running) {
  objects::ContainerStatus sidecar = Container(running ? PodPhase::kRunning : PodPhase::kFailed);
  sidecar.name = "proxy";
  pod.containers.push_back(sidecar);
  pod.phase = running ? PodPhase::kRunning : PodPhase::kFailed;
  return pod;
}

objects::Service MakeService(const std::string& name) {
  objects::Service service;
  service.metadata.name = name;
  service.metadata.name_space = "ns";
  service.metadata.uid = "service-uid-" + name;
  return service;
}

std::shared_ptr<const objects::Pod> Share(objects::Pod pod) {
  return std::make_shared<const objects::Pod>(std::move(pod));
}

Scene::Scene(api::TFJob of, bool services) : job(std::move(of)) {
  snapshot.history = &history;
  if (!services) return;
  for (const auto& [type, spec] : job.spec.replicas) {
    for (int32_t i = 0; i < api::Replicas(job, type); ++i) {
      snapshot.services.push_back(std::make_shared<const objects::Service>(
          MakeService(api::ReplicaName(job.metadata.name, type, i))));
    }
  }
}

void Scene::Put(objects::Pod pod) {
  Remove(pod.metadata.name);
  snapshot.pods.push_back(Share(std::move(pod)));
}

void Scene::Remove(std::string name) {
  std::erase_if(snapshot.pods, [&](const auto& pod) { return pod->metadata.name == name; });
}

Verdict Scene::Reconcile(int64_t at) {
  snapshot.steady_now = Steady(at);
  Remember(job, snapshot, options, history);
  return Decide(job, snapshot, At(at), options);
}

Verdict Scene::ReconcileAndWrite(int64_t at) {
  Verdict verdict = Reconcile(at);
  job.status = verdict.status;
  return verdict;
}

std::vector<std::string> Created(const Verdict& verdict) {
  return NamesOf(verdict.create_pods);
}

std::vector<std::string> Deleted(const Verdict& verdict) {
  return NamesOf(verdict.delete_pods);
}

std::vector<std::string> Waiting(const Verdict& verdict) {
  return NamesOf(verdict.waiting_pods);
}

std::vector<std::string> Reasons(const Verdict& verdict) {
  std::vector<std::string> reasons;
  for (const JobEvent& event : verdict.events) reasons.push_back(event.reason);
  return reasons;
}

std::string Conditions(const api::TFJobStatus& status) {
  std::string text;
  for (const api::Condition& condition : status.conditions) {
    if (!text.empty()) text += ' ';
    text += condition.status ? std::string(api::Name(condition.type))
                             : StrCat("(", api::Name(condition.type), ")");
  }
  return text;
}

}  // namespace tfjob::policy::testing
