// Defines callbacks, which Fit calls while it trains.
//
//   trained.Fit(train, {.epochs = 100,
//                       .validation = &test,
//                       .callbacks = {EarlyStopping{.patience = 3, .restore_best_weights = true},
//                                     ModelCheckpoint{.path = "{epoch:03d}.keras"},
//                                     CSVLogger{.file = "log.csv"}}});
//
// Metrics have the same names as in Fit's History. If a monitored metric does not exist, Fit
// returns InvalidArgument, with a message that lists the existing metrics.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "metrics.h"
#include "status.h"

namespace tfjob::api {

class CompiledModel;
struct FitValues;  // the values of all variables and the optimizer state after some step

// Lets callbacks inspect and control the running Fit. Valid only during a call of a callback.
class FitControl {
 public:
  virtual ~FitControl() = default;
  // Returns the number of updates that the optimizer has made.
  virtual int64_t step() const = 0;
  // Returns the `epochs` of FitOptions.
  virtual int64_t epochs() const = 0;
  // Returns whether Fit was called with validation data.
  virtual bool validates() const = 0;
  // Returns whether this process is the chief of its job. Every task that trains calls its own
  // callbacks, so let only the chief's callbacks write to files that the tasks share. With
  // parameter servers, each task has its own metrics; otherwise, the metrics are the same in all
  // tasks.
  virtual bool is_chief() const = 0;
  // Returns the learning rate of the next update. With parameter servers, workers learn of a change
  // a little later than the servers.
  virtual double learning_rate() const = 0;
  // Returns whether larger values of the metric are better, or nullopt for an unknown metric
  // or a CustomMetric.
  virtual std::optional<bool> LargerIsBetter(const std::string& metric) const = 0;
  // Changes the learning rate for all later updates, in this call of Fit and in later ones. Without
  // parameter servers, each change compiles the updates again, so changes should be rare. Returns
  // InvalidArgument if the rate is negative or not finite, and FailedPrecondition if the optimizer
  // has a schedule.
  //
  // In a job of several tasks, one task decides, and all tasks use its rate from the same update
  // on: with all-reduce, the first task that takes part in the step, which is the chief unless the
  // group trains without it; with parameter servers, the chief. In the other tasks, this function
  // has no lasting effect. With parameter servers in asynchronous mode, or with backup workers,
  // other tasks may make a few updates before the new rate reaches the servers.
  //
  // The rate is part of the state: BackupAndRestore saves it, and tasks that start again or join
  // receive it. If the state already contains the rate that callbacks have set at this place in the
  // run, because Fit continues there, this function leaves it as it is and returns OK.
  virtual Status SetLearningRate(double rate) = 0;
  // Stops training after the latest step, which also ends the current epoch. With all-reduce, stops
  // it in all tasks: waits until the others have reached this step. Returns Unimplemented if other
  // tasks train with parameter servers (CallbackHooks::MayStopTraining).
  virtual Status StopTraining() = 0;
  // Saves the current values, as CompiledModel::Save does.
  virtual Status Save(const std::string& path) = 0;
  // Returns a copy of the model with the current values. Evaluate, Predict and Weights can be
  // called on this copy, whereas the model that Fit trains cannot be used before Fit returns.
  virtual Result<CompiledModel> Copy() = 0;
  // Returns a copy of the current values.
  virtual Result<std::shared_ptr<const FitValues>> Values() = 0;
  // Sets the values that the model has after Fit, in place of the values from the last step.
  virtual void EndWith(std::shared_ptr<const FitValues> values) = 0;
};

// Base class for a program's own callbacks: derive MyCallback from this class, and pass
// std::make_shared<MyCallback>(…). Fit calls the functions on its caller's thread. If a function
// returns an error, Fit stops and returns this error. The functions must not throw.
class CallbackHooks {
 public:
  virtual ~CallbackHooks() = default;
  virtual Status OnTrainBegin(FitControl&) { return {}; }
  virtual Status OnEpochBegin(FitControl&, int64_t /*epoch*/) { return {}; }
  // Called once before each step if WantsBatches returns true. `batch` is the index of the step in
  // the epoch.
  virtual Status OnBatchBegin(FitControl&, int64_t /*batch*/) { return {}; }
  // Called after each step if WantsBatches returns true. The metrics cover the epoch so far.
  virtual Status OnBatchEnd(FitControl&, int64_t /*batch*/, const Metrics&) { return {}; }
  virtual bool WantsBatches() const { return false; }
  // Returns whether the callback may call StopTraining. If so, and if other tasks train with
  // parameter servers, Fit returns Unimplemented before it trains, rather than when StopTraining is
  // called.
  virtual bool MayStopTraining() const { return false; }
  // Returns whether the callback may call SetLearningRate. If so, History contains the learning
  // rate of each epoch, and a checkpoint of BackupAndRestore is saved after the callbacks of its
  // step, so that it contains the rate that they have set.
  virtual bool MaySetLearningRate() const { return false; }
  virtual Status OnEpochEnd(FitControl&, int64_t /*epoch*/, const Metrics&) { return {}; }
  // Called once after training, unless Fit fails. If a task of a group is lost after this call, the
  // group may train the last steps again, but callbacks are not called again.
  virtual Status OnTrainEnd(FitControl&) { return {}; }
  // Called instead of OnTrainEnd if OnTrainBegin has returned OK and Fit then returns an error,
  // such as Cancelled.
  virtual void OnTrainAbort() {}
  // Returns what BackupAndRestore saves of this callback with a checkpoint, after the callbacks of
  // the checkpoint's step; "" for nothing.
  virtual std::string SaveState() const { return {}; }
  // Called after OnTrainBegin if Fit continues from a checkpoint, with the text that SaveState has
  // returned for the callback at the same place in FitOptions::callbacks. Not called if the text
  // was "". If the program has changed, the text may be that of another callback.
  virtual Status RestoreState(const std::string& /*state*/) { return {}; }
};

// A callback of any class. Except for ModelCheckpoint, the callbacks of this library start without
// state in each call of Fit, unless it continues from a checkpoint of BackupAndRestore.
class Callback {
 public:
  Callback(std::shared_ptr<CallbackHooks> hooks) : hooks_(std::move(hooks)) {}  // NOLINT
  template <typename Hooks>
    requires std::is_base_of_v<CallbackHooks, Hooks>
  Callback(std::shared_ptr<Hooks> hooks) : hooks_(std::move(hooks)) {}  // NOLINT

