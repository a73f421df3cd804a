#include "tests/timelines/player.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/names.h"
#include "operator/objects/pod.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "operator/policy/facts/network_policy.h"

namespace tfjob::timelines {
namespace {

using objects::ContainerStatus;
using objects::Kind;

StatusOr<int> Number(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    return InvalidArgument("expected a number, got ", text);
  }
  return value;
}

StatusOr<Duration> ParseDuration(const std::string& text) {
  const size_t digits = text.find_first_not_of("0123456789");
  const std::string unit = digits == std::string::npos ? "" : text.substr(digits);
  ASSIGN_OR_RETURN(const int count, Number(text.substr(0, digits)));
  if (unit == "ms") return Duration(1ms) * count;
  if (unit == "s") return Duration(1s) * count;
  if (unit == "m") return Duration(1min) * count;
  if (unit == "h") return Duration(1h) * count;
  return InvalidArgument("expected a duration such as 10s, got ", text);
}

// Returns the value of the word `key=value`, or "".
std::string Option(const Step& step, const std::string& key) {
  for (const std::string& word : step.words) {
    if (word.rfind(key + "=", 0) == 0) return word.substr(key.size() + 1);
  }
  return "";
}

bool Has(const Step& step, const std::string& word) {
  for (const std::string& each : step.words) {
    if (each == word) return true;
  }
  return false;
}

StatusOr<Kind> ParseKind(const std::string& text) {
  for (const Kind kind : {Kind::kTFJob, Kind::kPod, Kind::kService, Kind::kEvent, Kind::kPodGroup,
                          Kind::kWorkload, Kind::kNetworkPolicy}) {
    if (text == client::Name(kind)) return kind;
  }
  return InvalidArgument("unknown kind ", text);
}

StatusOr<client::Verb> ParseVerb(const std::string& text) {
  using client::Verb;
  for (const Verb verb : {Verb::kGet, Verb::kList, Verb::kCreate, Verb::kUpdate,
                          Verb::kUpdateStatus, Verb::kPatch, Verb::kDelete, Verb::kWatch}) {
    if (text == client::Name(verb)) return verb;
  }
  return InvalidArgument("unknown verb ", text);
}

StatusOr<Status> ParseError(const std::string& text) {
  if (text == "unavailable") return Unavailable("the server is away");
  if (text == "conflict") return Aborted("the object has been modified");
  if (text == "invalid") return InvalidArgument("admission denied the request");
  if (text == "throttled") return ResourceExhausted("too many requests");
  if (text == "no-such-kind") {
    return NotFound("the server could not find the requested resource");
  }
  if (text == "webhook") {
    return Internal("Internal error occurred: failed calling webhook \"guard.example.com\"");
  }
  if (text == "terminating") return FailedPrecondition("the namespace is being terminated");
  if (text == "forbidden") return PermissionDenied("exceeded quota: pods");
  return InvalidArgument("unknown error ", text);
}

Json MinimalPodSpec() {
  const Json container = {{"name", "tensorflow"}, {"image", "trainer"}};
  return {{"containers", Json::array({container})}};
}

// Adds the parts that are the same in the jobs of all timelines.
Json WholeJob(Json job) {
  job["apiVersion"] = "kubeflow.org/v1";
  job["kind"] = "TFJob";
  job["metadata"]["name"] = kJob;
  job["metadata"]["namespace"] = kNamespace;
  if (!job.contains("spec") || !job["spec"].contains("tfReplicaSpecs")) return job;
  Json& replicas = job["spec"]["tfReplicaSpecs"];
  if (!replicas.is_object()) return job;
  for (auto& [type, spec] : replicas.items()) {
    if (spec.is_object() && !spec.contains("template")) {
      spec["template"] = {{"spec", MinimalPodSpec()}};
    }
  }
  return job;
}

ContainerStatus& Tensorflow(objects::Pod& pod) {
  for (ContainerStatus& container : pod.containers) {
    if (container.name == api::kContainerName) return container;
  }
  pod.containers.emplace_back().name = api::kContainerName;
  return pod.containers.back();
}

void Start(objects::Pod& pod, Time now) {
  pod.phase = objects::PodPhase::kRunning;
  pod.start_time = now;
  ContainerStatus& container = Tensorflow(pod);
  container.state = ContainerStatus::State::kRunning;
  container.ready = true;
  container.started_at = now;
}

void End(objects::Pod& pod, int exit_code, Time now) {
  pod.phase = exit_code == 0 ? objects::PodPhase::kSucceeded : objects::PodPhase::kFailed;
  ContainerStatus& container = Tensorflow(pod);
  container.state = ContainerStatus::State::kTerminated;
  container.ready = false;
  container.exit_code = exit_code;
  container.reason = exit_code == 0 ? "Completed" : "Error";
  container.finished_at = now;
}

void Evict(objects::Pod& pod, int exit_code, Time now) {
  if (Tensorflow(pod).state != ContainerStatus::State::kTerminated) End(pod, exit_code, now);
  pod.phase = objects::PodPhase::kFailed;
  pod.reason = "Evicted";
  pod.message = "The node was low on resource: memory.";
  pod.conditions.push_back({"DisruptionTarget", "True", "TerminationByKubelet", pod.message, now});
}

void LeaveToSidecar(objects::Pod& pod, Time now) {
  End(pod, 0, now);
  pod.phase = objects::PodPhase::kRunning;
  pod.containers.emplace_back().name = "sidecar";
  pod.containers.back().state = ContainerStatus::State::kRunning;
}

}  // namespace

