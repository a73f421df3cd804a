#include "operator/objects/pod.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/objects/fields.h"
#include "runtime/base/json_view.h"

namespace tfjob::objects {
namespace {

using State = ContainerStatus::State;

constexpr std::array<std::pair<PodPhase, std::string_view>, 5> kPhases = {
    {{PodPhase::kUnknown, "Unknown"},
     {PodPhase::kPending, "Pending"},
     {PodPhase::kRunning, "Running"},
     {PodPhase::kSucceeded, "Succeeded"},
     {PodPhase::kFailed, "Failed"}}};

template <typename Field>
Status ReadState(const Field& state, ContainerStatus& container) {
  if (const Field running = state["running"]; running.present()) {
    container.state = State::kRunning;
    return Read(running["startedAt"], container.started_at);
  }
  if (const Field terminated = state["terminated"]; terminated.present()) {
    container.state = State::kTerminated;
    RETURN_IF_ERROR(Read(terminated["exitCode"], container.exit_code));
    RETURN_IF_ERROR(Read(terminated["signal"], container.signal));
    RETURN_IF_ERROR(Read(terminated["reason"], container.reason));
    RETURN_IF_ERROR(Read(terminated["message"], container.message));
    RETURN_IF_ERROR(Read(terminated["startedAt"], container.started_at));
    return Read(terminated["finishedAt"], container.finished_at);
  }
  RETURN_IF_ERROR(Read(state["waiting"]["reason"], container.reason));
  return Read(state["waiting"]["message"], container.message);
}

template <typename Field>
Status ReadContainers(const Field& list, bool init, std::vector<ContainerStatus>& containers) {
  ASSIGN_OR_RETURN(const auto elements, list.Elements());
  containers.reserve(containers.size() + elements.size());
  for (const Field& element : elements) {
    ContainerStatus container;
    container.init = init;
    RETURN_IF_ERROR(Read(element["name"], container.name));
    RETURN_IF_ERROR(Read(element["ready"], container.ready));
    RETURN_IF_ERROR(Read(element["restartCount"], container.restart_count));
    RETURN_IF_ERROR(ReadState(element["state"], container));
    const Field last = element["lastState"]["terminated"];
    RETURN_IF_ERROR(Read(last["exitCode"], container.last_exit_code));
    RETURN_IF_ERROR(Read(last["message"], container.last_message));
    containers.push_back(std::move(container));
  }
  return OkStatus();
}

template <typename Field>
Status ReadConditions(const Field& list, std::vector<PodCondition>& conditions) {
  ASSIGN_OR_RETURN(const auto elements, list.Elements());
  conditions.reserve(elements.size());
  for (const Field& element : elements) {
    PodCondition condition;
    RETURN_IF_ERROR(Read(element["type"], condition.type));
    RETURN_IF_ERROR(Read(element["status"], condition.status));
    RETURN_IF_ERROR(Read(element["reason"], condition.reason));
    RETURN_IF_ERROR(Read(element["message"], condition.message));
    RETURN_IF_ERROR(Read(element["lastTransitionTime"], condition.last_transition_time));
    conditions.push_back(std::move(condition));
  }
  return OkStatus();
}

template <typename Field>
Status ReadStatus(const Field& status, Pod& pod) {
  std::string phase;
  RETURN_IF_ERROR(Read(status["phase"], phase));
  pod.phase = ParsePhase(phase);
  RETURN_IF_ERROR(Read(status["reason"], pod.reason));
  RETURN_IF_ERROR(Read(status["message"], pod.message));
  RETURN_IF_ERROR(Read(status["podIP"], pod.pod_ip));
  RETURN_IF_ERROR(Read(status["hostIP"], pod.host_ip));
  RETURN_IF_ERROR(Read(status["startTime"], pod.start_time));
  RETURN_IF_ERROR(ReadConditions(status["conditions"], pod.conditions));
  RETURN_IF_ERROR(ReadContainers(status["initContainerStatuses"], true, pod.containers));
  return ReadContainers(status["containerStatuses"], false, pod.containers);
}

template <typename Field>
StatusOr<Pod> ReadPod(const Field& root) {
  if (!root.IsObject()) return root.Mismatch("a Pod object");
  Pod pod;
  ASSIGN_OR_RETURN(pod.metadata, ParseObjectMeta(root["metadata"]));
  pod.key_id = KeyIdOf(pod.metadata);
  // Drop the other annotations, which may be large and which no decision uses.
  pod.metadata.annotations.clear();
  RETURN_IF_ERROR(Read(root["spec"]["nodeName"], pod.node_name));
  pod.in_scheduling_group = root["spec"]["schedulingGroup"]["podGroupName"].present();
  RETURN_IF_ERROR(ReadStatus(root["status"], pod));
  return pod;
}

void Set(Json& json, const char* key, const std::string& value) {
  if (!value.empty()) json[key] = value;
}

Json StateToJson(const ContainerStatus& container) {
  Json detail = Json::object();
  if (container.state == State::kRunning) {
    Set(detail, "startedAt", FormatTime(container.started_at));
    return {{"running", detail}};
  }
  Set(detail, "reason", container.reason);
  Set(detail, "message", container.message);
  if (container.state == State::kWaiting) return {{"waiting", detail}};
  detail["exitCode"] = container.exit_code;
  if (container.signal != 0) detail["signal"] = container.signal;
  Set(detail, "startedAt", FormatTime(container.started_at));
  Set(detail, "finishedAt", FormatTime(container.finished_at));
  return {{"terminated", detail}};
}

// Leaves image and imageID empty: the API requires them, but no decision uses them.
Json ToJson(const ContainerStatus& container) {
  Json json = {{"name", container.name},
               {"ready", container.ready},
               {"restartCount", container.restart_count},
               {"image", ""},
               {"imageID", ""},
               {"state", StateToJson(container)}};
  if (container.last_exit_code != 0 || !container.last_message.empty()) {
    json["lastState"] = {
        {"terminated",
         {{"exitCode", container.last_exit_code}, {"message", container.last_message}}}};
  }
  return json;
}

Json ToJson(const PodCondition& condition) {
  Json json = {{"type", condition.type}, {"status", condition.status}};
  Set(json, "reason", condition.reason);
  Set(json, "message", condition.message);
  Set(json, "lastTransitionTime", FormatTime(condition.last_transition_time));
  return json;
}

}  // namespace

std::string_view Name(PodPhase phase) {
  return kPhases[static_cast<size_t>(phase)].second;
}

PodPhase ParsePhase(std::string_view text) {
  for (const auto& [phase, name] : kPhases) {
    if (name == text) return phase;
  }
  return PodPhase::kUnknown;
}

std::string KeyIdOf(const ObjectMeta& pod) {
  constexpr size_t kMaxId = 72;  // a DNS label, a dot, and 8 digits
  const auto found = pod.annotations.find(kKeyIdAnnotation);
  if (found == pod.annotations.end()) return "";
  const std::string& id = found->second;
  const bool fits =
      id.size() <= kMaxId && std::all_of(id.begin(), id.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.';
      });
  return fits ? id : "invalid";
}

