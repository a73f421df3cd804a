// Describes the tasks of a job: converts TF_CONFIG to a value and back.
//
// Format:
// https://www.tensorflow.org/guide/distributed_training#setting_up_the_tf_config_environment_variable
//   {"cluster":{"chief":["h:2222"],"ps":["h:2222"],"worker":["h:2222","h:2222"]},
//    "task":{"type":"worker","index":1},"environment":"cloud"}
// The sparse form lets workers join and leave: the tasks of a type are an object that maps each
// index to an address. The TF_CONFIG of a worker contains its own address and the servers'
// addresses. That of a server contains only its own address, as a list of one element:
//   {"cluster":{"worker":{"1":"h:2222"},"ps":["h:2222"]},"task":{"type":"worker","index":1}}
//   {"cluster":{"worker":{},"ps":["h:2222"]},"task":{"type":"ps","index":1}}
// tf-operator before 1.2 used the key "sparseCluster" for this form; both keys are accepted. The
// sparse form does not name the job's chief; the variable TFJOB_CHIEF names it. Nor does it contain
// the addresses of the other training tasks; they follow from TFJOB_ADDRESS_PATTERNS or from the
// task's own name (sparse_cluster.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/cluster/address_pattern.h"

namespace tfjob::cluster {

// One process of a job. `type` is TensorFlow's term: "chief", "master", "worker",
// "ps", "evaluator".
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
  bool sparse = false;  // written as an object; otherwise as a list for the indexes 0 to N-1
  bool null = false;    // written as null, as the Training Operator does in dynamic jobs without ps

  bool operator==(const Job&) const = default;
};

struct Cluster {
  std::vector<Job> jobs;  // in the order in which they are written

  const Job* job(std::string_view name) const;
  // Returns the task's address, or "" if there is no such task.
  const std::string& address(const Task& task) const;
  int size(std::string_view job_name) const;
  bool empty() const { return jobs.empty(); }
  // Returns whether the cluster has the sparse form, in which workers may join and leave and no
  // task has a list of all workers.
  bool sparse() const;

  bool operator==(const Cluster&) const = default;
};

struct TfConfig {
  Cluster cluster;  // empty if this process trains alone
  Task task{"worker", 0};
  std::string environment;  // "cloud", or "" (not written)
  // Sparse form only: the type of the job's chief ("chief", "master", "worker"), which has index 0;
  // "" if unknown. Print omits it.
  std::string chief_type;
  // Sparse form only: the addresses of tasks that the cluster does not list; empty if unknown. If
  // they are known, so is chief_type. Print omits them.
  AddressPatterns patterns;
  // The cluster was derived from the sparse form (ListTasks): it lists all tasks that may train,
  // not only those that the job has. Print omits this.
  bool open = false;

  bool operator==(const TfConfig&) const = default;
};

// Prints compact JSON with the members in the order cluster, task, environment, as the Training
// Operator does.
std::string Print(const TfConfig& config);
// Print the same JSON in two steps, so that a cluster need be printed only once for all of its
// tasks.
std::string PrintCluster(const Cluster& cluster);
std::string PrintWithTask(std::string_view printed_cluster, const Task& task,
                          std::string_view environment);

// Parses TF_CONFIG. If `text` is "" or "{}", the process trains alone. Returns InvalidArgument,
// with the JSON path, if
//   - `text` is not JSON,
//   - an address has no port or occurs twice,
//   - an index is negative,
//   - the cluster has both a chief and a master, or more than one of either, or
//   - the task is not in the cluster (an evaluator need not be).
StatusOr<TfConfig> ParseTfConfig(std::string_view text);

// The role of a task. The chief initialises variables, saves checkpoints and finishes the job. It
// also trains, like a worker.
enum class Role { kChief, kWorker, kParameterServer, kEvaluator };
std::string_view Name(Role role);  // "chief"

// Returns the job's chief: task 0 of chief_type if that is set, otherwise chief 0 or master 0 if
// there is one, otherwise worker 0 (even in the sparse form, as in TensorFlow).
Task ChiefOf(const TfConfig& config);
Role RoleOf(const TfConfig& config);

// Returns all tasks that compute gradients: the chief, then the workers by index. In the sparse
// form, returns the chief and only those workers that the cluster lists.
std::vector<Task> TrainingTasks(const TfConfig& config);
// Returns the number of training tasks; 0 in the sparse form, where it is unknown.
int TrainingTaskCount(const TfConfig& config);
// Returns the task's position in TrainingTasks, or -1 if it does not train. In the sparse form,
// returns the position that the task would have if all tasks were listed.
int TrainingRank(const TfConfig& config, const Task& task);

// MayHave returns whether the job may contain this task, as far as this process knows. The index
// must be below kMostTasks. This process's own task is always accepted. In the sparse form, the
// task may be the chief, or any worker or ps. In the list form, the task must be listed, except
// that any worker is accepted if the job has any workers, because workers may be added while the
// job runs.
inline constexpr int32_t kMostTasks = 1 << 14;
bool MayHave(const TfConfig& config, const Task& task);

// The identity of a job, which distinguishes it from an earlier job at the same addresses. Tasks
// send it in every handshake.
struct JobIdentity {
  std::string uid;      // TFJOB_UID; "" if no operator runs the job
  int32_t attempt = 0;  // TFJOB_ATTEMPT

  bool operator==(const JobIdentity&) const = default;
};

// Returns how long this process may continue to run after SIGTERM: TFJOB_GRACE_PERIOD_SECONDS or,
// if that is not set, Kubernetes' default of 30 s. A period of more than a year counts as a year.
// Returns InvalidArgument if the variable is not a non-negative whole number.
StatusOr<Duration> GracePeriodFromEnvironment();

// Read this process's environment: TF_CONFIG, TFJOB_CHIEF and TFJOB_ADDRESS_PATTERNS for the
// config, and TFJOB_UID and TFJOB_ATTEMPT for the identity. Return InvalidArgument, with the name
// of the variable, if a variable is invalid or contradicts another one.
StatusOr<TfConfig> TfConfigFromEnvironment();
StatusOr<JobIdentity> JobIdentityFromEnvironment();

}  // namespace tfjob::cluster
