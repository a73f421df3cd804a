#include "operator/control/report.h"

#include "operator/api/reasons.h"

namespace tfjob::control {
namespace {

using objects::Kind;

// The causes of events about failed creates and failed changes begin with this prefix.
constexpr std::string_view kCreateFailed = "create-failed/";

// The noun for a kind of object, and the reasons for events about objects of this kind.
struct Words {
  const char* what;
  const char* created;
  const char* create_failed;
  const char* deleted;
  const char* delete_failed;
};

api::Names NamesOf(const std::vector<Child>& children) {
  api::Names names;
  for (const Child& child : children) names.push_back(child.name);
  return names;
}

std::string CauseOf(std::string cause, const std::vector<Child>& children) {
  for (const Child& child : children) cause += StrCat("/", child.uid);
  return cause;
}

const Words& WordsOf(Kind kind) {
  static constexpr Words kPod = {"pod", api::kReasonCreatedPod, api::kReasonFailedCreatePod,
                                 api::kReasonDeletedPod, api::kReasonFailedDeletePod};
  static constexpr Words kService = {"service", api::kReasonCreatedService,
                                     api::kReasonFailedCreateService, api::kReasonDeletedService,
                                     api::kReasonFailedDeleteService};
  static constexpr Words kPodGroup = {"pod group", api::kReasonCreatedPodGroup,
                                      api::kReasonFailedCreatePodGroup, api::kReasonDeletedPodGroup,
                                      api::kReasonFailedDeletePodGroup};
  static constexpr Words kWorkload = {"workload", api::kReasonCreatedWorkload,
                                      api::kReasonFailedCreateWorkload, api::kReasonDeletedWorkload,
                                      api::kReasonFailedDeleteWorkload};
  static constexpr Words kNetworkPolicy = {
      "NetworkPolicy", api::kReasonCreatedNetworkPolicy, api::kReasonFailedCreateNetworkPolicy,
      api::kReasonDeletedNetworkPolicy, api::kReasonFailedDeleteNetworkPolicy};
  static constexpr Words kJob = {"job", "", "", api::kReasonDeletedJob,
                                 api::kReasonFailedDeleteJob};
  switch (kind) {
    case Kind::kService:
      return kService;
    case Kind::kPodGroup:
    case Kind::kCoschedulingPodGroup:
    case Kind::kNativePodGroup:
      return kPodGroup;
    case Kind::kWorkload:
      return kWorkload;
    case Kind::kNetworkPolicy:
      return kNetworkPolicy;
    case Kind::kTFJob:
      return kJob;
    case Kind::kPod:
    case Kind::kConfigMap:
    case Kind::kEvent:
    case Kind::kLease:
    case Kind::kNode:
      break;
  }
  return kPod;
}

// Replaces numbers with '#'. Numbers (a quota's "pods=5", an index, a port) may change from one
// attempt to the next although the problem stays the same.
std::string WithoutNumbers(std::string_view text) {
  std::string shape;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit) shape += c;
    if (is_digit && (shape.empty() || shape.back() != '#')) shape += '#';
  }
  return shape;
}

}  // namespace

plan::NamedEvent CreatedEvent(const api::TFJob& job, Kind kind,
                              const std::vector<Child>& children) {
  const Words& words = WordsOf(kind);
  return plan::MakeEvent(job, objects::EventType::kNormal, words.created,
                         api::CreatedObjectsMessage(words.what, NamesOf(children)),
                         CauseOf("created", children));
}

plan::NamedEvent CreateFailedEvent(const api::TFJob& job, Kind kind, const Status& error) {
  const char* reason = WordsOf(kind).create_failed;
  const std::string cause = StrCat(kCreateFailed, reason, "/");
  plan::NamedEvent event = plan::MakeEvent(job, objects::EventType::kWarning, reason,
                                           api::FailedCreateMessage(Message(error)),
                                           StrCat(cause, Message(error)), true);
  event.cause = StrCat(cause, WithoutNumbers(Message(error)));
  return event;
}

plan::NamedEvent ChangeFailedEvent(const api::TFJob& job, Kind kind, const Status& error) {
  const bool is_policy = kind == Kind::kNetworkPolicy;
  const std::string cause =
      StrCat(kCreateFailed, is_policy ? "change-network-policy/" : "change-pod-group/");
  plan::NamedEvent event = plan::MakeEvent(
      job, objects::EventType::kWarning,
      is_policy ? api::kReasonFailedChangeNetworkPolicy : api::kReasonFailedChangePodGroup,
      api::FailedChangeMessage(Message(error)), StrCat(cause, Message(error)), true);
  event.cause = StrCat(cause, WithoutNumbers(Message(error)));
  return event;
}

bool IsCreateFailed(std::string_view cause) {
  return cause.substr(0, kCreateFailed.size()) == kCreateFailed;
}

plan::NamedEvent DeletedEvent(const api::TFJob& job, Kind kind,
                              const std::vector<Child>& children) {
  const Words& words = WordsOf(kind);
  return plan::MakeEvent(job, objects::EventType::kNormal, words.deleted,
                         api::DeletedObjectsMessage(words.what, NamesOf(children)),
                         CauseOf("deleted", children));
}

plan::NamedEvent DeleteFailedEvent(const api::TFJob& job, Kind kind, const std::string& uid,
                                   const Status& error) {
  return plan::MakeEvent(job, objects::EventType::kWarning, WordsOf(kind).delete_failed,
                         api::FailedDeleteMessage(Message(error)),
                         StrCat("delete-failed/", uid, "/", Message(error)), true);
}

plan::NamedEvent SchedulingGroupDroppedEvent(const api::TFJob& job, const std::string& pod) {
  return plan::MakeEvent(job, objects::EventType::kWarning, api::kReasonSchedulingGroupDropped,
                         api::SchedulingGroupDroppedMessage(pod), "scheduling-group-dropped", true);
}

bool IsRoutine(const objects::Event& event) {
  return event.reason == api::kReasonCreatedPod || event.reason == api::kReasonCreatedService ||
         event.reason == api::kReasonDeletedPod || event.reason == api::kReasonDeletedService;
}

}  // namespace tfjob::control
