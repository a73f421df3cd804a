// Who takes part in a job: TF_CONFIG's text as a value, and back.
//
// Format:
// https://www.tensorflow.org/guide/distributed_training#setting_up_the_tf_config_environment_variable
//   {"cluster":{"chief":["h:2222"],"ps":["h:2222"],"worker":["h:2222","h:2222"]},
//    "task":{"type":"worker","index":1},"environment":"cloud"}
// The sparse form, which tolerates workers that come and go, gives a job as an object from index to
// address. A task is told of itself and of the servers; a server, of itself alone, as a list of one:
//   {"cluster":{"worker":{"1":"h:2222"},"ps":["h:2222"]},"task":{"type":"worker","index":1}}
//   {"cluster":{"worker":{},"ps":["h:2222"]},"task":{"type":"ps","index":1}}
// (tf-operator before 1.2 called its key "sparseCluster"; both are read.) It does not say who the
// job's chief is: the variable TFJOB_CHIEF does.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob::cluster {

// One process of a job. `type` is TensorFlow's word: "chief", "master", "worker", "ps",
// "evaluator".
struct Task {
  std::string type;
  int32_t index = 0;

  auto operator<=>(const Task&) const = default;
};
std::string ToString(const Task& task);  // "/job:worker/task:1"

// The tasks of one type: index → "host:port".
struct Job {
  std::string name;
  std::map<int32_t, std::string> addresses;
  bool sparse =
      false;  // written as an object; else as a list, whose indexes run from 0 without a gap
  bool null = false;  // written as null (the reference's dynamic form without parameter servers)

  bool operator==(const Job&) const = default;
};

struct Cluster {
  std::vector<Job> jobs;  // in the order in which they are written

  const Job* job(std::string_view name) const;
  // "" when there is no such task.
  const std::string& address(const Task& task) const;
  int size(std::string_view job_name) const;
  bool empty() const { return jobs.empty(); }
  // In the sparse form nobody knows all workers, and they may come and go.
  bool sparse() const;

  bool operator==(const Cluster&) const = default;
};

struct TfConfig {
  Cluster cluster;  // empty: this process trains alone
  Task task{"worker", 0};
  std::string environment;  // "cloud", or "" (not written)
  // Sparse form: the type of the job's chief ("chief", "master", "worker"), whose index is 0; "" when
  // nobody said. Not written.
  std::string chief_type;

  bool operator==(const TfConfig&) const = default;
};

// Compact, members in the order cluster, task, environment, as the Training Operator writes it.
std::string Print(const TfConfig& config);
// The same in two halves, for a writer of one cluster to its many tasks.
std::string PrintCluster(const Cluster& cluster);
std::string PrintWithTask(std::string_view printed_cluster, const Task& task,
                          std::string_view environment);

// "" and "{}" mean: alone. InvalidArgument, with the JSON path, for: not JSON, addresses without a
// port, one address twice, negative indexes, Chief and Master together, more than one of either, a
// task that the cluster does not have (an evaluator may be missing from it).
StatusOr<TfConfig> ParseTfConfig(std::string_view text);

// What a task does. The chief initialises, saves and ends the job, and trains as a worker does.
enum class Role { kChief, kWorker, kParameterServer, kEvaluator };
std::string_view Name(Role role);  // "chief"

// The job's chief: what chief_type says; else chief 0, else master 0, else worker 0 (also in the sparse
// form, as TensorFlow has it).
Task ChiefOf(const TfConfig& config);
Role RoleOf(const TfConfig& config);

// All tasks that compute gradients, the chief first, then the workers by index; of the sparse form
// those that it names.
std::vector<Task> TrainingTasks(const TfConfig& config);
// How many they are; 0 in the sparse form: nobody knows.
int TrainingTaskCount(const TfConfig& config);
// Where the task stands in TrainingTasks (in the sparse form: would stand if all were known), or -1
// when it does not train.
int TrainingRank(const TfConfig& config, const Task& task);

// What distinguishes this job from an older one at the same addresses; sent in every handshake.
struct JobIdentity {
  std::string uid;      // TFJOB_UID; "" outside an operator
  int32_t attempt = 0;  // TFJOB_ATTEMPT

  bool operator==(const JobIdentity&) const = default;
};

// TF_CONFIG, TFJOB_CHIEF, TFJOB_UID and TFJOB_ATTEMPT of this process.
StatusOr<TfConfig> TfConfigFromEnvironment();
StatusOr<JobIdentity> JobIdentityFromEnvironment();

}  // namespace tfjob::cluster