void DropSettledConditions(Pod& pod) {
  if (pod.containers.empty()) return;
  std::erase_if(pod.conditions, [](const PodCondition& condition) {
    return condition.status == "True" && condition.type != "DisruptionTarget";
  });
  pod.conditions.shrink_to_fit();
}

std::shared_ptr<const Pod> RememberEnd(const Pod& earlier, std::shared_ptr<const Pod> pod) {
  const bool ended = earlier.phase == PodPhase::kSucceeded || earlier.phase == PodPhase::kFailed;
  const bool first = earlier.ended_before_deletion || (ended && !earlier.metadata.terminating());
  if (!first || earlier.metadata.uid != pod->metadata.uid || pod->ended_before_deletion) return pod;
  auto marked = std::make_shared<Pod>(*pod);
  marked->ended_before_deletion = true;
  return marked;
}

const ContainerStatus* Pod::container(std::string_view name) const {
  for (const ContainerStatus& container : containers) {
    if (container.name == name) return &container;
  }
  return nullptr;
}

const PodCondition* Pod::condition(std::string_view type) const {
  for (const PodCondition& condition : conditions) {
    if (condition.type == type) return &condition;
  }
  return nullptr;
}

int32_t Pod::restart_count() const {
  int32_t sum = 0;
  for (const ContainerStatus& container : containers) sum += container.restart_count;
  return sum;
}

StatusOr<Pod> ParsePod(const Json& object) {
  return ReadPod(JsonField(object));
}

StatusOr<Pod> ParsePod(const JsonView& object) {
  return ReadPod(object);
}

Json StatusToJson(const Pod& pod) {
  Json status = {{"phase", Name(pod.phase)}};
  Set(status, "reason", pod.reason);
  Set(status, "message", pod.message);
  Set(status, "hostIP", pod.host_ip);
  Set(status, "podIP", pod.pod_ip);
  if (!pod.pod_ip.empty()) status["podIPs"] = Json::array({{{"ip", pod.pod_ip}}});
  Set(status, "startTime", FormatTime(pod.start_time));
  for (const PodCondition& condition : pod.conditions) {
    status["conditions"].push_back(ToJson(condition));
  }
  for (const ContainerStatus& container : pod.containers) {
    status[container.init ? "initContainerStatuses" : "containerStatuses"].push_back(
        ToJson(container));
  }
  return {{"status", std::move(status)}};
}

}  // namespace tfjob::objects
