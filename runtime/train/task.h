// Declares the entry point of each role, and the context that all roles share. An entry point
// returns OK when the task is done, Cancelled if the task was asked to stop, and otherwise the
// error that ended the task.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/file_system.h"
#include "runtime/base/stop.h"
#include "runtime/cluster/cluster.h"
#include "runtime/config/training_config.h"
#include "runtime/exec/device.h"
#include "runtime/rpc/credentials.h"
#include "runtime/rpc/identity.h"
#include "runtime/train/job/job_inputs.h"
#include "runtime/train/model_dir/run_mark.h"
#include "runtime/train/progress_board.h"
#include "runtime/train/step_profile.h"
#include "runtime/train/stop_budget.h"

namespace grpc {
class Service;
}  // namespace grpc
namespace tfjob {
class ThreadPool;
}  // namespace tfjob
namespace tfjob::rpc {
class DataHandler;
class Server;
class StreamHandler;
}  // namespace tfjob::rpc

namespace tfjob::train {

class RunGuest;

// The place of a run among those that the processes of a job take part in, one after another.
struct RunOrder {
  int32_t number = 0;  // counts from 0
  // The steps at which the earlier runs have ended, by their numbers; empty unless the task is the
  // chief. The chief shows them, so that tasks that were started again, and are still in an earlier
  // run, learn that it is over.
  std::vector<int64_t> earlier_ends = {};
  bool followed = false;  // another run follows, so a ps must not miss the end of this one
};

struct TaskOptions {
  config::TrainingConfig config;
  JobInputs inputs;
  cluster::TfConfig tf_config;
  cluster::JobIdentity job;
  // The job's key. Without a key, the task logs a warning once, and any peer may claim to belong to
  // the job.
  rpc::Credentials credentials;
  RunOrder order;
  // The address at which the task serves its progress if TF_CONFIG has no cluster. If it is "",
  // such a task serves no progress.
  std::string lone_address;
  // The device that computes (exec::DeviceByName), for developers. If empty, the training file
  // determines the device.
  std::string device;
  ProfileOptions profile;
  // The time from the request to stop until the process is killed.
  Duration grace_period{30s};
  // The file system that checkpoints, summaries and markers are written to. Must never be destroyed
  // if its operations may hang.
  FileSystem* files = &RealFileSystem();
  // If set, called by the chief before the evaluation of the last state. If it returns an error,
  // the evaluation stops.
  std::function<Status()> before_evaluation;
  // If set, called by the task that evaluates, with the loss and the metrics of each evaluation.
  std::function<void(int64_t step, const std::vector<std::pair<std::string, double>>& values)>
      on_evaluation;
};

class TaskContext {
 public:
  // `stop` and `clock` must outlive the context.
  TaskContext(TaskOptions options, const StopSource& stop, Clock& clock);
  ~TaskContext();

  const config::TrainingConfig& config() const { return options_.config; }
  const JobInputs& inputs() const { return options_.inputs; }
  const cluster::TfConfig& tf_config() const { return options_.tf_config; }
  const rpc::Identity& identity() const { return identity_; }
  const rpc::Credentials& credentials() const { return options_.credentials; }
  const RunOrder& order() const { return options_.order; }
  // Returns the run that this task belongs to. For the first 60 s after this task has started,
  // RunMark::oldest is the task's start time. Older markers are then ignored, because the chief,
  // which removes the markers of earlier runs, may not have started yet.
  RunMark run() const;
  // Returns which steps to record, and the file for the trace.
  ProfileOptions profile() const;
  const StopSource& stop() const { return stop_; }
  Duration grace_period() const { return options_.grace_period; }
  StopBudget stop_budget() const { return BudgetOf(options_.grace_period); }
  Clock& clock() const { return clock_; }
  FileSystem& files() const { return *options_.files; }
  Status BeforeEvaluation() const {
    return options_.before_evaluation ? options_.before_evaluation() : OkStatus();
  }
  void OnEvaluation(int64_t step, const std::vector<std::pair<std::string, double>>& values) const {
    if (options_.on_evaluation) options_.on_evaluation(step, values);
  }
  ProgressBoard& board() { return board_; }
  // Returns the pool of helper threads, or null if only one thread computes.
  ThreadPool* pool() { return pool_.get(); }
  // Returns the device for programs. Each call may return a device with its own memory. The first
  // call logs which device is used, and why.
  StatusOr<exec::Device> device();

  // Starts the task's server on its port, with the progress service and `streams`. `on_data`
  // handles data connections; if null, they are refused. Returns null if the task has no address.
  StatusOr<std::unique_ptr<rpc::Server>> Serve(
      std::vector<std::pair<std::string, rpc::StreamHandler*>> streams,
      rpc::DataHandler* on_data = nullptr);

 private:
  void ShowEarlierRuns(progress::Progress& progress) const;

  const TaskOptions options_;
  const rpc::Identity identity_;
  const StopSource& stop_;
  Clock& clock_;
  const Time start_;
  ProgressBoard board_;
  std::unique_ptr<ThreadPool> pool_;
  bool device_logged_ = false;
  std::unique_ptr<grpc::Service, void (*)(grpc::Service*)> progress_;
};

// Runs the role of a chief or a worker: computes gradients until the last step. The chief also
// initialises or restores the variables, saves checkpoints, writes summaries and ends the job.
// `guest` (run_guest.h) may be null.
Status RunTraining(TaskContext& context, RunGuest* guest = nullptr);
// Runs the role of a ps: stores and updates variables until the chief ends the job.
Status RunParameterServer(TaskContext& context);
// Runs the role of an evaluator: evaluates new checkpoints until the run ends. May miss some
// checkpoints, but never the last one.
Status RunEvaluator(TaskContext& context);

// Runs the role that TF_CONFIG assigns to this task. If its run has already failed for good,
// returns that error at once (run_failure_record.h). `guest` may be null; only tasks that train
// call it.
Status RunTask(TaskContext& context, RunGuest* guest = nullptr);

}  // namespace tfjob::train
