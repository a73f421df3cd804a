// Defines how training is distributed among tasks and devices.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "status.h"

namespace tfjob::api {

struct StrategyData;

// The keys of the training file's `strategy` section, with their defaults
// (docs/training-file.md#strategies).
struct MultiWorkerMirroredOptions {
  int64_t bytes_per_pack = 0;      // of gradients per exchange; 0: automatic
  double timeout_seconds = 0;      // of one exchange; 0: no limit
  std::string transport = "auto";  // or "tcp", "shared_memory"
  // If a task is lost, the others "wait" until it is back, "shrink" the group and continue without
  // it, or wait and then "restart" from the last checkpoint.
  std::string on_failure = "wait";
};

struct ParameterServerOptions {
  std::string mode = "async";                 // or "sync"
  int64_t replicas_to_aggregate = 0;          // gradients per synchronous step; 0: one per task
  std::string placement = "round_robin";      // of variables on servers; or "balanced"
  int64_t shard_bytes = 32 << 20;             // larger variables are split across servers; 0: never
  int64_t table_bytes = 4 << 20;              // larger tables stay on the servers; 0: never
  std::optional<int64_t> max_staleness = {};  // with "async", in updates; nullopt: unlimited
  // With "sync": how long the other tasks wait for a task that responds but completes no step. The
  // limit is step_lease_factor times the median time of a step (0: no limit), but at least
  // step_lease_secs.
  double step_lease_factor = 10;
  double step_lease_secs = 60;
  double start_timeout_secs = 600;  // with "sync": how long the first step waits for all tasks
};

// Immutable and cheap to copy.
class Strategy {
 public:
  // A move copies, so a moved-from Strategy can still be used.
  Strategy(const Strategy&) = default;
  Strategy& operator=(const Strategy&) = default;
  // Reads TF_CONFIG and the other environment variables of a task, which `tfjob run` and the
  // operator of a TFJob set, as tfjob-trainer does. Trains alone on one device if TF_CONFIG is not
  // set, with parameter servers if the job has ps tasks, and with all-reduce if the job has several
  // tasks, but no ps. If the variables are invalid, Session::Compile returns InvalidArgument. The
  // first call of FromEnvironment, MultiWorkerMirrored or ParameterServer removes the job's key
  // (TFJOB_KEY) from the environment, so that child processes do not inherit it; make this call
  // before other threads use the environment.
  static Strategy FromEnvironment();
  // Also reads the environment, but always trains with all-reduce, even if this is the only task.
  // Fit returns InvalidArgument if the job has ps tasks.
  static Strategy MultiWorkerMirrored(const MultiWorkerMirroredOptions& options = {});
  // Also reads the environment, but always trains with parameter servers. All tasks must use the
  // same options. Fit returns InvalidArgument if the job has no ps task.
  static Strategy ParameterServer(const ParameterServerOptions& options = {});
  // Trains on one device. Ignores the environment, as Mirrored and CentralStorage do.
  static Strategy OneDevice();
  // Trains on several devices of this process, which share each batch and the processors.
  static Strategy Mirrored(int devices);
  // Trains like Mirrored, but with the variables on the first device.
  static Strategy CentralStorage(int devices);

  const Status& status() const&;
  Status status() && { return std::as_const(*this).status(); }
  // Returns the name that a training file uses, such as "mirrored"; "auto" for FromEnvironment.
  std::string name() const;
  // Return the task's type in TF_CONFIG ("chief", "master", "worker", "ps" or "evaluator"), and its
  // index among the tasks of this type. A process that trains alone is worker 0.
  std::string task_type() const;
  int task_index() const;
  // Returns whether this process is the chief of its job, the only task that needs to save the
  // job's results. True for a process that trains alone.
  bool is_chief() const;

 private:
  friend struct Access;
  explicit Strategy(std::shared_ptr<const StrategyData> data) : data_(std::move(data)) {}

  std::shared_ptr<const StrategyData> data_;
};

}  // namespace tfjob::api
