// Defines estimators, which train as tf.estimator does: input functions provide the examples, and
// the newest checkpoint in a folder is the current model.
//
//   Estimator regressor = LinearRegressor{.feature_columns = {{"feats"}},
//                                         .optimizer = "sgd",
//                                         .config = {.model_dir = "/model"}};
//   const auto input = [](const InputContext&) -> Result<InputBatches> {
//     return InputBatches{.examples = data::Arrays{.y = y, .inputs = {{"feats", x}}},
//                         .batch_size = 10};
//   };
//   Metrics last = TrainAndEvaluate(regressor, {.input_fn = input, .max_steps = 1000},
//                                   {.input_fn = input}).value();
//
// A program that calls TrainAndEvaluate runs unchanged outside a job and as a chief, worker, ps or
// evaluator of a TFJob. docs/guides/estimators.md lists the differences from TensorFlow.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dataset.h"
#include "metrics.h"
#include "model.h"
#include "optimizer.h"
#include "session.h"
#include "status.h"
#include "strategy.h"

namespace tfjob::api {

struct EstimatorData;

// Contains the number of tasks that read separate examples, and the index of this task among them.
struct InputContext {
  // With parameter servers, each task trains on the examples that its own input function returns.
  // This is the number of these tasks, or 1 if the number is unknown (enableDynamicWorker). Without
  // parameter servers, always 1, because the library splits the batches among tasks and devices.
  int num_input_pipelines = 1;
  int input_pipeline_id = 0;  // less than num_input_pipelines
};

// The result of an input function. Training repeats the examples; an evaluation reads them once, in
// order.
struct InputBatches {
  Dataset examples = {};
  int64_t batch_size = 32;  // examples per step and replica (one device of one task)
  bool shuffle = true;      // whether training shuffles the examples, differently in each pass
};

// Returns the examples. Called once per training or evaluation, in each task that needs the
// examples.
using InputFunction = std::function<Result<InputBatches>(const InputContext&)>;

// TensorFlow's RunConfig, with the same defaults.
struct RunConfig {
  // The folder for the checkpoints and, in its subfolder `eval`, the summaries of evaluations. Must
  // be the same folder in all tasks of a job. "" creates a temporary folder, but only in a process
  // that trains alone.
  std::string model_dir = {};
  // How often the chief saves a checkpoint. At most one of the two may be set; if neither is, the
  // chief saves every 600 s. With save_checkpoints_secs = 0, the chief saves only the first and the
  // last state.
  std::optional<int64_t> save_checkpoints_steps = {};
  std::optional<double> save_checkpoints_secs = {};
  int64_t keep_checkpoint_max = 5;     // 0: all
  int64_t save_summary_steps = 100;    // 0: never
  int64_t log_step_count_steps = 100;  // for the log, which needs the level "info"; 0: never
  Strategy train_distribute = Strategy::FromEnvironment();
  // The strategy of evaluations. Only OneDevice is implemented; with any other, functions return
  // Unimplemented.
  Strategy eval_distribute = Strategy::OneDevice();
  SessionOptions session = {};  // the seed, the threads, the device and the log
};

struct EstimatorTrainOptions {
  int64_t steps = 0;      // the number of steps after the newest checkpoint
  int64_t max_steps = 0;  // the step at which training stops; set exactly one of the two
};

struct EstimatorEvaluateOptions {
  int64_t steps = 0;  // batches; 0: all
};

// A model, the settings of its training, and the folder with its checkpoints. Immutable and cheap
// to copy.
class Estimator {
 public:
  // Moving an Estimator copies it, so a moved-from Estimator can still be used.
  Estimator(const Estimator&) = default;
  Estimator& operator=(const Estimator&) = default;
  // If these arguments are invalid, the functions below return the error.
  Estimator(const Model& model, const CompileOptions& options, const RunConfig& config = {});