  bool present() const { return hooks_ != nullptr; }
  CallbackHooks& hooks() const { return *hooks_; }

 private:
  std::shared_ptr<CallbackHooks> hooks_;
};

// Stops training when a metric no longer improves, as in Keras. NaN never counts as an improvement.
// If other tasks train with parameter servers, Fit returns Unimplemented before it trains.
struct EarlyStopping {
  std::string monitor = "val_loss";
  double min_delta = 0;                 // smaller changes are not improvements
  int64_t patience = 0;                 // epochs without improvement after which training stops
  std::string mode = "auto";            // "min", "max", or "auto": the metric decides
  std::optional<double> baseline = {};  // only better values reset `patience`
  // If set, restores the values of the best epoch after training; with use_ema, restores the moving
  // averages of that epoch. Unlike Keras, also restores the state of the optimizer and step().
  // Checkpoints do not contain these values, so a process that starts again looks for the best
  // epoch anew.
  bool restore_best_weights = false;
  int64_t start_from_epoch = 0;  // epochs to wait before monitoring

  operator Callback() const;
};

// Reduces the learning rate whenever a metric no longer improves, as in Keras. In a job of several
// tasks, the metrics of one task decide (FitControl::SetLearningRate); with parameter servers,
// these are the chief's.
struct ReduceLROnPlateau {
  std::string monitor = "val_loss";
  double factor = 0.1;        // multiplies the rate; from 0 to below 1
  int64_t patience = 10;      // epochs without improvement after which the rate is reduced
  std::string mode = "auto";  // as in EarlyStopping
  double min_delta = 1e-4;    // smaller changes are not improvements
  int64_t cooldown = 0;       // epochs after a reduction that do not count towards `patience`
  double min_lr = 0;

