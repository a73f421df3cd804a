// Defines functions that Fit calls while it trains.
//
//   trained.Fit(train, {.epochs = 100,
//                       .validation = &test,
//                       .callbacks = {EarlyStopping{.patience = 3, .restore_best_weights = true},
//                                     ModelCheckpoint{.path = "{epoch:03d}.keras"},
//                                     CSVLogger{.file = "log.csv"}}});
//
// The names of the metrics are those of Fit's History. If a monitored metric does not exist, Fit
// returns InvalidArgument, with a message that lists those that do.
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
struct FitValues;  // the values of all variables, and the state of the optimizer, after some step

// The running Fit, as its callbacks see it. Valid only during a call of a callback.
class FitControl {
 public:
  virtual ~FitControl() = default;
  // Returns the number of updates that the optimizer has made.
  virtual int64_t step() const = 0;
  // Returns the `epochs` of FitOptions.
  virtual int64_t epochs() const = 0;
  // Returns whether Fit has validation data.
  virtual bool validates() const = 0;
  // Returns whether this process is the chief of its job. Every task calls its own callbacks, with
  // the same metrics, so only the chief's should write files that tasks share.
  virtual bool is_chief() const = 0;
  // Returns the learning rate of the next update.
  virtual double learning_rate() const = 0;
  // Returns whether larger values of the metric are better, or nullopt for an unknown metric.
  virtual std::optional<bool> LargerIsBetter(const std::string& metric) const = 0;
  // Changes the learning rate, from the next update on, for this Fit and for later ones. Each
  // change compiles the model again, and should therefore be rare. Returns InvalidArgument unless
  // the rate is a finite number of at least 0, FailedPrecondition if the optimizer has a schedule,
  // and Unimplemented in a job of several tasks, servers and evaluators included, and if there is a
  // BackupAndRestore.
  virtual Status SetLearningRate(double rate) = 0;
  // Makes the step that has just ended the last one, and ends its epoch. Returns Unimplemented if
  // other tasks train with this one (CallbackHooks::MayStopTraining).
  virtual Status StopTraining() = 0;
  // Saves the present values, as CompiledModel::Save does.
  virtual Status Save(const std::string& path) = 0;
  // Returns a copy of the model with the present values, for Evaluate, Predict and Weights. The
  // model that Fit trains cannot be used before Fit returns.
  virtual Result<CompiledModel> Copy() = 0;
  // Returns a copy of the present values.
  virtual Result<std::shared_ptr<const FitValues>> Values() = 0;
  // Makes Fit end with these values, instead of those of the last step.
  virtual void EndWith(std::shared_ptr<const FitValues> values) = 0;
};

// A callback of the program's own: derive a class from this one, and pass
// std::make_shared<MyCallback>(…). Called on the thread that called Fit. If a function returns an
// error, Fit ends with this error. The functions must not throw.
class CallbackHooks {
 public:
  virtual ~CallbackHooks() = default;
  virtual Status OnTrainBegin(FitControl&) { return {}; }
  virtual Status OnEpochBegin(FitControl&, int64_t /*epoch*/) { return {}; }
  // Called once before each step if WantsBatches. `batch` counts the steps of the epoch from 0.
  virtual Status OnBatchBegin(FitControl&, int64_t /*batch*/) { return {}; }
  // Called after each step if WantsBatches. The metrics are those of the epoch so far.
  virtual Status OnBatchEnd(FitControl&, int64_t /*batch*/, const Metrics&) { return {}; }
  virtual bool WantsBatches() const { return false; }
  // Returns whether the callback may call StopTraining. If other tasks train with this one, Fit
  // then returns Unimplemented before it trains, instead of when StopTraining is called.
  virtual bool MayStopTraining() const { return false; }
  // Returns whether the callback may call SetLearningRate. If the job has other tasks, or if there
  // is a BackupAndRestore, which does not save the rate, Fit then returns Unimplemented before it
  // trains, instead of SetLearningRate when it is called.
  virtual bool MaySetLearningRate() const { return false; }
  virtual Status OnEpochEnd(FitControl&, int64_t /*epoch*/, const Metrics&) { return {}; }
  // Called once Fit has trained, unless it ends with an error.
  virtual Status OnTrainEnd(FitControl&) { return {}; }
  // Called instead of OnTrainEnd if OnTrainBegin has returned OK and Fit ends with an error,
  // including Cancelled.
  virtual void OnTrainAbort() {}
};