  // Trains from the newest checkpoint in the folder, if there is one, and saves the last state.
  // Does nothing if the checkpoint has reached max_steps. Returns FailedPrecondition in a job: use
  // TrainAndEvaluate there.
  Status Train(const InputFunction& input_fn, const EstimatorTrainOptions& options) const;
  // Returns the loss and the metrics of the newest checkpoint, and its "global_step". Returns
  // NotFound if there is no checkpoint.
  Result<Metrics> Evaluate(const InputFunction& input_fn,
                           const EstimatorEvaluateOptions& options = {}) const;
  // Returns the model with the values of the newest checkpoint, for Predict and Save. Returns
  // NotFound if there is no checkpoint.
  Result<CompiledModel> Latest() const;
  // Returns the folder with the checkpoints, or "" if the arguments are invalid.
  const std::string& model_dir() const&;
  std::string model_dir() && { return std::as_const(*this).model_dir(); }

 private:
  friend struct Access;
  explicit Estimator(std::shared_ptr<const EstimatorData> data) : data_(std::move(data)) {}

  std::shared_ptr<const EstimatorData> data_;
};

// Returns an estimator that trains the model, as tf.keras.estimator.model_to_estimator does.
Estimator ModelToEstimator(const Model& model, const CompileOptions& options,
                           const RunConfig& config = {});

struct TrainSpec {
  InputFunction input_fn = {};
  int64_t max_steps = 0;  // the step at which training stops; must be set
};

struct EvalSpec {
  InputFunction input_fn = {};
  int64_t steps = 100;            // batches per evaluation; 0: all
  double start_delay_secs = 120;  // how long an evaluator waits before its first evaluation
  double throttle_secs = 600;     // minimum time from one evaluation to the next
};

// Trains and evaluates, depending on the role of this task:
//   alone      trains. Evaluates a new checkpoint if throttle_secs have passed since the last
//              evaluation, and always evaluates the last one. Returns the last result.
//   chief      trains, and saves checkpoints. If the job has no evaluator, evaluates the last
//              checkpoint, and returns the result.
//   worker     trains. Returns no metrics.
//   evaluator  evaluates new checkpoints until the job has ended.
//   ps         serves variables until the job has ended.
// A ps or an evaluator has no trained model at the end, so the function returns kCancelled; value()
// then ends the process with exit code 0. Each task of a job may call this function only once. If
// the process is asked to stop (SessionOptions::handle_signals), the function saves a checkpoint
// and returns kCancelled.
Result<Metrics> TrainAndEvaluate(const Estimator& estimator, const TrainSpec& train_spec,
                                 const EvalSpec& eval_spec);

// A numeric feature, which is an input of the model.
struct NumericColumn {
  std::string key = {};              // the name of the model's input
  std::vector<int64_t> shape = {1};  // of the feature of one example
};

// Predicts y = w·x + b, where x contains all features. The variables are initially zero. The loss
// is the mean squared error. The default optimizer is Ftrl with the learning rate min(0.2,
// 1/√(number of columns)), as in TensorFlow. If `optimizer` has no learning rate, the rate is 0.2.
struct LinearRegressor {
  std::vector<NumericColumn> feature_columns = {};
  int64_t label_dimension = 1;
  std::optional<Optimizer> optimizer = {};  // default: Ftrl
  RunConfig config = {};

  operator Estimator() const;
};

// Classifies examples with a linear model. For two classes, the model has one logit, and the loss
// is binary cross-entropy; for more, it has one logit per class, and the loss is sparse categorical
// cross-entropy. Labels are class numbers. The optimizer and its learning rate have the same
// defaults as in LinearRegressor.
struct LinearClassifier {
  std::vector<NumericColumn> feature_columns = {};
  int64_t n_classes = 2;
  std::optional<Optimizer> optimizer = {};  // default: Ftrl
  RunConfig config = {};

  operator Estimator() const;
};

// Classifies examples with a model that has dense layers between the features and the logits.
// Labels, losses and metrics are the same as for LinearClassifier. If `optimizer` is unset or has
// no learning rate, the rate is 0.05.
struct DNNClassifier {
  std::vector<int64_t> hidden_units = {};
  std::vector<NumericColumn> feature_columns = {};
  int64_t n_classes = 2;
  std::string activation = "relu";
  double dropout = 0;                       // the rate, after each hidden layer
  std::optional<Optimizer> optimizer = {};  // default: Adagrad
  RunConfig config = {};

  operator Estimator() const;
};

}  // namespace tfjob::api
