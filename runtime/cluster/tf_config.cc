// Parses and prints the JSON form of TF_CONFIG.
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "absl/strings/numbers.h"
#include "runtime/base/json.h"
#include "runtime/cluster/cluster.h"

namespace tfjob::cluster {
namespace {

using OrderedJson = nlohmann::ordered_json;

// The largest index of a task. The task's rank, which may be its index plus 1, must also fit in an
// int.
constexpr int32_t kMostIndex = std::numeric_limits<int32_t>::max() - 1;

OrderedJson AddressesOf(const Job& job) {
  if (job.null) return nullptr;
  OrderedJson addresses = job.sparse ? OrderedJson::object() : OrderedJson::array();
  for (const auto& [index, address] : job.addresses) {
    if (job.sparse) {
      addresses[std::to_string(index)] = address;
    } else {
      addresses.push_back(address);
    }
  }
  return addresses;
}

Status CheckAddress(const JsonField& field, const std::string& address) {
  if (IsAddress(address)) return OkStatus();
  return field.Mismatch("\"host:port\" with a port from 1 to 65535");
}

class Parser {
 public:
  StatusOr<Cluster> ParseCluster(const JsonField& field) {
    Cluster cluster;
    ASSIGN_OR_RETURN(auto members, field.Members());
    for (const auto& [name, addresses] : members) {
      ASSIGN_OR_RETURN(Job job, ParseJob(name, addresses));
      cluster.jobs.push_back(std::move(job));
    }
    return cluster;
  }

 private:
  StatusOr<Job> ParseJob(const std::string& name, const JsonField& field) {
    Job job{.name = name};
    if (!field.present()) {
      job.null = true;
      return job;
    }
    if (field.value()->is_object()) {
      job.sparse = true;
      ASSIGN_OR_RETURN(auto members, field.Members());
      for (const auto& [key, address] : members) {
        int32_t index = 0;
        if (!absl::SimpleAtoi(key, &index) || index < 0 || index > kMostIndex) {
          return InvalidArgument("TF_CONFIG ", field.path(),
                                 ": expected task indexes as keys, got \"", key, "\"");
        }
        RETURN_IF_ERROR(AddAddress(job, index, address));
      }
      return job;
    }
    if (!field.value()->is_array())
      return field.Mismatch("a list of addresses, or an object from index to address");
    ASSIGN_OR_RETURN(auto elements, field.Elements());
    for (size_t i = 0; i < elements.size(); ++i)
      RETURN_IF_ERROR(AddAddress(job, static_cast<int32_t>(i), elements[i]));
    return job;
  }

  Status AddAddress(Job& job, int32_t index, const JsonField& field) {
    ASSIGN_OR_RETURN(std::string address, field.String());
    RETURN_IF_ERROR(CheckAddress(field, address));
    auto [other, inserted] = seen_.emplace(address, field.path());
    if (!inserted) {
      return InvalidArgument("TF_CONFIG ", field.path(), ": the address ", address,
                             " is also used by ", other->second, "; every task needs its own");
    }
    job.addresses[index] = std::move(address);
    return OkStatus();
  }

  std::map<std::string, std::string> seen_;  // address → path
};

StatusOr<Task> ParseTask(const JsonField& field) {
  ASSIGN_OR_RETURN(std::string type, field["type"].String());
  ASSIGN_OR_RETURN(int32_t index, field["index"].Int32());
  if (index < 0 || index > kMostIndex) return field["index"].Mismatch("an index from 0");
  return Task{std::move(type), index};
}

Status CheckChiefs(const Cluster& cluster) {
  if (cluster.size("chief") > 0 && cluster.size("master") > 0) {
    return InvalidArgument("TF_CONFIG cluster has both chief and master; keep one of them");
  }
  for (const char* type : {"chief", "master"}) {
    if (cluster.size(type) > 1) {
      return InvalidArgument("TF_CONFIG cluster.", type, ": expected one address, got ",
                             cluster.size(type));
    }
  }
  return OkStatus();
}

Status CheckTask(const TfConfig& config) {
  if (config.cluster.empty()) {
    if (config.task == Task{"worker", 0} || config.task == Task{"chief", 0} ||
        config.task == Task{"master", 0}) {
      return OkStatus();
    }
    return InvalidArgument("TF_CONFIG has no cluster, so the task must be worker 0, but it is ",
                           ToString(config.task));
  }
  if (config.task.type == "evaluator" || !config.cluster.address(config.task).empty())
    return OkStatus();
  const Job* job = config.cluster.job(config.task.type);
  return InvalidArgument(
      "TF_CONFIG task: the cluster has no ", ToString(config.task), " (",
      job == nullptr ? StrCat("no job \"", config.task.type, "\"")
                     : StrCat("job \"", job->name, "\" has ", job->addresses.size(), " addresses"),
      ")");
}

// In the sparse form, a ps task's list of servers contains only its own address. Moves that address
// from index 0 to the task's index.
void PlaceOwnAddress(TfConfig& config) {
  if (!config.cluster.sparse() || config.task.type != "ps") return;
  for (Job& job : config.cluster.jobs) {
    if (job.name != "ps" || job.sparse || job.addresses.size() != 1) continue;
    auto own = job.addresses.extract(job.addresses.begin());
    own.key() = config.task.index;
    job.addresses.insert(std::move(own));
  }
}

StatusOr<TfConfig> Parse(const Json& document) {
  const JsonField root(document);
  if (!document.is_object()) return root.Mismatch("an object");
  TfConfig config;
  const JsonField cluster = root["cluster"].present() ? root["cluster"] : root["sparseCluster"];
  ASSIGN_OR_RETURN(config.cluster, Parser().ParseCluster(cluster));
  if (root["task"].present() || !config.cluster.empty()) {
    ASSIGN_OR_RETURN(config.task, ParseTask(root["task"]));
  }
  PlaceOwnAddress(config);
  ASSIGN_OR_RETURN(config.environment, root["environment"].StringOr(""));
  return config;
}

}  // namespace

std::string Print(const TfConfig& config) {
  return PrintWithTask(PrintCluster(config.cluster), config.task, config.environment);
}

std::string PrintCluster(const Cluster& cluster) {
  OrderedJson document = OrderedJson::object();
  for (const Job& job : cluster.jobs) document[job.name] = AddressesOf(job);
  return document.dump();
}

std::string PrintWithTask(std::string_view printed_cluster, const Task& task,
                          std::string_view environment) {
  OrderedJson rest;
  rest["task"]["type"] = task.type;
  rest["task"]["index"] = task.index;
  if (!environment.empty()) rest["environment"] = environment;
  return StrCat("{\"cluster\":", printed_cluster, ",", rest.dump().substr(1));
}

StatusOr<TfConfig> ParseTfConfig(std::string_view text) {
  if (text.empty()) return TfConfig();
  ASSIGN_OR_RETURN(Json document, ParseJson(text, "TF_CONFIG"));
  StatusOr<TfConfig> config = Parse(document);
  if (!config.ok()) {
    const bool named = Message(config.status()).starts_with("TF_CONFIG");
    return named ? config.status() : Annotate(config.status(), "TF_CONFIG");
  }
  RETURN_IF_ERROR(CheckChiefs(config->cluster));
  RETURN_IF_ERROR(CheckTask(*config));
  return config;
}

}  // namespace tfjob::cluster