std::string FullName(const std::string& name) {
  const std::string type = name.substr(0, name.find('-'));
  return api::ParseReplicaType(type) ? StrCat(kJob, "-", name) : name;
}

Player::Player() = default;

const std::map<std::string, Player::Action>& Player::Actions() {
  static const std::map<std::string, Action> actions = {
      {"apply", &Player::Apply},
      {"patch", &Player::Patch},
      {"create", &Player::Create},
      {"delete", &Player::Delete},
      {"pod", &Player::Pod},
      {"pods", &Player::AllPods},
      {"node", &Player::Node},
      {"fault", &Player::AddFault},
      {"race", &Player::AddRace},
      {"pod_group", &Player::PodGroup},
      {"patch_pod_group", &Player::PatchPodGroup},
      {"patch_network_policy", &Player::PatchNetworkPolicy},
      {"native", &Player::Native},
      {"operator", &Player::Operator},
      {"keys", &Player::Keys},
      {"step_clock", &Player::StepClock},
      {"restart", &Player::Restart},
      {"mark", &Player::Mark},
      {"expect", &Player::Expect},
  };
  return actions;
}

void Player::KillOperatorAt(int call, bool carried_out) {
  dies_at_ = call;
  dies_after_ = carried_out;
}

Status Player::Play(const std::vector<Step>& steps) {
  RETURN_IF_ERROR(world_.StartOperator());
  if (dies_at_ > 0) world_.KillOperatorAt(dies_at_, dies_after_);
  starts_ = CountCalls();
  RETURN_IF_ERROR(world_.RunUntilIdle());
  for (const Step& step : steps) {
    std::string text;
    for (const std::string& word : step.words) text += " " + word;
    Status status = Run(step);
    if (!status.ok()) return Annotate(status, StrCat("line ", step.line, ":", text));
    if (dies_at_ > 0 && CountCalls() >= starts_ + dies_at_) {
      dies_at_ = 0;
      RETURN_IF_ERROR(world_.StartOperator());
      RETURN_IF_ERROR(world_.RunUntilIdle());
    }
  }
  return OkStatus();
}

Status Player::Run(const Step& step) {
  if (step.words[0] == "advance" && step.words.size() == 2) {
    ASSIGN_OR_RETURN(const Duration by, ParseDuration(step.words[1]));
    return world_.Advance(by);
  }
  const auto action = Actions().find(step.words[0]);
  if (action == Actions().end()) return InvalidArgument("no such step");
  RETURN_IF_ERROR((this->*action->second)(step));
  return world_.RunUntilIdle();
}

Status Player::Apply(const Step& step) {
  Json job = WholeJob(*step.block);
  client::Client& server = world_.server();
  if (server.Get(World::KeyOf(Kind::kTFJob, kJob)).ok()) {
    return server.Update(Kind::kTFJob, job).status();
  }
  return server.Create(Kind::kTFJob, job).status();
}

Status Player::Patch(const Step& step) {
  return world_.server().Patch(World::KeyOf(Kind::kTFJob, kJob), *step.block).status();
}

Status Player::Create(const Step& step) {
  if (step.words.size() != 3) return InvalidArgument("expected: create pod|service NAME");
  const bool is_pod = step.words[1] == "pod";
  Json object = {{"apiVersion", "v1"},
                 {"kind", is_pod ? "Pod" : "Service"},
                 {"metadata", {{"name", FullName(step.words[2])}, {"namespace", kNamespace}}}};
  object["spec"] = is_pod ? MinimalPodSpec() : Json{{"clusterIP", "None"}};
  object.merge_patch(*step.block);
  return world_.server().Create(is_pod ? Kind::kPod : Kind::kService, object).status();
}

