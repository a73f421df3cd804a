#include "runtime/cluster/sparse_cluster.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/check.h"

namespace tfjob::cluster {
namespace {

// Returns the type of the chief, or "" if it is unknown.
std::string KnownChiefType(const TfConfig& config) {
  if (!config.chief_type.empty()) return config.chief_type;
  const bool is_chief = config.task.type == "chief" || config.task.type == "master";
  return is_chief ? config.task.type : "";
}

Status CheckChiefType(const TfConfig& config) {
  const std::string chief = KnownChiefType(config);
  if (chief.empty()) {
    return InvalidArgument(
        "TFJOB_CHIEF: expected the type of the task that leads the others (chief, master or "
        "worker), because this TF_CONFIG lists only the task itself, got nothing; set the variable "
        "in all tasks of the job");
  }
  if (config.task == Task{chief, 0} || config.task.type == "worker") return OkStatus();
  return InvalidArgument("TFJOB_CHIEF: ", ToString({chief, 0}), " leads the tasks of the job, and ",
                         ToString(config.task), ", which this task is according to TF_CONFIG, ",
                         "cannot be another of them; expected the variables of the same job");
}

// Returns patterns with the names that an operator gives the tasks of a job: JOB-worker-3.
AddressPatterns NamesOf(std::string_view job, const std::string& chief, std::string_view rest) {
  AddressPatterns patterns;
  for (const std::string& type : {chief, std::string("worker")})
    patterns[type] = {.before = StrCat(job, "-", type, "-"), .after = std::string(rest)};
  return patterns;
}

// Derives the patterns from an address such as mnist-worker-3.ns.svc:2222.
StatusOr<AddressPatterns> PatternsOfName(const TfConfig& config) {
  const std::string_view own = config.cluster.address(config.task);
  const std::string_view label = own.substr(0, own.find_first_of(".:"));
  const std::string ending = StrCat("-", config.task.type, "-", config.task.index);
  const std::string chief = KnownChiefType(config);
  if (!label.ends_with(ending) || label.size() == ending.size()) {
    return InvalidArgument(
        kAddressPatternsVariable, ": this TF_CONFIG lists only the task itself, and the addresses ",
        "of the other tasks do not follow from the task's own one, ", own,
        ", which does not begin with JOB", ending, "; set the variable in all tasks of the job, ",
        "for example to ", Print(NamesOf("JOB", chief, ":2222")),
        ", where {index} may also be part of a port, as in 10.0.0.5:{2222+index}; or list all ",
        "tasks in TF_CONFIG");
  }
  return NamesOf(label.substr(0, label.size() - ending.size()), chief, own.substr(label.size()));
}

Status CheckPatterns(const TfConfig& config) {
  for (const std::string& type : {KnownChiefType(config), std::string("worker")}) {
    if (config.patterns.contains(type)) continue;
    return InvalidArgument(kAddressPatternsVariable,
                           ": expected the addresses of the tasks of type ", type, ", got ",
                           Print(config.patterns));
  }
  const AddressPattern& pattern = config.patterns.at(config.task.type);
  const std::string &own = config.cluster.address(config.task),
                    derived = pattern(config.task.index);
  if (own == derived) return OkStatus();
  return InvalidArgument(kAddressPatternsVariable, ": ", config.task.type,
                         ": expected a pattern in which ", ToString(config.task),
                         " has its address in TF_CONFIG, ", own, ", got \"", Print(pattern),
                         "\", in which it has ", derived);
}

// Adds tasks to a cluster, and checks their addresses.
class Lister {
 public:
  explicit Lister(const AddressPatterns& patterns) : patterns_(patterns) {}

  Status Add(const Task& task) {
    const auto pattern = patterns_.find(task.type);
    if (pattern == patterns_.end()) return OkStatus();
    const std::string address = pattern->second(task.index);
    auto& addresses = JobOf(task.type).addresses;
    if (addresses.contains(task.index)) return OkStatus();
    if (!IsAddress(address)) {
      return InvalidArgument(kAddressPatternsVariable, ": ", ToString(task),
                             " would have the address ", address,
                             ", expected host:port with a port from 1 to 65535; use smaller ",
                             "numbers, or reduce strategy.max_replicas");
    }
    RETURN_IF_ERROR(Note(task, address));
    addresses[task.index] = address;
    return OkStatus();
  }
  Status Add(const Job& servers) {
    for (const auto& [index, address] : servers.addresses)
      RETURN_IF_ERROR(Note({servers.name, index}, address));
    cluster_.jobs.push_back(servers);
    return OkStatus();
  }
  Cluster Take() { return std::move(cluster_); }

 private:
  Job& JobOf(const std::string& type) {
    const auto found = std::ranges::find(cluster_.jobs, type, &Job::name);
    return found == cluster_.jobs.end() ? cluster_.jobs.emplace_back(Job{.name = type}) : *found;
  }
  Status Note(const Task& task, const std::string& address) {
    const auto [other, fresh] = tasks_.emplace(address, task);
    if (fresh) return OkStatus();
    return InvalidArgument(kAddressPatternsVariable, ": ", ToString(other->second), " and ",
                           ToString(task), " would both have the address ", address,
                           "; every task needs its own");
  }

  const AddressPatterns& patterns_;
  Cluster cluster_;
  std::map<std::string, Task> tasks_;  // by address
};

}  // namespace

StatusOr<AddressPatterns> PatternsOf(const TfConfig& config) {
  ENFORCE(config.cluster.sparse(), "the list form contains the addresses");
  RETURN_IF_ERROR(CheckChiefType(config));
  if (config.patterns.empty()) return PatternsOfName(config);
  RETURN_IF_ERROR(CheckPatterns(config));
  return config.patterns;
}

StatusOr<TfConfig> ListTasks(const TfConfig& config, int tasks) {
  ASSIGN_OR_RETURN(const AddressPatterns patterns, PatternsOf(config));
  TfConfig listed{.task = config.task,
                  .environment = config.environment,
                  .chief_type = KnownChiefType(config),
                  .open = true};
  Lister lister(patterns);
  const int chiefs = listed.chief_type == "worker" ? 0 : 1;
  RETURN_IF_ERROR(lister.Add(Task{listed.chief_type, 0}));
  for (int index = 0; index < tasks - chiefs; ++index)
    RETURN_IF_ERROR(lister.Add(Task{"worker", index}));
  RETURN_IF_ERROR(lister.Add(config.task));
  RETURN_IF_ERROR(lister.Add(Task{"evaluator", 0}));
  const Job* servers = config.cluster.job("ps");
  if (servers != nullptr && !servers->addresses.empty()) RETURN_IF_ERROR(lister.Add(*servers));
  listed.cluster = lister.Take();
  return listed;
}

}  // namespace tfjob::cluster
