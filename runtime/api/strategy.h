// Defines how the work is distributed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "status.h"

namespace tfjob::api {

struct StrategyData;

// The keys of the training file's section `strategy`, with their defaults
// (docs/training-file.md#strategies).
struct MultiWorkerMirroredOptions {
  int64_t bytes_per_pack = 0;      // of gradients that are exchanged at once; 0: automatic
  double timeout_seconds = 0;      // of an exchange; 0: no limit
  std::string transport = "auto";  // or "tcp", "shared_memory"
  // If a task is lost, the others "wait" until it is back, or "shrink": continue without it.
  std::string on_failure = "wait";
};

struct ParameterServerOptions {
  std::string mode = "async";                 // or "sync"
  int64_t replicas_to_aggregate = 0;          // gradients per synchronous step; 0: one per task
  std::string placement = "round_robin";      // of variables on servers; or "balanced"
  int64_t shard_bytes = 32 << 20;             // larger variables are split across servers; 0: never
  int64_t table_bytes = 4 << 20;              // larger tables stay on the servers; 0: never
  std::optional<int64_t> max_staleness = {};  // with "async", in updates; nullopt: unlimited
  // With "sync": how long the others wait for a task that responds but makes no step, as a multiple
  // of the median step time (0: without limit), and at least.
  double step_lease_factor = 10;
  double step_lease_secs = 60;
  double start_timeout_secs = 600;  // with "sync": how long the first step waits for all tasks
};

// Immutable and cheap to copy.
class Strategy {
 public:
  // Moves are copies, so that a value can be used after a move.
  Strategy(const Strategy&) = default;
  Strategy& operator=(const Strategy&) = default;
  // Reads TF_CONFIG, which `tfjob run` and the operator of a TFJob set, and the other variables of
  // a task, as tfjob-trainer does. Without TF_CONFIG, the process trains alone on one device; in a
  // job with ps tasks, with parameter servers; in another job with several tasks, with all-reduce.
  // If the variables are invalid, Session::Compile returns InvalidArgument. The first call of this
  // function or of the next two takes the job's key from the environment (TFJOB_KEY), so that
  // programs which this one starts do not inherit it; call it before other threads use the
  // environment.
  static Strategy FromEnvironment();
  // Reads the environment, too, and trains with all-reduce, also if this is the only task. Fit
  // returns InvalidArgument if the job has ps tasks.
  static Strategy MultiWorkerMirrored(const MultiWorkerMirroredOptions& options = {});
  // Reads the environment, too, and trains with parameter servers. All tasks must use the same
  // options. Fit returns InvalidArgument if the job has no ps task.
  static Strategy ParameterServer(const ParameterServerOptions& options = {});
  // Trains on one device, and ignores the environment, like the next two.
  static Strategy OneDevice();
  // Divides the batches, and the process's processors, among several devices of this process.
  static Strategy Mirrored(int devices);
  // The same, with the variables on the first device.
  static Strategy CentralStorage(int devices);

  const Status& status() const&;
  Status status() && { return std::as_const(*this).status(); }
  // Returns the name that the training file uses: "mirrored"; "auto" for FromEnvironment.
  std::string name() const;
  // Returns the task's type in TF_CONFIG: "chief", "master", "worker", "ps", "evaluator"; "worker"
  // for a process that trains alone. And its index among the tasks of this type.
  std::string task_type() const;
  int task_index() const;
  // Returns whether this process is the chief of its job, which alone needs to save what the job
  // produces. True for a process that trains alone.
  bool is_chief() const;

 private:
  friend struct Access;
  explicit Strategy(std::shared_ptr<const StrategyData> data) : data_(std::move(data)) {}

  std::shared_ptr<const StrategyData> data_;
};

}  // namespace tfjob::api