Status Player::Delete(const Step& step) {
  if (step.words.size() == 2 && step.words[1] == "job") return world_.Delete(Kind::kTFJob, kJob);
  if (step.words.size() == 2 && step.words[1] == "network_policy") {
    return world_.Delete(Kind::kNetworkPolicy, api::NetworkPolicyName(kJob));
  }
  if (step.words.size() != 3) return InvalidArgument("expected: delete pod|service NAME");
  const Kind kind = step.words[1] == "pod" ? Kind::kPod : Kind::kService;
  return world_.Delete(kind, FullName(step.words[2]));
}

Status Player::Pod(const Step& step) {
  if (step.words.size() < 3) return InvalidArgument("expected: pod NAME STATE");
  const std::string name = FullName(step.words[1]);
  const std::string& state = step.words[2];
  const std::string argument = step.words.size() > 3 ? step.words[3] : "";
  const Time now = TruncateToSeconds(world_.clock().Now());
  if (state == "gone") return world_.Delete(Kind::kPod, name, 0);
  if (state == "running") return world_.Report(name, [&](auto& pod) { Start(pod, now); });
  if (state == "succeeded") return world_.Report(name, [&](auto& pod) { End(pod, 0, now); });
  if (state == "evicted") {
    const std::string exit = Option(step, "exit");
    ASSIGN_OR_RETURN(const int code, Number(exit.empty() ? "137" : exit));
    return world_.Report(name, [&](auto& pod) {
      Evict(pod, code, now);
      if (Option(step, "phase") == "Succeeded") pod.phase = objects::PodPhase::kSucceeded;
    });
  }
  if (state == "done") return world_.Report(name, [&](auto& pod) { LeaveToSidecar(pod, now); });
  if (state == "failed") {
    ASSIGN_OR_RETURN(const int code, Number(Option(step, "exit")));
    return world_.Report(name, [&](auto& pod) {
      End(pod, code, now);
      pod.reason = Option(step, "reason");
    });
  }
  if (state == "restarted") {
    ASSIGN_OR_RETURN(const int count, Number(argument));
    return world_.Report(name, [&](auto& pod) { Tensorflow(pod).restart_count = count; });
  }
  if (state == "waiting") {
    return world_.Report(name, [&](auto& pod) {
      Tensorflow(pod).state = ContainerStatus::State::kWaiting;
      Tensorflow(pod).reason = argument;
      Tensorflow(pod).message = "as the kubelet says";
    });
  }
  return InvalidArgument("no such state of a pod: ", state);
}

Status Player::AllPods(const Step& step) {
  if (step.words.size() != 2 || step.words[1] != "running") {
    return InvalidArgument("expected: pods running");
  }
  ASSIGN_OR_RETURN(const auto pods, world_.server().List(Kind::kPod, kNamespace, {}));
  for (const client::Object& object : pods) {
    const auto pod = std::get<std::shared_ptr<const objects::Pod>>(object);
    if (pod->phase != objects::PodPhase::kPending || pod->metadata.terminating()) continue;
    const Time now = TruncateToSeconds(world_.clock().Now());
    RETURN_IF_ERROR(world_.Report(pod->metadata.name, [now](auto& each) { Start(each, now); }));
  }
  return OkStatus();
}

Status Player::Node(const Step& step) {
  if (step.words.size() != 3) return InvalidArgument("expected: node NAME lost|ready");
  world_.SetNodeLost(step.words[1], step.words[2] == "lost");
  return OkStatus();
}

StatusOr<Kind> PodGroupKindOf(const std::string& scheduler) {
  const policy::GangTraits* traits = policy::FindGangScheduler(scheduler);
  if (traits != nullptr && traits->scheduler != policy::GangScheduler::kNone) {
    return traits->pod_group_kind;
  }
  return InvalidArgument("expected volcano, scheduler-plugins or native, got ", scheduler);
}

Status Player::PodGroup(const Step& step) {
  if (step.words.size() != 3) return InvalidArgument("expected: pod_group SCHEDULER PHASE");
  ASSIGN_OR_RETURN(const Kind kind, PodGroupKindOf(step.words[1]));
  const Json report = {{"metadata", {{"name", kJob}, {"namespace", kNamespace}}},
                       {"status", {{"phase", step.words[2]}}}};
  return world_.server().UpdateStatus(kind, report).status();
}

