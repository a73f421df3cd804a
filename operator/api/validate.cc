#include "operator/api/validate.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <span>

#include "operator/api/names.h"
#include "operator/api/replicas.h"
#include "runtime/base/did_you_mean.h"

namespace tfjob::api {
namespace {

constexpr size_t kMaxLabel = 63;  // maximum length of a DNS label
constexpr char kOurManager[] = "kubeflow.org/training-operator";
const std::string kGangSchedulers[] = {"native", "none", "scheduler-plugins", "volcano"};
const std::string kBooleans[] = {"false", "true"};
constexpr char kMultiKueue[] = "kueue.x-k8s.io/multikueue";

using Issues = std::vector<FieldIssue>;

std::string SpecPath(ReplicaType type) {
  return StrCat("spec.tfReplicaSpecs.", Name(type));
}

bool IsLowerLetter(char c) {
  return 'a' <= c && c <= 'z';
}
bool IsDigit(char c) {
  return '0' <= c && c <= '9';
}

// Returns whether `text` is a DNS label: lower-case letters, digits and '-', not ending with '-',
// and starting with a letter (RFC 1035) or, if `may_start_with_digit`, with a digit (RFC 1123).
bool IsDnsLabel(const std::string& text, bool may_start_with_digit) {
  if (text.empty() || text.size() > kMaxLabel || text.back() == '-') return false;
  if (!IsLowerLetter(text[0]) && !(may_start_with_digit && IsDigit(text[0]))) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLowerLetter(c) || IsDigit(c) || c == '-'; });
}

void CheckNames(const TFJob& job, Issues& issues) {
  const objects::ObjectMeta& metadata = job.metadata;
  if (metadata.name.empty()) {
    issues.push_back({"metadata.name", "a name is required"});
  } else if (!IsDnsLabel(metadata.name, false)) {
    issues.push_back(
        {"metadata.name",
         StrCat("expected at most 63 lower-case letters, digits and '-', starting with a "
                "letter and not ending with '-' (DNS-1035), got ",
                DescribeJson(metadata.name))});
  }
  if (!metadata.name_space.empty() && !IsDnsLabel(metadata.name_space, true)) {
    issues.push_back(
        {"metadata.namespace",
         StrCat("expected at most 63 lower-case letters, digits and '-', not starting or "
                "ending with '-', got ",
                DescribeJson(metadata.name_space))});
  }
}

// Checks that the services' names are not too long for a DNS label. Each replica has a service;
// within a type, the last replica's name is the longest.
void CheckServiceNames(const TFJob& job, Issues& issues) {
  if (job.metadata.name.size() > kMaxLabel) return;  // already reported
  std::string longest;
  for (const auto& [type, spec] : job.spec.replicas) {
    const int32_t replicas = Replicas(job, type);
    if (replicas < 1) continue;
    const std::string name = ReplicaName(job.metadata.name, type, replicas - 1);
    if (name.size() > longest.size()) longest = name;
  }
  if (longest.size() <= kMaxLabel) return;
  const size_t suffix = longest.size() - job.metadata.name.size();
  issues.push_back({"metadata.name",
                    StrCat("the service \"", longest, "\" would have a name of ", longest.size(),
                           " characters, and 63 are allowed: shorten the job's name to ",
                           kMaxLabel - suffix, " characters or fewer")});
}

void CheckContainer(const JsonField& container, Issues& issues) {
  if (!container.present() || !container.value()->is_object()) {
    issues.push_back({container.path(), "expected a container object"});
    return;
  }
  const JsonField image = container["image"];
  if (!image.present() || *image.value() == "") {
    issues.push_back({image.path(), "an image is required"});
  } else if (!image.value()->is_string()) {
    issues.push_back(
        {image.path(), StrCat("expected a string, got ", DescribeJson(*image.value()))});
  }
}

void CheckContainers(ReplicaType type, const Json& pod_template, Issues& issues) {
  const JsonField field =
      JsonField(pod_template, StrCat(SpecPath(type), ".template"))["spec"]["containers"];
  const auto containers = field.Elements();
  if (!containers.ok()) {
    issues.push_back({field.path(), StrCat("expected a list, got ", DescribeJson(*field.value()))});
    return;
  }
  for (const JsonField& container : *containers) CheckContainer(container, issues);
  if (containers->empty()) {
    issues.push_back({field.path(),
                      "at least one container is required, and one of them must be "
                      "named \"tensorflow\""});
  } else if (TensorflowContainer(pod_template) == nullptr) {
    issues.push_back({field.path(), "one of the containers must be named \"tensorflow\""});
  }
}

