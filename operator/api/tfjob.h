// Defines the kubeflow.org/v1 TFJob as plain values. Optional fields contain what the user wrote.
// SetDefaults (defaults.h) sets missing fields in memory, but never in the stored object.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/objects/metadata.h"
#include "runtime/base/json.h"

namespace tfjob::api {

inline constexpr char kApiVersion[] = "kubeflow.org/v1";
inline constexpr char kKind[] = "TFJob";
inline constexpr char kContainerName[] = "tensorflow";
inline constexpr char kPortName[] = "tfjob-port";
inline constexpr int32_t kDefaultPort = 2222;

// The replica types, in the order in which the status is computed.
enum class ReplicaType { kChief, kEvaluator, kMaster, kPS, kWorker };
inline constexpr std::array<ReplicaType, 5> kReplicaTypes = {
    ReplicaType::kChief, ReplicaType::kEvaluator, ReplicaType::kMaster, ReplicaType::kPS,
    ReplicaType::kWorker};
// Each enum is followed by an array of its values' names, in the same order.
inline constexpr std::array<std::string_view, 5> kReplicaTypeNames = {"Chief", "Evaluator",
                                                                      "Master", "PS", "Worker"};
inline constexpr std::array<std::string_view, 5> kLowerReplicaTypeNames = {
    "chief", "evaluator", "master", "ps", "worker"};
std::string_view Name(ReplicaType type);
std::string_view LowerName(ReplicaType type);  // as used in names, labels and TF_CONFIG
// Parses a name in any letter case ("ps", "WORKER"); returns nullopt if it is unknown.
std::optional<ReplicaType> ParseReplicaType(std::string_view text);

enum class RestartPolicy { kNever, kAlways, kOnFailure, kExitCode };
inline constexpr auto kRestartPolicyNames =
    std::to_array<std::string_view>({"Never", "Always", "OnFailure", "ExitCode"});
inline constexpr auto kRestartPolicies = [] {
  std::array<RestartPolicy, kRestartPolicyNames.size()> all{};
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<RestartPolicy>(i);
  return all;
}();
enum class CleanPodPolicy { kNone, kRunning, kAll };
inline constexpr std::array<std::string_view, 3> kCleanPodPolicyNames = {"None", "Running", "All"};
enum class SuccessPolicy { kDefault, kAllWorkers };
inline constexpr std::array<std::string_view, 2> kSuccessPolicyNames = {"", "AllWorkers"};
enum class RestartScope { kReplica, kJob };
inline constexpr std::array<std::string_view, 2> kRestartScopeNames = {"Replica", "Job"};
std::string_view Name(RestartPolicy policy);
std::string_view Name(CleanPodPolicy policy);
std::string_view Name(SuccessPolicy policy);
std::string_view Name(RestartScope scope);
// Parse one of the names above, which must match exactly; return nullopt for any other text. "" is
// accepted only for the success policy, as its default.
std::optional<RestartPolicy> ParseRestartPolicy(std::string_view text);
std::optional<CleanPodPolicy> ParseCleanPodPolicy(std::string_view text);
std::optional<SuccessPolicy> ParseSuccessPolicy(std::string_view text);
std::optional<RestartScope> ParseRestartScope(std::string_view text);

struct ReplicaSpec {
  std::optional<int32_t> replicas;              // default 1
  std::optional<RestartPolicy> restart_policy;  // default Never
  // A v1 PodTemplateSpec, kept unmodified (including unknown and future fields). Never null
  // after parsing.
  std::shared_ptr<const Json> pod_template;

  bool operator==(const ReplicaSpec& other) const;  // compares templates by value
};

struct SchedulingPolicy {
  std::optional<int32_t> min_available;  // default: the total number of replicas
  std::string queue;
  std::map<std::string, std::string> min_resources;  // quantities, unmodified
  std::string priority_class;
  std::optional<int32_t> schedule_timeout_seconds;

  bool operator==(const SchedulingPolicy&) const = default;
};

struct RunPolicy {
  std::optional<CleanPodPolicy> clean_pod_policy;  // default None; an explicit "" is All
  std::optional<int32_t> ttl_seconds_after_finished;
  std::optional<int64_t> active_deadline_seconds;
  std::optional<int32_t> backoff_limit;
  std::optional<SchedulingPolicy> scheduling_policy;
  bool suspend = false;
  std::optional<std::string> managed_by;
  RestartScope restart_scope = RestartScope::kReplica;

  bool operator==(const RunPolicy&) const = default;
};

struct TFJobSpec {
  RunPolicy run_policy;
  SuccessPolicy success_policy = SuccessPolicy::kDefault;
  bool enable_dynamic_worker = false;
  std::map<ReplicaType, ReplicaSpec> replicas;  // tfReplicaSpecs, by type

  bool operator==(const TFJobSpec&) const = default;
};

enum class ConditionType { kCreated, kRunning, kRestarting, kSucceeded, kFailed, kSuspended };
inline constexpr std::array<std::string_view, 6> kConditionTypeNames = {
    "Created", "Running", "Restarting", "Succeeded", "Failed", "Suspended"};
std::string_view Name(ConditionType type);
std::optional<ConditionType> ParseConditionType(std::string_view text);

struct Condition {
  ConditionType type = ConditionType::kCreated;
  bool status = true;  // "True" or "False"
  std::string reason;
  std::string message;
  Time last_update_time;
  Time last_transition_time;

  bool operator==(const Condition&) const = default;
};

struct ReplicaStatus {
  int32_t active = 0;
  int32_t succeeded = 0;
  int32_t failed = 0;
  std::string selector;  // label selector of the type's pods, for the scale subresource
  int32_t restarts = 0;  // recreations of failed pods + container restarts; never decreases
  std::string completed_indexes;  // "0-3,7": indexes whose container exited with 0 (indexes.h)
  // The sorted UIDs of pods that failed or are being removed. The failures and container restarts
  // of these pods, if they count at all, are already included in `restarts`. This list prevents a
  // pod from being counted twice, even by another instance of the operator whose watch still shows
  // the pod minutes after it is gone.
  std::vector<std::string> replacing;

  bool operator==(const ReplicaStatus&) const = default;
};

struct TFJobStatus {
  std::vector<Condition> conditions;  // the most recently changed entry is last
  // The conditions whose types are not in ConditionType, each as JSON, in their original order.
  // They were written by other controllers; the operator keeps them unchanged.
  std::vector<std::string> foreign_conditions;
  std::map<ReplicaType, ReplicaStatus> replica_statuses;
  std::optional<Time> start_time;
  std::optional<Time> completion_time;
  std::optional<Time> last_reconcile_time;
  int32_t attempt = 0;  // incremented when restartScope Job restarts all replicas
  // The two fields below are for users; `kubectl get` prints them as columns.
  std::string ready;     // "4/6": active and total replicas of all types
  int32_t restarts = 0;  // sum over all types

  bool operator==(const TFJobStatus&) const = default;
};

struct TFJob {
  objects::ObjectMeta metadata;
  TFJobSpec spec;
  TFJobStatus status;

  std::string key() const { return metadata.name_space + "/" + metadata.name; }

  bool operator==(const TFJob&) const = default;
};

}  // namespace tfjob::api
