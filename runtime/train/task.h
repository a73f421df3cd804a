// What every role of a job's tasks has in common, and the entry of each role. A role returns OK when the task is done,
// Cancelled when it was asked to stop, else the error that ends it.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/clock.h"
#include "runtime/base/stop.h"
#include "runtime/base/thread_pool.h"
#include "runtime/cluster/cluster.h"
#include "runtime/config/training_config.h"
#include "runtime/rpc/identity.h"
#include "runtime/rpc/server.h"
#include "runtime/train/checkpoint.h"
#include "runtime/train/progress_board.h"

namespace tfjob::train {

struct TaskOptions {
  config::TrainingConfig config;
  cluster::TfConfig tf_config;
  cluster::JobIdentity job;
  // Where progress is served when there is no cluster; "" nowhere.
  std::string lone_address;
};

class TaskContext {
 public:
  // `stop` and `clock` must outlive the context.
  TaskContext(TaskOptions options, const StopSource& stop, Clock& clock);

  const config::TrainingConfig& config() const { return options_.config; }
  const cluster::TfConfig& tf_config() const { return options_.tf_config; }
  const rpc::Identity& identity() const { return identity_; }
  // Changes once: a mark that was there before this task counts when the chief, which removes it before its first step,
  // has had time to start.
  RunMark run() const;
  const StopSource& stop() const { return stop_; }
  Clock& clock() const { return clock_; }
  ProgressBoard& board() { return board_; }
  // Null when one thread computes.
  ThreadPool* pool() { return pool_.get(); }

  // The addresses of the parameter servers by index; empty when there are none.
  std::vector<std::string> ParameterServers() const;

  // Starts the task's server on its port, with progress and what `streams` adds. Nothing when the task has no address.
  StatusOr<std::unique_ptr<rpc::Server>> Serve(
      std::vector<std::pair<std::string, rpc::StreamHandler*>> streams);

 private:
  const TaskOptions options_;
  const rpc::Identity identity_;
  const StopSource& stop_;
  Clock& clock_;
  const Time start_;
  ProgressBoard board_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<grpc::Service, void (*)(grpc::Service*)> progress_;
};

// Chief and worker: computes gradients until the last step. The chief also initialises or restores, saves, summarises,
// and ends the job.
Status RunTraining(TaskContext& context);
// Holds and updates variables until the chief ends the job.
Status RunParameterServer(TaskContext& context);
// Evaluates every new checkpoint it can, the last one always.
Status RunEvaluator(TaskContext& context);

// The role that TF_CONFIG gives this task.
Status RunTask(TaskContext& context);

}  // namespace tfjob::train
