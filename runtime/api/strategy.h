// Defines strategies, which determine how training is distributed among tasks and devices.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "status.h"

namespace tfjob::api {

struct StrategyData;

// The keys of the training file's `strategy` section, with the same defaults
// (docs/training-file.md#strategies).
struct MultiWorkerMirroredOptions {
  int64_t bytes_per_pack = 0;           // bytes of gradients per exchange; 0: automatic
  double timeout_seconds = 0;           // limit for one exchange; 0: none
  std::string implementation = "auto";  // or "ring": sums travel from task to task, over TCP;
                                        // or "nccl": between GPUs
  std::string transport = "auto";       // or "tcp", "shared_memory"
  // The reaction of the other tasks when a task is lost: "wait" until the task is back, "shrink"
  // the group and continue without the task, or "restart" from the last checkpoint once the task is
  // back.
  std::string on_failure = "wait";
  std::string compression = "none";  // or "bfloat16": send gradients in half as many bytes
};

struct ParameterServerOptions {
  std::string mode = "async";                 // or "sync"
  int64_t replicas_to_aggregate = 0;          // gradients per synchronous step; 0: one per task
  std::string placement = "round_robin";      // of variables on servers; or "balanced"
  int64_t shard_bytes = 32 << 20;             // split larger variables across servers; 0: never
  int64_t table_bytes = 4 << 20;              // keep larger tables on the servers; 0: never
  std::optional<int64_t> max_staleness = {};  // with "async", in updates; nullopt: unlimited
  // With "sync": the time for which the other tasks wait for a task that responds but completes no
  // step. This time is step_lease_factor times the median duration of a step (0: no limit), but at
  // least step_lease_secs.
  double step_lease_factor = 10;
  double step_lease_secs = 60;
  double start_timeout_secs = 600;  // with "sync": how long the first step waits for all tasks
};

// The strategy of a session. Immutable and cheap to copy.
class Strategy {
 public:
  // Moving a Strategy copies it, so a moved-from Strategy can still be used.
  Strategy(const Strategy&) = default;
  Strategy& operator=(const Strategy&) = default;
  // Reads TF_CONFIG and the other environment variables of a task, as tfjob-trainer does. `tfjob
  // run` and the operator of a TFJob set these variables. Trains on one device if TF_CONFIG is not
  // set, with parameter servers if the job has ps tasks, and with all-reduce if the job has several
  // tasks, but no ps. If the variables are invalid, Session::Compile returns InvalidArgument. The
  // first call of FromEnvironment, MultiWorkerMirrored or ParameterServer removes the job's key
  // (TFJOB_KEY) from the environment, so that child processes do not inherit it; call one of these
  // functions before other threads use the environment.
  static Strategy FromEnvironment();
  // Reads the environment like FromEnvironment, but always trains with all-reduce, even if this is
  // the only task. Fit returns InvalidArgument if the job has ps tasks.
  static Strategy MultiWorkerMirrored(const MultiWorkerMirroredOptions& options = {});
  // Reads the environment like FromEnvironment, but always trains with parameter servers. All tasks
  // must use the same options. Fit returns InvalidArgument if the job has no ps task.
  static Strategy ParameterServer(const ParameterServerOptions& options = {});
  // Trains on one device. Ignores the environment, as Mirrored and CentralStorage do.
  static Strategy OneDevice();
  // Trains on several devices of this process. Each batch is split among the devices, which share
  // the processors of the machine.
  static Strategy Mirrored(int devices);
  // Trains like Mirrored, but keeps the variables only on the first device.
  static Strategy CentralStorage(int devices);

  const Status& status() const&;
  Status status() && { return std::as_const(*this).status(); }
  // Returns the strategy's name in training files, such as "mirrored", or "auto" for
  // FromEnvironment.
  std::string name() const;
  // Return the task's type in TF_CONFIG ("chief", "master", "worker", "ps" or "evaluator"), and its
  // index among the tasks of this type. A process outside a job is worker 0.
  std::string task_type() const;
  int task_index() const;
  // Returns whether this process is the chief of its job. Only the chief needs to save the results
  // of the job. Returns true for a process outside a job.
  bool is_chief() const;

 private:
  friend struct Access;
  explicit Strategy(std::shared_ptr<const StrategyData> data) : data_(std::move(data)) {}

  std::shared_ptr<const StrategyData> data_;
};

}  // namespace tfjob::api
