#include "runtime/cluster/cluster.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "runtime/base/env.h"

namespace tfjob::cluster {

std::string ToString(const Task& task) {
  return StrCat("/job:", task.type, "/task:", task.index);
}

const Job* Cluster::job(std::string_view name) const {
  for (const Job& job : jobs) {
    if (job.name == name) return &job;
  }
  return nullptr;
}

const std::string& Cluster::address(const Task& task) const {
  static const std::string none;
  const Job* found = job(task.type);
  if (found == nullptr) return none;
  auto entry = found->addresses.find(task.index);
  return entry == found->addresses.end() ? none : entry->second;
}

int Cluster::size(std::string_view job_name) const {
  const Job* found = job(job_name);
  return found == nullptr ? 0 : static_cast<int>(found->addresses.size());
}

bool Cluster::sparse() const {
  return std::ranges::any_of(jobs, &Job::sparse);
}

std::string_view Name(Role role) {
  switch (role) {
    case Role::kChief:
      return "chief";
    case Role::kWorker:
      return "worker";
    case Role::kParameterServer:
      return "ps";
    case Role::kEvaluator:
      return "evaluator";
  }
  return "";
}

Task ChiefOf(const TfConfig& config) {
  if (!config.chief_type.empty()) return {config.chief_type, 0};
  for (const char* type : {"chief", "master"}) {
    if (config.cluster.size(type) > 0) return {type, 0};
  }
  return {"worker", 0};
}

Role RoleOf(const TfConfig& config) {
  if (config.task.type == "ps") return Role::kParameterServer;
  if (config.task.type == "evaluator") return Role::kEvaluator;
  return config.task == ChiefOf(config) ? Role::kChief : Role::kWorker;
}

std::vector<Task> TrainingTasks(const TfConfig& config) {
  std::vector<Task> tasks = {ChiefOf(config)};
  if (const Job* workers = config.cluster.job("worker")) {
    for (const auto& [index, address] : workers->addresses) {
      const Task worker{"worker", index};
      if (worker != tasks.front()) tasks.push_back(worker);
    }
  }
  return tasks;
}

int TrainingTaskCount(const TfConfig& config) {
  return config.cluster.sparse() ? 0 : static_cast<int>(TrainingTasks(config).size());
}

int TrainingRank(const TfConfig& config, const Task& task) {
  if (config.cluster.sparse()) {
    const Task chief = ChiefOf(config);
    if (task == chief) return 0;
    if (task.type != "worker") return -1;
    return chief.type == "worker" ? task.index : task.index + 1;
  }
  const std::vector<Task> tasks = TrainingTasks(config);
  for (size_t rank = 0; rank < tasks.size(); ++rank) {
    if (tasks[rank] == task) return static_cast<int>(rank);
  }
  return -1;
}

bool MayHave(const TfConfig& config, const Task& task) {
  if (task.index < 0 || task.index >= kMostTasks) return false;
  const Job* job = config.cluster.job(task.type);
  if (task == config.task || (job != nullptr && job->addresses.contains(task.index))) return true;
  if (config.cluster.sparse()) {
    if (task.type == "worker" || task.type == "ps") return true;
    const bool may_be_chief = config.chief_type.empty()
                                  ? task.type == "chief" || task.type == "master"
                                  : task.type == config.chief_type;
    return may_be_chief && task.index == 0;
  }
  return job != nullptr && task.type == "worker";
}

namespace {

// Returns the type of the chief in a job whose tasks have these addresses.
std::string ChiefTypeOf(const AddressPatterns& patterns) {
  for (const char* type : {"chief", "master"}) {
    if (patterns.contains(type)) return type;
  }
  return "worker";
}

}  // namespace

StatusOr<TfConfig> TfConfigFromEnvironment() {
  ASSIGN_OR_RETURN(TfConfig config, ParseTfConfig(GetEnv("TF_CONFIG").value_or("")));
  std::string chief = GetEnv("TFJOB_CHIEF").value_or("");
  if (!chief.empty() && chief != "chief" && chief != "master" && chief != "worker") {
    return InvalidArgument("TFJOB_CHIEF: expected chief, master or worker, got '", chief, "'");
  }
  AddressPatterns patterns;
  if (const std::string text = GetEnv(kAddressPatternsVariable).value_or(""); !text.empty()) {
    ASSIGN_OR_RETURN(patterns, ParseAddressPatterns(text));
    const std::string implied = ChiefTypeOf(patterns);
    if (chief.empty()) chief = implied;
    if (chief != implied) {
      return InvalidArgument("TFJOB_CHIEF: expected ", implied,
                             ", which leads the tasks in TFJOB_ADDRESS_PATTERNS, got ", chief,
                             "; give both variables the values of the same job");
    }
  }
  if (!config.cluster.sparse()) return config;
  config.chief_type = std::move(chief);
  config.patterns = std::move(patterns);
  return config;
}

StatusOr<JobIdentity> JobIdentityFromEnvironment() {
  JobIdentity identity{.uid = GetEnv("TFJOB_UID").value_or("")};
  const std::string attempt = GetEnv("TFJOB_ATTEMPT").value_or("0");
  if (!absl::SimpleAtoi(attempt, &identity.attempt) || identity.attempt < 0) {
    return InvalidArgument("TFJOB_ATTEMPT: expected a number from 0, got '", attempt, "'");
  }
  return identity;
}

StatusOr<Duration> GracePeriodFromEnvironment() {
  constexpr int64_t kYear = 365 * 24 * 3600;
  const std::string text = GetEnv("TFJOB_GRACE_PERIOD_SECONDS").value_or("30");
  int64_t seconds = 0;
  if (!absl::SimpleAtoi(text, &seconds) || seconds < 0) {
    return InvalidArgument(
        "TFJOB_GRACE_PERIOD_SECONDS: expected a whole number of seconds from 0, got '", text, "'");
  }
  return std::chrono::seconds(std::min(seconds, kYear));
}

}  // namespace tfjob::cluster