template <typename Number>
void CheckNotNegative(const std::string& path, const std::optional<Number>& value, Issues& issues) {
  if (value.value_or(0) >= 0) return;
  issues.push_back({path, StrCat("expected 0 or more, got ", *value)});
}

void CheckReplicas(const TFJob& job, Issues& issues) {
  const auto& replicas = job.spec.replicas;
  if (replicas.empty()) {
    issues.push_back({"spec.tfReplicaSpecs", "at least one replica type is required"});
  }
  if (replicas.contains(ReplicaType::kChief) && replicas.contains(ReplicaType::kMaster)) {
    issues.push_back({"spec.tfReplicaSpecs", "Chief and Master exclude each other; keep one"});
  }
  for (const auto& [type, spec] : replicas) {
    CheckNotNegative(StrCat(SpecPath(type), ".replicas"), spec.replicas, issues);
    static const Json kNothing;
    CheckContainers(type, spec.pod_template ? *spec.pod_template : kNothing, issues);
  }
  if (const int64_t total = TotalReplicas(job); total > kMaxReplicas) {
    issues.push_back({"spec.tfReplicaSpecs",
                      StrCat(total, " replicas in total, expected at most ", kMaxReplicas)});
  }
}

// Checks that the job's annotation `key`, if there is one, has one of the values `words`.
// `expected` lists these values for the message.
void CheckAnnotation(const TFJob& job, const char* key, std::span<const std::string> words,
                     const char* expected, Issues& issues) {
  const auto annotation = job.metadata.annotations.find(key);
  if (annotation == job.metadata.annotations.end()) return;
  const std::string& word = annotation->second;
  if (std::find(words.begin(), words.end(), word) != words.end()) return;
  // The message suggests a similar word, unless there are only two words.
  const std::string hint = words.size() > 2 ? DidYouMean(word, words) : "";
  issues.push_back({StrCat("metadata.annotations[", key, "]"),
                    StrCat("expected ", expected, ", got ", DescribeJson(word), hint)});
}

void CheckAnnotations(const TFJob& job, Issues& issues) {
  CheckAnnotation(job, kGangSchedulerAnnotation, kGangSchedulers,
                  "native, volcano, scheduler-plugins or none", issues);
  CheckAnnotation(job, kNetworkPolicyAnnotation, kBooleans, "true or false", issues);
}

void CheckRunPolicy(const RunPolicy& policy, Issues& issues) {
  const std::string path = "spec.runPolicy";
  CheckNotNegative(path + ".ttlSecondsAfterFinished", policy.ttl_seconds_after_finished, issues);
  CheckNotNegative(path + ".activeDeadlineSeconds", policy.active_deadline_seconds, issues);
  CheckNotNegative(path + ".backoffLimit", policy.backoff_limit, issues);
  const std::string manager = policy.managed_by.value_or(kOurManager);
  if (manager != kOurManager && manager != kMultiKueue) {
    issues.push_back({path + ".managedBy", StrCat("expected \"", kOurManager, "\" or \"",
                                                  kMultiKueue, "\", got ", DescribeJson(manager))});
  }
}

}  // namespace

std::string ToString(const FieldIssue& issue) {
  return StrCat(issue.path, ": ", issue.message);
}

std::vector<FieldIssue> Validate(const TFJob& job) {
  Issues issues;
  CheckNames(job, issues);
  CheckServiceNames(job, issues);
  CheckReplicas(job, issues);
  CheckRunPolicy(job.spec.run_policy, issues);
  if (!job.status.start_time) CheckAnnotations(job, issues);
  std::sort(issues.begin(), issues.end());
  return issues;
}

std::vector<FieldIssue> Warnings(const TFJob& job) {
  Issues issues;
  for (const ReplicaType type : {ReplicaType::kChief, ReplicaType::kMaster}) {
    const int32_t replicas = Replicas(job, type);
    if (replicas < 2) continue;
    issues.push_back({StrCat(SpecPath(type), ".replicas"),
                      StrCat(replicas, " replicas of ", Name(type),
                             " are all chiefs, and all of them must succeed; usually there is 1")});
  }
  if (job.status.start_time) CheckAnnotations(job, issues);
  const auto& scheduling = job.spec.run_policy.scheduling_policy;
  if (scheduling && scheduling->min_available) {
    const int32_t wanted = *scheduling->min_available;
    const int64_t total = TotalReplicas(job);
    if (wanted > total || wanted < 0) {
      issues.push_back({"spec.runPolicy.schedulingPolicy.minAvailable",
                        StrCat(wanted, " pods are requested, but the job has ", total,
                               wanted < 0 ? "" : ": it will never be scheduled as a gang")});
    }
  }
  std::sort(issues.begin(), issues.end());
  return issues;
}

}  // namespace tfjob::api
