#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/api/conditions.h"
#include "operator/api/names.h"
#include "operator/manifest/tfjob_json.h"
#include "operator/objects/pod.h"
#include "tests/timelines/player.h"

namespace tfjob::timelines {
namespace {

using objects::Kind;

std::string Join(const std::vector<std::string>& words, const std::string& separator = " ") {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::vector<std::string> From(const Step& step, size_t first) {
  return {step.words.begin() + static_cast<std::ptrdiff_t>(std::min(first, step.words.size())),
          step.words.end()};
}

Status Compare(const std::string& expected, const std::string& found) {
  if (expected == found) return OkStatus();
  return FailedPrecondition("expected: ", expected, "\n   found: ", found);
}

// Returns the name without "job-", such as "worker-0" for "job-worker-0". Returns other names
// unchanged.
std::string ShortName(const std::string& name) {
  const std::string prefix = StrCat(kJob, "-");
  return name.rfind(prefix, 0) == 0 ? name.substr(prefix.size()) : name;
}

std::string ToText(const client::Call& call) {
  return StrCat(client::Name(call.verb), " ", client::Name(call.key.kind), " ",
                ShortName(call.key.name));
}

// Returns the value at a JSON pointer: a string without quotes, any other value as JSON, or "none"
// if there is no value.
std::string TextAt(const Json& object, const std::string& path) {
  const Json::json_pointer pointer(path);
  if (!object.contains(pointer)) return "none";
  const Json& value = object[pointer];
  return value.is_string() ? value.get_ref<const std::string&>() : PrintJson(value);
}

Status NeedWords(const Step& step, size_t count) {
  if (step.words.size() >= count) return OkStatus();
  return InvalidArgument("the expectation lacks words");
}

}  // namespace

const std::map<std::string, Player::Action>& Player::Expectations() {
  static const std::map<std::string, Action> expectations = {
      {"conditions", &Player::ExpectConditions},
      {"condition", &Player::ExpectCondition},
      {"pods", &Player::ExpectPods},
      {"services", &Player::ExpectServices},
      {"counts", &Player::ExpectCounts},
      {"label", &Player::ExpectLabel},
      {"event", &Player::ExpectEvent},
      {"calls", &Player::ExpectCalls},
      {"no", &Player::ExpectNoCalls},
      {"time", &Player::ExpectTime},
      {"status", &Player::ExpectStatus},
      {"job", &Player::ExpectJobGone},
      {"key", &Player::ExpectKey},
      {"json", &Player::ExpectJson},
      {"tf_config", &Player::ExpectTfConfig},
      {"pod_group", &Player::ExpectPodGroup},
      {"network_policy", &Player::ExpectNetworkPolicy},
  };
  return expectations;
}

Status Player::Expect(const Step& step) {
  RETURN_IF_ERROR(NeedWords(step, 2));
  const auto expectation = Expectations().find(step.words[1]);
  if (expectation == Expectations().end()) return InvalidArgument("no such expectation");
  return (this->*expectation->second)(step);
}

StatusOr<api::TFJob> Player::Job() {
  ASSIGN_OR_RETURN(Json object, world_.server().GetJson(World::KeyOf(Kind::kTFJob, kJob)));
  // Drop the spec, since a timeline may contain a job whose spec cannot be decoded.
  object["spec"] = {{"tfReplicaSpecs", Json::object()}};
  return manifest::ParseTFJob(object);
}

Status Player::ExpectConditions(const Step& step) {
  ASSIGN_OR_RETURN(const api::TFJob job, Job());
  std::vector<std::string> found;
  for (const api::Condition& condition : job.status.conditions) {
    found.push_back(StrCat(api::Name(condition.type), condition.status ? "" : "=False"));
  }
  return Compare(Join(From(step, 2)), Join(found));
}

Status Player::ExpectCondition(const Step& step) {
  RETURN_IF_ERROR(NeedWords(step, 4));
  ASSIGN_OR_RETURN(const api::TFJob job, Job());
  const auto type = api::ParseConditionType(step.words[2]);
  if (!type) return InvalidArgument("no such condition type");
  const api::Condition* condition = api::Find(job.status, *type);
  if (condition == nullptr) return FailedPrecondition("there is no such condition");
  RETURN_IF_ERROR(Compare(step.words[3], condition->reason));
  if (step.words.size() < 5 || condition->message.find(step.words[4]) != std::string::npos) {
    return OkStatus();
  }
  return Compare(step.words[4], condition->message);
}

StatusOr<std::vector<std::string>> Player::Pods() {
  ASSIGN_OR_RETURN(const auto pods, world_.server().List(Kind::kPod, kNamespace, {}));
  std::vector<std::string> found;
  for (const client::Object& object : pods) {
    const auto& pod = std::get<std::shared_ptr<const objects::Pod>>(object);
    const objects::OwnerReference* controller = pod->metadata.controller();
    if (controller == nullptr || controller->name != kJob) continue;
    found.push_back(StrCat(ShortName(pod->metadata.name), "=", objects::Name(pod->phase),
                           pod->metadata.terminating() ? "*" : ""));
  }
  std::sort(found.begin(), found.end());
  return found;
}

StatusOr<std::vector<std::string>> Player::Services() {
  ASSIGN_OR_RETURN(const auto services, world_.server().List(Kind::kService, kNamespace, {}));
  std::vector<std::string> found;
  for (const client::Object& object : services) {
    const objects::ObjectMeta& metadata = client::MetadataOf(object);
    if (metadata.controller() != nullptr) found.push_back(ShortName(metadata.name));
  }
  std::sort(found.begin(), found.end());
  return found;
}

StatusOr<std::string> Player::Summary() {
  ASSIGN_OR_RETURN(const api::TFJob job, Job());
  ASSIGN_OR_RETURN(const auto pods, Pods());
  ASSIGN_OR_RETURN(const auto services, Services());
  std::string text = StrCat("pods ", Join(pods), "\nservices ", Join(services), "\nconditions");
  for (const api::Condition& condition : job.status.conditions) {
    text += StrCat(" ", api::Name(condition.type), condition.status ? "" : "=False");
  }
  for (const auto& [type, replica] : job.status.replica_statuses) {
    text += StrCat("\n", api::Name(type), " active=", replica.active,
                   " succeeded=", replica.succeeded, " failed=", replica.failed,
                   " restarts=", replica.restarts, " completed=", replica.completed_indexes);
  }
  return StrCat(text, "\nattempt ", job.status.attempt);
}

Status Player::ExpectPods(const Step& step) {
  ASSIGN_OR_RETURN(const auto found, Pods());
  std::vector<std::string> expected = From(step, 2);
  std::sort(expected.begin(), expected.end());
  return Compare(Join(expected), Join(found));
}

Status Player::ExpectServices(const Step& step) {
  ASSIGN_OR_RETURN(const auto found, Services());
  std::vector<std::string> expected = From(step, 2);
  std::sort(expected.begin(), expected.end());
  return Compare(Join(expected), Join(found));
}

Status Player::ExpectCounts(const Step& step) {
  RETURN_IF_ERROR(NeedWords(step, 4));
  ASSIGN_OR_RETURN(const api::TFJob job, Job());
  const auto type = api::ParseReplicaType(step.words[2]);
  if (!type) return InvalidArgument("no such replica type");
  const auto entry = job.status.replica_statuses.find(*type);
  const api::ReplicaStatus status =
      entry == job.status.replica_statuses.end() ? api::ReplicaStatus() : entry->second;
  const std::map<std::string, std::string> values = {
      {"active", StrCat(status.active)},       {"succeeded", StrCat(status.succeeded)},
      {"failed", StrCat(status.failed)},       {"restarts", StrCat(status.restarts)},
      {"completed", status.completed_indexes},
  };
  std::vector<std::string> found;
  for (const std::string& word : From(step, 3)) {
    const std::string name = word.substr(0, word.find('='));
    const auto value = values.find(name);
    if (value == values.end()) return InvalidArgument("no such count: ", name);
    found.push_back(StrCat(name, "=", value->second));
  }
  return Compare(Join(From(step, 3)), Join(found));
}

Status Player::ExpectLabel(const Step& step) {
  RETURN_IF_ERROR(NeedWords(step, 4));
  ASSIGN_OR_RETURN(const client::Object pod,
                   world_.server().Get(World::KeyOf(Kind::kPod, FullName(step.words[2]))));
  const std::string key = step.words[3].substr(0, step.words[3].find('='));
  return Compare(step.words[3], StrCat(key, "=", client::MetadataOf(pod).label(key)));
}

StatusOr<std::map<std::string, int>> Player::Events() {
  ASSIGN_OR_RETURN(const auto events, world_.server().List(Kind::kEvent, kNamespace, {}));
  std::map<std::string, int> counts;
  for (const client::Object& object : events) {
    const JsonField event(
        *std::get<std::shared_ptr<const objects::CustomResource>>(object)->object);
    ASSIGN_OR_RETURN(const std::string reason, event["reason"].String());
    ASSIGN_OR_RETURN(const std::string message, event["message"].String());
    ++counts[StrCat(reason, ": ", message)];
  }
  return counts;
}

Status Player::ExpectEvent(const Step& step) {
  RETURN_IF_ERROR(NeedWords(step, 5));
  ASSIGN_OR_RETURN(const auto events, Events());
  const std::string reason = step.words[2] + ": ";
  int found = 0;
  std::string all;
  for (const auto& [text, count] : events) {
    all += StrCat("\n     ", text, " (", count, ")");
    if (text.rfind(reason, 0) != 0) continue;
    if (text.find(step.words[3], reason.size()) != std::string::npos) found += count;
  }
  Status status = Compare(step.words[4], StrCat(found));
  return status.ok() ? status : Annotate(status, StrCat("events:", all, "\n"));
}

std::string Player::CallName(int call) {
  const std::vector<client::Call> all = world_.operator_client().Calls();
  const size_t index = static_cast<size_t>(starts_ + call) - 1;
  return index < all.size() ? ToText(all[index]) : "none";
}

std::vector<std::string> Player::Calls() {
  std::vector<std::string> calls;
  const std::vector<client::Call> all = world_.operator_client().Calls();
  for (size_t i = mark_; i < all.size(); ++i) calls.push_back(ToText(all[i]));
  return calls;
}

Status Player::ExpectCalls(const Step& step) {
  const std::vector<std::string> calls = Calls();
  auto at = calls.begin();
  for (const std::string& word : From(step, 2)) {
    if (word == "<") continue;
    at = std::find(at, calls.end(), word);
    if (at == calls.end()) {
      return FailedPrecondition("no such call in this place: ", word, "\n   calls:\n     ",
                                Join(calls, "\n     "));
    }
    ++at;
  }
  return OkStatus();
}

Status Player::ExpectNoCalls(const Step& step) {
  RETURN_IF_ERROR(NeedWords(step, 4));
  const std::vector<std::string> verbs = From(step, 3);
  for (const std::string& call : Calls()) {
    const bool reads =
        call.rfind("get ", 0) == 0 || call.rfind("list ", 0) == 0 || call.rfind("watch ", 0) == 0;
    for (const std::string& verb : verbs) {
      if (verb == "writes" ? !reads : call.rfind(verb, 0) == 0) {
        return FailedPrecondition("there was: ", call);
      }
    }
  }
  return OkStatus();
}

Status Player::ExpectTime(const Step& step) {
  RETURN_IF_ERROR(NeedWords(step, 4));
  ASSIGN_OR_RETURN(const api::TFJob job, Job());
  const std::optional<Time> time =
      step.words[2] == "startTime" ? job.status.start_time : job.status.completion_time;
  return Compare(step.words[3], time ? FormatTime(*time) : "none");
}

Status Player::ExpectStatus(const Step& step) {
  RETURN_IF_ERROR(NeedWords(step, 4));
  ASSIGN_OR_RETURN(const Json object, world_.server().GetJson(World::KeyOf(Kind::kTFJob, kJob)));
  const JsonField field = JsonField(object)["status"][step.words[2]];
  return Compare(step.words[3], field.present() ? PrintJson(*field.value()) : "none");
}

Status Player::ExpectPodGroup(const Step& step) {
  RETURN_IF_ERROR(NeedWords(step, 4));
  ASSIGN_OR_RETURN(const Kind kind, PodGroupKindOf(step.words[2]));
  const StatusOr<Json> object = world_.server().GetJson(World::KeyOf(kind, kJob));
  if (!object.ok()) return Compare(step.words[3], "none");
  RETURN_IF_ERROR(NeedWords(step, 5));
  return Compare(step.words[4], TextAt(*object, step.words[3]));
}

Status Player::ExpectKey(const Step& step) {
  RETURN_IF_ERROR(NeedWords(step, 4));
  ASSIGN_OR_RETURN(const Json pod,
                   world_.server().GetJson(World::KeyOf(Kind::kPod, FullName(step.words[2]))));
  const JsonField root(pod);
  ASSIGN_OR_RETURN(const std::string id,
                   root["metadata"]["annotations"]["tfjob.dev/key-id"].StringOr("none"));
  RETURN_IF_ERROR(Compare(step.words[3], id.substr(0, id.find('.'))));
  const JsonField env = root["spec"]["containers"][0]["env"];
  ASSIGN_OR_RETURN(const std::string first, env[0]["name"].String());
  if (id == "none") return Compare("TFJOB_UID", first);
  RETURN_IF_ERROR(Compare("TFJOB_KEY", first));
  RETURN_IF_ERROR(Compare("TFJOB_UID", env[1]["name"].StringOr("none").value_or("")));
  ASSIGN_OR_RETURN(const api::TFJob job, Job());
  return Compare(world_.keys().JobKey(id, job.metadata.uid),
                 env[0]["value"].StringOr("none").value_or(""));
}

Status Player::ExpectNetworkPolicy(const Step& step) {
  RETURN_IF_ERROR(NeedWords(step, 3));
  const client::Key key = World::KeyOf(Kind::kNetworkPolicy, api::NetworkPolicyName(kJob));
  const StatusOr<Json> object = world_.server().GetJson(key);
  if (!object.ok() || step.words.size() == 3) {
    return Compare(step.words[2], object.ok() ? PrintJson(*object) : "none");
  }
  return Compare(step.words[3], TextAt(*object, step.words[2]));
}

Status Player::ExpectJson(const Step& step) {
  RETURN_IF_ERROR(NeedWords(step, 6));
  const Kind kind = step.words[2] == "pod" ? Kind::kPod : Kind::kService;
  ASSIGN_OR_RETURN(const Json object,
                   world_.server().GetJson(World::KeyOf(kind, FullName(step.words[3]))));
  return Compare(step.words[5], TextAt(object, step.words[4]));
}

Status Player::ExpectTfConfig(const Step& step) {
  RETURN_IF_ERROR(NeedWords(step, 3));
  ASSIGN_OR_RETURN(const Json pod,
                   world_.server().GetJson(World::KeyOf(Kind::kPod, FullName(step.words[2]))));
  ASSIGN_OR_RETURN(const auto variables, JsonField(pod)["spec"]["containers"][0]["env"].Elements());
  for (const JsonField& variable : variables) {
    if (variable["name"].StringOr("").value_or("") != "TF_CONFIG") continue;
    ASSIGN_OR_RETURN(const std::string text, variable["value"].String());
    ASSIGN_OR_RETURN(const Json found, ParseJson(text, "TF_CONFIG"));
    return Compare(PrintJson(*step.block), PrintJson(found));
  }
  return FailedPrecondition("the pod has no TF_CONFIG");
}

Status Player::ExpectJobGone(const Step&) {
  const Status status = world_.server().Get(World::KeyOf(Kind::kTFJob, kJob)).status();
  if (status.code() == StatusCode::kNotFound) return OkStatus();
  return FailedPrecondition("the job is still there");
}

}  // namespace tfjob::timelines