// A callback of any class. A callback that is used for several calls of Fit begins each of them
// afresh, apart from ModelCheckpoint.
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

// Ends the training once a metric has stopped improving, as in Keras. NaN is no improvement. Fit
// returns Unimplemented, before it trains, if other tasks train with this one.
struct EarlyStopping {
  std::string monitor = "val_loss";
  double min_delta = 0;       // a smaller change is no improvement
  int64_t patience = 0;       // the number of epochs without improvement after which training ends
  std::string mode = "auto";  // "min", "max", or "auto": as the metric says
  std::optional<double> baseline = {};  // the value that the metric must reach at all
  // End with the values of the best epoch (with use_ema, with their moving averages). Unlike Keras,
  // this also restores the state of the optimizer and step().
  bool restore_best_weights = false;
  int64_t start_from_epoch = 0;  // epochs to wait before monitoring

  operator Callback() const;
};

// Reduces the learning rate once a metric has stopped improving, as in Keras. Not for jobs of
// several tasks, or together with BackupAndRestore (CallbackHooks::MaySetLearningRate).
struct ReduceLROnPlateau {
  std::string monitor = "val_loss";
  double factor = 0.1;        // of the rate; below 1
  int64_t patience = 10;      // the number of epochs without improvement after which it is reduced
  std::string mode = "auto";  // as in EarlyStopping
  double min_delta = 1e-4;    // a smaller change is no improvement
  int64_t cooldown = 0;       // epochs after a reduction that do not count
  double min_lr = 0;

  operator Callback() const;
};

// Sets the learning rate at the beginning of each epoch, as in Keras: to what `schedule` returns
// for the number of the epoch, from 0, and the present rate. Not for jobs of several tasks, or
// together with BackupAndRestore (CallbackHooks::MaySetLearningRate): use a schedule there, such as
// CosineDecay.
struct LearningRateScheduler {
  std::function<double(int64_t epoch, double rate)> schedule = {};

  operator Callback() const;
};

// Saves the model at the end of each epoch, as in Keras. In `path`, {epoch} stands for the number
// of the epoch, from 1, and {NAME} for a metric. Both may have a format: "{epoch:02d}-{loss:.3f}".
// The end of the path chooses the format of the file (CompiledModel::Save). The folder is made if
// it does not exist. In a job of several tasks, only the chief saves. A Callback that is made from
// one ModelCheckpoint and used for several calls of Fit remembers the best value, as in Keras.
struct ModelCheckpoint {
  std::string path = {};
  std::string monitor = "val_loss";
  bool save_best_only = false;                         // save only if the metric is the best so far
  std::string mode = "auto";                           // as in EarlyStopping
  std::optional<double> initial_value_threshold = {};  // with save_best_only: the value to beat

  operator Callback() const;
};

// Writes a line per epoch to a CSV file, as in Keras. In a job of several tasks, only the chief
// does.
struct CSVLogger {
  std::string file = {};
  char separator = ',';
  bool append = false;  // to the lines of an earlier run, without a second header

  operator Callback() const;
};

// Writes the loss and the metrics of each epoch for TensorBoard, under Keras' names: epoch_loss, …
// in the folders log_dir/train and, for the validation, log_dir/validation. A disk that fails does
// not stop the training. In a job of several tasks, only the chief writes.
struct TensorBoard {
  std::string log_dir = "logs";

  operator Callback() const;
};

// Saves checkpoints while Fit trains, in the background, and at the end of the step in progress if
// the process is asked to stop. If the program is started again, the same call of Fit continues
// from the newest checkpoint; its History then lacks the epochs before it. The checkpoints are in
// the subfolder "fit-backup" of backup_dir. Each call of Fit needs a backup_dir of its own: if the
// backup is that of a complete training, Fit trains nothing, and logs a warning. A TFJob's tasks
// may share the folder: only the chief writes.
struct BackupAndRestore {
  std::string backup_dir = {};
  int64_t save_freq = 0;  // steps between checkpoints; 0: an epoch
  // Delete the checkpoints once Fit has trained. A job of several tasks keeps them, so that a task
  // that is restarted afterwards finds that nothing is left to do.
  bool delete_checkpoint = true;

  operator Callback() const;
};

// Ends the training after the batch whose loss is NaN or infinite, without an error, as in Keras:
// the model then has the values of that step. Without this callback, Fit ends with an error, and
// with the values of the last epoch before. Fit returns Unimplemented, before it trains, if other
// tasks train with this one.
struct TerminateOnNaN {
  operator Callback() const;
};

// Calls functions.
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