Status Player::PatchPodGroup(const Step& step) {
  if (step.words.size() != 2) return InvalidArgument("expected: patch_pod_group SCHEDULER");
  ASSIGN_OR_RETURN(const Kind kind, PodGroupKindOf(step.words[1]));
  return world_.server().Patch(World::KeyOf(kind, kJob), *step.block).status();
}

Status Player::PatchNetworkPolicy(const Step& step) {
  const client::Key key = World::KeyOf(Kind::kNetworkPolicy, api::NetworkPolicyName(kJob));
  return world_.server().Patch(key, *step.block).status();
}

Status Player::Native(const Step& step) {
  if (step.words.size() != 2) return InvalidArgument("expected: native VERSION|none");
  world_.SetNativeVersion(step.words[1] == "none" ? "" : step.words[1]);
  return OkStatus();
}

Status Player::Operator(const Step& step) {
  const std::string gang = Option(step, "gang"), policies = Option(step, "policies");
  const auto setting = policy::ParseNetworkPolicies(policies);
  if (setting) world_.SetNetworkPolicies(*setting);
  if (!gang.empty()) world_.SetGangScheduler(gang);
  if (gang.empty() && !setting) {
    return InvalidArgument("expected: operator gang=NAME or policies=WORD");
  }
  return world_.StartOperator();
}

Status Player::Keys(const Step& step) {
  keys::KeyRing ring;
  for (size_t i = 1; i < step.words.size(); ++i) {
    const std::string& word = step.words[i];
    const size_t equals = word.find('=');
    const std::string secret = equals == std::string::npos ? word : word.substr(equals + 1);
    RETURN_IF_ERROR(
        ring.Add(word.substr(0, equals), StrCat("the secret of this key: ------- ", secret)));
  }
  world_.SetKeys(std::move(ring));
  return OkStatus();
}

Status Player::AddFault(const Step& step) {
  if (step.words.size() < 5) return InvalidArgument("expected: fault VERB KIND NAME CODE");
  ASSIGN_OR_RETURN(const client::Verb verb, ParseVerb(step.words[1]));
  ASSIGN_OR_RETURN(const Kind kind, ParseKind(step.words[2]));
  client::Fault fault;
  const std::string name = FullName(step.words[3]);
  fault.matches = [verb, kind, name](const client::Call& call) {
    return call.verb == verb && call.key.kind == kind && (name == "*" || call.key.name == name);
  };
  ASSIGN_OR_RETURN(fault.error, ParseError(step.words[4]));
  fault.executed = Has(step, "executed");
  if (!Option(step, "times").empty()) {
    ASSIGN_OR_RETURN(fault.times, Number(Option(step, "times")));
  }
  world_.operator_client().Inject(std::move(fault));
  return OkStatus();
}

Status Player::AddRace(const Step& step) {
  if (step.words.size() != 4) return InvalidArgument("expected: race VERB KIND NAME");
  ASSIGN_OR_RETURN(const client::Verb verb, ParseVerb(step.words[1]));
  ASSIGN_OR_RETURN(const Kind kind, ParseKind(step.words[2]));
  client::Fault fault;
  const std::string name = FullName(step.words[3]);
  fault.matches = [verb, kind, name](const client::Call& call) {
    return call.verb == verb && call.key.kind == kind && call.key.name == name;
  };
  fault.before_call = [this, patch = step.block] {
    world_.server().Patch(World::KeyOf(Kind::kTFJob, kJob), *patch).IgnoreError();
  };
  world_.operator_client().Inject(std::move(fault));
  return OkStatus();
}

Status Player::StepClock(const Step& step) {
  if (step.words.size() != 2) return InvalidArgument("expected: step_clock [-]DURATION");
  const bool back = step.words[1].starts_with('-');
  ASSIGN_OR_RETURN(const Duration by, ParseDuration(step.words[1].substr(back ? 1 : 0)));
  world_.clock().Step(back ? -by : by);
  return OkStatus();
}

Status Player::Restart(const Step& step) {
  if (step.words.size() != 2 || step.words[1] != "operator") {
    return InvalidArgument("expected: restart operator");
  }
  return world_.StartOperator();
}

Status Player::Mark(const Step&) {
  mark_ = world_.operator_client().Calls().size();
  return OkStatus();
}

}  // namespace tfjob::timelines