  operator Callback() const;
};

// Sets the learning rate at the beginning of each epoch, as in Keras. `schedule` receives the
// epoch's index, counted from 0, and the current rate, and returns the new rate. In a job of
// several tasks, one task's rate applies in all of them (FitControl::SetLearningRate).
struct LearningRateScheduler {
  std::function<double(int64_t epoch, double rate)> schedule = {};

  operator Callback() const;
};

// Saves the model at the end of each epoch, or every `save_freq` steps, as in Keras. In `path`,
// {epoch} stands for the number of the epoch, {NAME} for the value of a metric and, if save_freq is
// set, {batch} for the number of the step in the epoch. The numbers are counted from 1. All may
// have a format: "{epoch:02d}-{loss:.3f}". The extension determines the format of the file
// (CompiledModel::Save). The folder is created if it does not exist. In a job of several tasks,
// only the chief saves. If the same Callback object is passed to several calls of Fit, the best
// value carries over from call to call, as in Keras.
struct ModelCheckpoint {
  std::string path = {};
  std::string monitor = "val_loss";
  bool save_best_only = false;                         // save only if the metric is the best so far
  std::string mode = "auto";                           // as in EarlyStopping
  std::optional<double> initial_value_threshold = {};  // with save_best_only: the value to beat
  // Steps of this task between saves, counted over all epochs from the start of Fit. Metrics then
  // cover the epoch so far, and there are no validation metrics. 0: save once per epoch.
  int64_t save_freq = 0;

  operator Callback() const;
};

// Writes one row per epoch to a CSV file, as in Keras. In a job of several tasks, only the chief
// writes.
struct CSVLogger {
  std::string file = {};
  char separator = ',';
  bool append = false;  // append to the file of an earlier run, without a second header

  operator Callback() const;
};

// Writes the loss and the metrics of each epoch for TensorBoard: the training metrics to
// log_dir/train, and the validation metrics to log_dir/validation. The names are the same as in
// Keras (epoch_loss, …). Disk errors do not stop training. In a job of several tasks, only the
// chief writes.
struct TensorBoard {
  std::string log_dir = "logs";
  // If above 0, also writes the training metrics every this many steps, as batch_loss, …; they
  // cover the epoch so far.
  int64_t update_freq = 0;

  operator Callback() const;
};

// Saves checkpoints in the background while Fit trains. If the process is asked to stop, also saves
// one after the current step. If the program is started again, the same call of Fit continues from
// the newest checkpoint, and the callbacks from their states of that time; its History then lacks
// the epochs before that checkpoint. The checkpoints are in the subfolder "fit-backup" of
// backup_dir. Each call of Fit needs its own backup_dir: if
// the folder contains the backup of a completed training run, Fit does not train, and logs a
// warning. The tasks of a TFJob may share the folder, because only the chief writes.
struct BackupAndRestore {
  std::string backup_dir = {};
  int64_t save_freq = 0;  // steps between checkpoints; 0: once per epoch
  // If set, deletes the checkpoints when training is complete. A job of several tasks always keeps
  // them: a task that is restarted later finds there that training is complete.
  bool delete_checkpoint = true;

  operator Callback() const;
};

// Stops training, without an error, after a batch whose loss is NaN or infinite, as in Keras. The
// model then holds the values that this step produced. Without this callback, Fit returns an error,
// and the model holds the values from the end of the previous epoch. If other tasks train with this
// one, Fit returns Unimplemented before it trains.
struct TerminateOnNaN {
  operator Callback() const;
};

// Calls whichever of the functions below are set.
struct LambdaCallback {
  std::function<Status(FitControl&)> on_train_begin = {};
  std::function<Status(FitControl&, int64_t epoch)> on_epoch_begin = {};
  std::function<Status(FitControl&, int64_t batch)> on_batch_begin = {};
  std::function<Status(FitControl&, int64_t batch, const Metrics&)> on_batch_end = {};
  std::function<Status(FitControl&, int64_t epoch, const Metrics&)> on_epoch_end = {};
  std::function<Status(FitControl&)> on_train_end = {};

  operator Callback() const;
};

}  // namespace tfjob::api
