#include "tests/simulation/simulation.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/names.h"
#include "operator/api/tfjob.h"
#include "tests/simulation/reports.h"

namespace tfjob::simulation {
namespace {

using objects::ContainerStatus;
using objects::Kind;
using objects::PodPhase;

constexpr int kActs = 60;
// A duration that is longer than the longest delay before a recreation.
constexpr Duration kLong = 11min;
constexpr int kCalmRounds = 8;

const std::vector<std::string> kPolicies = {api::kRestartPolicyNames.begin(),
                                            api::kRestartPolicyNames.end()};
const std::vector<std::string> kTypes = {"Chief", "Evaluator", "Master", "PS", "Worker"};

Json ReplicaSpec(int replicas, const std::string& policy) {
  const Json container = {{"name", "tensorflow"}, {"image", "trainer"}};
  return {{"replicas", replicas},
          {"restartPolicy", policy},
          {"template", {{"spec", {{"containers", Json::array({container})}}}}}};
}

// Returns a patch that sets the port of the tasks of this type.
Json PortPatch(const std::string& type, int port) {
  const Json ports = Json::array({{{"name", api::kPortName}, {"containerPort", port}}});
  const Json container = {{"name", "tensorflow"}, {"image", "trainer"}, {"ports", ports}};
  const Json pod_template = {{"spec", {{"containers", Json::array({container})}}}};
  return {{"spec", {{"tfReplicaSpecs", {{type, {{"template", pod_template}}}}}}}};
}

ContainerStatus& Tensorflow(objects::Pod& pod) {
  if (pod.containers.empty()) pod.containers.emplace_back().name = api::kContainerName;
  return pod.containers.front();
}

}  // namespace

int Simulation::Between(int least, int most) {
  // Do not use std::uniform_int_distribution, because its values differ between standard libraries.
  return least + static_cast<int>(random_() % static_cast<uint64_t>(most - least + 1));
}

std::string Simulation::Story(const std::string& problem) const {
  std::string text = problem;
  for (const std::string& what : story_) text += "\n  " + what;
  return text;
}

std::string Simulation::Run() {
  CreateJob();
  for (int i = 0; i < kActs; ++i) {
    Act();
    std::string problem = GetOn();
    if (problem.empty()) problem = invariants_.Check(cluster_, is_quiet_, calls_may_fail_);
    if (!problem.empty()) return Story(problem);
  }
  const std::string problem = Calm();
  return problem.empty() ? "" : Story(problem);
}

void Simulation::Act() {
  const int kind = Between(0, 19);
  if (kind < 10) {
    ActOfKubelet();
  } else if (kind < 14) {
    ActOfUser();
  } else if (kind < 15) {
    ActOfStranger();
  } else {
    Disturb();
  }
}

// Draws only one value per statement, because compilers evaluate the arguments of a call in
// different orders.
Json Simulation::RandomReplicas(int least, int most) {
  const int replicas = Between(least, most);
  return ReplicaSpec(replicas, Choose(kPolicies));
}

void Simulation::CreateJob() {
  Json specs = Json::object();
  const bool has_chief = OneIn(2);
  if (has_chief) specs[OneIn(2) ? "Chief" : "Master"] = ReplicaSpec(1, Choose(kPolicies));
  if (OneIn(2)) specs["PS"] = RandomReplicas(0, 2);
  if (OneIn(4)) specs["Evaluator"] = ReplicaSpec(1, Choose(kPolicies));
  if (!has_chief || OneIn(2)) specs["Worker"] = RandomReplicas(1, 4);
  Json policy = {{"cleanPodPolicy", Choose(std::vector<std::string>{"None", "Running", "All"})}};
  if (OneIn(3)) policy["restartScope"] = "Job";
  if (OneIn(3)) policy["backoffLimit"] = Between(0, 4);
  if (OneIn(6)) policy["suspend"] = true;
  if (OneIn(8)) policy["activeDeadlineSeconds"] = Between(1, 600);
  if (OneIn(8)) policy["ttlSecondsAfterFinished"] = Between(0, 600);
  Json spec = {{"tfReplicaSpecs", specs}, {"runPolicy", policy}};
  if (OneIn(4)) spec["successPolicy"] = "AllWorkers";
  if (OneIn(6)) spec["enableDynamicWorker"] = true;
  Json job = {{"apiVersion", api::kApiVersion},
              {"kind", api::kKind},
              {"metadata", {{"name", kJob}, {"namespace", kNamespace}}},
              {"spec", spec}};
  const bool gang = OneIn(4);
  if (gang) job["metadata"]["annotations"] = {{api::kGangSchedulerAnnotation, "scheduler-plugins"}};
  const StatusOr<client::Object> created = cluster_.store().Create(Kind::kTFJob, job);
  invariants_.job_was_deleted = false;
  if (created.ok() && policy.contains("suspend")) {
    invariants_.oracle.OnSuspend(client::MetadataOf(*created).uid);
  }
  Tell(StrCat("create job ", PrintJson(spec), gang ? " gang " : " ", created.status().ToString()));
}

void Simulation::Patch(const char* what, const Json& patch) {
  const Status status = cluster_.store().Patch(Cluster::KeyOf(Kind::kTFJob, kJob), patch).status();
  Tell(StrCat(what, " ", PrintJson(patch), " ", status.ToString()));
}

void Simulation::ActOfUser() {
  const std::optional<api::TFJob> job = cluster_.Job();
  if (!job) return CreateJob();
  switch (Between(0, 10)) {
    case 0:
    case 1:
    case 2:
      return EditReplicas(*job);
    case 3:
    case 4:
    case 5: {
      const bool suspend = !job->spec.run_policy.suspend;
      if (suspend) invariants_.oracle.OnSuspend(job->metadata.uid);
      return Patch(suspend ? "suspend" : "resume",
                   {{"spec", {{"runPolicy", {{"suspend", suspend}}}}}});
    }
    case 6:
      return Patch("label", {{"metadata", {{"labels", {{"n", StrCat(Between(0, 99))}}}}}});
    case 7:
      Tell("delete job");
      invariants_.job_was_deleted = true;
      cluster_.store().Delete(Cluster::KeyOf(Kind::kTFJob, kJob), {}).IgnoreError();
      return;
    case 8: {
      const auto pods = cluster_.Pods();
      if (pods.empty()) return;
      return DeletePod(*Choose(pods));
    }
    case 9: {
      const auto services = cluster_.Services();
      if (services.empty()) return;
      const std::string name = Choose(services)->metadata.name;
      Tell("delete service " + name);
      cluster_.store().Delete(Cluster::KeyOf(Kind::kService, name), {}).IgnoreError();
      return;
    }
    default:
      return EditPorts(*job);
  }
}

std::string Simulation::ChooseTypeOf(const api::TFJob& job) {
  std::vector<std::string> types;
  for (const auto& [type, spec] : job.spec.replicas) types.emplace_back(api::Name(type));
  return types.empty() ? "" : Choose(types);
}

void Simulation::EditReplicas(const api::TFJob& job) {
  const std::string type = ChooseTypeOf(job);
  if (type.empty()) return;
  const Json replicas = {{type, {{"replicas", Between(0, 4)}}}};
  Patch("scale", {{"spec", {{"tfReplicaSpecs", replicas}}}});
}

void Simulation::EditPorts(const api::TFJob& job) {
  const std::string type = ChooseTypeOf(job);
  if (type.empty()) return;
  Patch("change the port", PortPatch(type, Between(2221, 2225)));
}

void Simulation::Report(const objects::Pod& pod) {
  Json status = objects::StatusToJson(pod);
  status["metadata"] = {{"name", pod.metadata.name}, {"namespace", kNamespace}};
  cluster_.store().UpdateStatus(Kind::kPod, status).IgnoreError();
}

void Simulation::EndContainer(objects::Pod& pod, int code, bool stopped) {
  invariants_.oracle.OnExit(pod, code, stopped || pod.metadata.terminating());
  if (code != 0 && !stopped) invariants_.counts.OnFailure(cluster_, pod, code);
  pod.phase = code == 0 ? PodPhase::kSucceeded : PodPhase::kFailed;
  ContainerStatus& container = Tensorflow(pod);
  container.state = ContainerStatus::State::kTerminated;
  container.ready = false;
  container.exit_code = code;
  container.finished_at = TruncateToSeconds(cluster_.clock().Now());
}

void Simulation::Evict(objects::Pod& pod) {
  const int code = Choose(std::vector<int>{0, 0, 1, 137});
  EndContainer(pod, code, true);
  const Time now = TruncateToSeconds(cluster_.clock().Now());
  const bool knows_condition = OneIn(2);
  if (knows_condition) {
    pod.conditions.push_back({"DisruptionTarget", "True", "TerminationByKubelet", "", now});
  }
  // Some kubelets derive the phase from the exit code alone.
  if (!knows_condition || OneIn(2)) {
    pod.phase = PodPhase::kFailed;
    pod.reason = "Evicted";
  }
  Tell(StrCat("pod ", pod.metadata.name, " is evicted and exits with ", code, " in phase ",
              objects::Name(pod.phase), knows_condition ? " with the condition" : ""));
}

void Simulation::DeletePod(const objects::Pod& pod) {
  const std::string& name = pod.metadata.name;
  if (OneIn(2)) {
    objects::Pod evicted = pod;
    evicted.conditions.push_back({"DisruptionTarget", "True", "EvictionByEvictionAPI", "",
                                  TruncateToSeconds(cluster_.clock().Now())});
    Report(evicted);
    Tell("drain pod " + name);
  } else {
    Tell("delete pod " + name);
  }
  cluster_.store().Delete(Cluster::KeyOf(Kind::kPod, name), {}).IgnoreError();
}

void Simulation::ActOfKubelet() {
  const auto pods = cluster_.Pods();
  if (pods.empty()) return;
  objects::Pod pod = *Choose(pods);
  const std::string& name = pod.metadata.name;
  if (pod.metadata.terminating() && OneIn(2)) {
    Tell("pod " + name + " is gone");
    client::DeleteOptions now;
    now.grace_period_seconds = 0;
    cluster_.store().Delete(Cluster::KeyOf(Kind::kPod, name), now).IgnoreError();
    return;
  }
  if (pod.phase == PodPhase::kPending) {
    pod.phase = PodPhase::kRunning;
    pod.start_time = TruncateToSeconds(cluster_.clock().Now());
    Tensorflow(pod).state = ContainerStatus::State::kRunning;
    Tell("pod " + name + " runs");
  } else if (pod.phase == PodPhase::kRunning) {
    const int what = Between(0, 9);
    if (what < 3) {
      const int code = Choose(std::vector<int>{0, 0, 1, 137});
      EndContainer(pod, code, false);
      Tell(StrCat("pod ", name, " exits with ", code));
    } else if (what == 3) {
      Evict(pod);
    } else if (what == 4) {
      ++Tensorflow(pod).restart_count;
      invariants_.oracle.OnContainerRestart(pod);
      Tell("the container of pod " + name + " restarts");
    } else {
      return;
    }
  } else {
    return;
  }
  Report(pod);
}

// Acts as a foreign client: creates a pod with a name that the job may need.
void Simulation::ActOfStranger() {
  const std::string type = Choose(kTypes);
  const std::string name = api::ReplicaName(kJob, *api::ParseReplicaType(type), Between(0, 2));
  const Json container = {{"name", "main"}, {"image", "stranger"}};
  const Json pod = {{"apiVersion", "v1"},
                    {"kind", "Pod"},
                    {"metadata", {{"name", name}, {"namespace", kNamespace}}},
                    {"spec", {{"containers", Json::array({container})}}}};
  if (!cluster_.store().Create(Kind::kPod, pod).ok()) return;
  Tell("a stranger creates pod " + name);
}

client::Fault Simulation::RandomFault() {
  using client::Verb;
  client::Fault fault;
  const Verb verb = Choose(std::vector<Verb>{Verb::kGet, Verb::kCreate, Verb::kUpdateStatus,
                                             Verb::kPatch, Verb::kDelete});
  const Kind kind =
      Choose(std::vector<Kind>{Kind::kPod, Kind::kService, Kind::kTFJob, Kind::kEvent});
  fault.matches = [verb, kind](const client::Call& call) {
    return call.verb == verb && call.key.kind == kind;
  };
  events_may_be_lost_ |= kind == Kind::kEvent;
  fault.nth = Between(1, 3);
  fault.times = Between(1, 4);
  const std::vector<Status> errors = {Unavailable("away"),
                                      DeadlineExceeded("slow"),
                                      Internal("etcd"),
                                      ResourceExhausted("too many requests"),
                                      PermissionDenied("exceeded quota"),
                                      Aborted("conflict")};
  fault.error = Choose(errors);
  const bool unanswered = fault.error.code() == StatusCode::kUnavailable ||
                          fault.error.code() == StatusCode::kDeadlineExceeded;
  fault.executed = unanswered && OneIn(2);
  Tell(StrCat("fault: ", client::Name(verb), " ", client::Name(kind), " ", fault.error.ToString(),
              fault.executed ? " executed" : ""));
  return fault;
}

void Simulation::Hold() {
  std::vector<client::Key> keys;
  if (cluster_.Job()) keys.push_back(Cluster::KeyOf(Kind::kTFJob, kJob));
  for (const auto& pod : cluster_.Pods()) {
    keys.push_back(Cluster::KeyOf(Kind::kPod, pod->metadata.name));
  }
  for (const auto& service : cluster_.Services()) {
    keys.push_back(Cluster::KeyOf(Kind::kService, service->metadata.name));
  }
  if (keys.empty()) return;
  const client::Key key = Choose(keys);
  const Json patch = {{"metadata", {{"finalizers", Json::array({"example.com/hold"})}}}};
  if (!cluster_.store().Patch(key, patch).ok()) return;  // the object is being deleted
  held_.push_back(key);
  Tell("a finalizer holds " + client::ToString(key));
}

void Simulation::Release() {
  if (held_.empty()) return;
  Tell("the finalizers are taken away");
  const Json patch = {{"metadata", {{"finalizers", nullptr}}}};
  for (const client::Key& key : held_) cluster_.store().Patch(key, patch).IgnoreError();
  held_.clear();
}

void Simulation::CutWatches() {
  const bool all = OneIn(3);
  Tell(all ? "watches are cut" : "a watch is cut");
  cluster_.CutWatches(all);
}

void Simulation::Disturb() {
  switch (Between(0, 13)) {
    case 0:
      Tell("the operator dies");
      return cluster_.KillOperator();
    case 1:
      Tell("the operator restarts");
      calls_may_fail_ = false;
      return cluster_.StartOperator();
    case 2:
      return CutWatches();
    case 3:
      Tell("watches are mended");
      return cluster_.MendWatches();
    case 4:
      Tell("history is compacted");
      return cluster_.store().Compact();
    case 5:
      return cluster_.store().Bookmark();
    case 6:
    case 7:
      return Hold();
    case 8:
      return Release();
    case 9:
      if (cluster_.has_second_operator()) {
        Tell("the second operator ends");
        return cluster_.StopSecondOperator();
      }
      Tell("a second operator starts");
      return cluster_.StartSecondOperator();
    case 10: {
      const bool back = OneIn(2);
      Tell(StrCat("the operator's clock is set ", back ? "back" : "forward", " by a day"));
      return cluster_.operator_clock().Step(back ? -24h : 24h);
    }
    default:
      calls_may_fail_ = true;
      cluster_.operator_client().Inject(RandomFault());
  }
}

std::string Simulation::GetOn() {
  is_quiet_ = false;
  switch (Between(0, 5)) {
    case 0:
      return "";
    case 1:
      for (int i = Between(1, 5); i > 0; --i) cluster_.DeliverOne();
      return "";
    case 2:
      for (int i = Between(1, 3); i > 0; --i) cluster_.StepOne();
      return "";
    case 3:
      if (!cluster_.Advance(Choose(std::vector<Duration>{100ms, 1s, 10s, 2min}))) break;
      is_quiet_ = cluster_.sees_everything();
      return "";
    default:
      if (!cluster_.RunUntilIdle()) break;
      is_quiet_ = cluster_.sees_everything();
      return "";
  }
  // Two operators that see different objects may undo each other's changes forever. In a cluster,
  // this stops when one of them notices that it has lost the lease.
  if (!cluster_.OperatorsMayDiffer()) return "the loop finds no rest";
  Tell("the second operator notices that it has lost the lease");
  cluster_.StopSecondOperator();
  return cluster_.RunUntilIdle() ? "" : "the loop finds no rest after one operator has ended";
}

void Simulation::BeHonestKubelet() {
  client::DeleteOptions now;
  now.grace_period_seconds = 0;
  for (const auto& pod : cluster_.Pods()) {
    const bool is_strangers = pod->metadata.controller() == nullptr;
    if (is_strangers || pod->metadata.terminating()) {
      cluster_.store().Delete(Cluster::KeyOf(Kind::kPod, pod->metadata.name), now).IgnoreError();
    } else if (pod->phase == PodPhase::kPending) {
      objects::Pod running = *pod;
      running.phase = PodPhase::kRunning;
      running.start_time = TruncateToSeconds(cluster_.clock().Now());
      Tensorflow(running).state = ContainerStatus::State::kRunning;
      Report(running);
    }
  }
}

std::string Simulation::Calm() {
  Tell("calm");
  cluster_.operator_client().Clear();
  cluster_.MendWatches();
  cluster_.StopSecondOperator();
  Release();
  if (!cluster_.alive()) cluster_.StartOperator();
  for (int round = 0; round < kCalmRounds; ++round) {
    BeHonestKubelet();
    if (!cluster_.Advance(kLong)) return "the loop finds no rest";
    const std::string problem = invariants_.Check(cluster_, true, false);
    if (!problem.empty()) return problem;
  }
  std::string problem = CheckQuiet(cluster_);
  if (problem.empty()) problem = CheckDeadlines(cluster_);
  if (problem.empty()) problem = invariants_.CheckLimit(cluster_);
  const bool all_reported = cluster_.starts() == 1 && !events_may_be_lost_;
  if (problem.empty()) problem = CheckReports(cluster_, invariants_.oracle, all_reported);
  const int writes = cluster_.Writes(true);
  if (problem.empty() && !cluster_.Advance(kLong)) problem = "the loop finds no rest";
  if (problem.empty() && cluster_.Writes(true) != writes)
    problem = "it writes although nothing changes";
  // A new operator must find the desired state, and write nothing. Do not count writes of events:
  // events that the operator repeats already exist on the server, with the same names.
  cluster_.StartOperator();
  const int before = cluster_.Writes(false);
  if (problem.empty() && !cluster_.Advance(kLong)) problem = "the loop finds no rest";
  if (problem.empty() && cluster_.Writes(false) != before) {
    problem = "it writes after a restart although nothing changed";
  }
  return problem.empty() ? CheckQuiet(cluster_) : problem;
}

}  // namespace tfjob::simulation
