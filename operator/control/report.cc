#include "operator/control/report.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "operator/api/reasons.h"

namespace tfjob::control {
namespace {

using objects::Kind;

// The causes of events about failed creates and failed changes begin with this prefix.
constexpr std::string_view kCreateFailed = "create-failed/";

// Contains the noun for a kind of object, and the reasons for events about objects of this kind.
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

// Returns whether the text begins with a UUID.
bool BeginsWithUuid(std::string_view text) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (text.size() < kForm.size()) return false;
  return std::equal(kForm.begin(), kForm.end(), text.begin(), [](char form, char c) {
    return form == '-' ? c == '-' : absl::ascii_isxdigit(static_cast<unsigned char>(c)) != 0;
  });
}

// Returns the length of the number at the beginning of the text; 0 if there is none. A run of
// decimal digits is a number. A UUID, or a run of at least 8 hexadecimal digits such as a hash,
// counts as one number only if it is a whole word. `begins_word` is true if a word begins at
// text[0].
size_t NumberLength(std::string_view text, bool begins_word) {
  constexpr size_t kUuidLength = 36, kShortestHash = 8;
  const auto ends_word = [text](size_t length) {
    return length == text.size() || !absl::ascii_isalnum(static_cast<unsigned char>(text[length]));
  };
  const auto run = [text](std::string_view characters) {
    return std::min(text.find_first_not_of(characters), text.size());
  };
  if (begins_word && BeginsWithUuid(text) && ends_word(kUuidLength)) return kUuidLength;
  const size_t hash = run("0123456789abcdefABCDEF");
  if (begins_word && hash >= kShortestHash && ends_word(hash)) return hash;
  return run("0123456789");
}

// Replaces numbers with '#'. Numbers (a quota's "pods=5", an index, a port, a request's id) may
// change from one attempt to the next although the problem stays the same.
std::string WithoutNumbers(std::string_view text) {
  std::string shape;
  for (size_t i = 0; i < text.size();) {
    const bool begins_word =
        i == 0 || !absl::ascii_isalnum(static_cast<unsigned char>(text[i - 1]));
    const size_t length = NumberLength(text.substr(i), begins_word);
    if (length == 0) {
      shape += text[i++];
      continue;
    }
    if (shape.empty() || shape.back() != '#') shape += '#';
    i += length;
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
  const std::string cause = StrCat("delete-failed/", uid, "/");
  plan::NamedEvent event = plan::MakeEvent(
      job, objects::EventType::kWarning, WordsOf(kind).delete_failed,
      api::FailedDeleteMessage(Message(error)), StrCat(cause, Message(error)), true);
  event.cause = StrCat(cause, WithoutNumbers(Message(error)));
  return event;
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
