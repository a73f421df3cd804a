// Compiles, trains, evaluates and uses models.
//
//   Session session(Strategy::FromEnvironment());
//   CompiledModel trained =
//       session.Compile(model, {.optimizer = Adam{.learning_rate = 1e-3},
//                               .loss = SparseCategoricalCrossentropy{.from_logits = true},
//                               .metrics = {"accuracy"}}).value();
//   History history = trained.Fit(train, {.batch_size = 64, .epochs = 5}).value();
//   std::cout << trained.Evaluate(test).value() << "\n";
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "arguments.h"
#include "batch.h"
#include "callback.h"
#include "dataset.h"
#include "function.h"
#include "layer.h"
#include "metrics.h"
#include "model.h"
#include "optimizer.h"
#include "status.h"
#include "strategy.h"
#include "tensor.h"

namespace tfjob::api {

struct CompiledData;
struct SessionData;

// The loss and the metrics for one output of a model.
struct OutputOptions {
  Loss loss = {};
  double loss_weight = 1;
  // The metrics, by the names that Keras uses, with arguments if needed: {"accuracy",
  // {"top_k_categorical_accuracy", {{"k", 3}}}}
  std::vector<Named> metrics = {};
  std::vector<Named> weighted_metrics = {};  // metrics that sample or class weights apply to
};

struct CompileOptions {
  Optimizer optimizer = {};
  // The loss and the metrics for every output without an entry in `outputs`. A model needs no loss
  // if it is only used for predictions, or if only functions train it.
  Loss loss = {};
  std::vector<Named> metrics = {};
  std::vector<Named> weighted_metrics = {};
  std::map<std::string, OutputOptions> outputs = {};  // the keys are the names of the output layers
};

enum class Verbose {
  kAuto,  // kBar if standard output is a terminal, otherwise kEpochs
  kSilent,
  kBar,     // a progress bar, as in Keras
  kEpochs,  // one line per epoch
};

// Groups examples of similar lengths into batches with little padding, as
// tf.data.Dataset.bucket_by_sequence_length does. The length of an example is that of its longest
// input, not counting padding at the end.
struct BucketByLength {
  std::vector<int64_t> boundaries = {};  // the maximum lengths of the buckets, ascending
  // Examples per batch and task: one size per boundary, and one for longer examples. If empty, all
  // sizes are the batch_size of Fit.
  std::vector<int64_t> batch_sizes = {};
  std::optional<double> padding = {};  // default: the padding of the tokenizer or feature, or 0
};

// Masks tokens at random, as BERT does. The model predicts a fraction of the tokens: 80 % of these
// are replaced with mask_token, 10 % with another token, and 10 % stay unchanged.
struct MaskTokens {
  int64_t mask_token = 0;       // an id
  int64_t vocabulary_size = 0;  // number of ids
  // Ids that are neither masked nor used as replacements, in addition to mask_token and the
  // tokenizer's padding.
  std::vector<int64_t> special_tokens = {0};
  double rate = 0.15;
};

// How the training tasks of a job share the examples, as in tf.data.experimental.AutoShardPolicy.
enum class AutoShard {
  kAuto,  // kData, or kOff if the number of tasks is unknown (enableDynamicWorker)
  kFile,  // each task reads whole files; there must be at least as many as tasks
  kData,  // each task takes its share of every batch
  kOff,   // each task reads all examples in every epoch, in an order of its own
};

struct FitOptions {
  int64_t batch_size = 32;    // total over all tasks and devices: 1 to 16777216
  int64_t epochs = 1;         // training stops before the epoch with this index
  int64_t initial_epoch = 0;  // the index of the first epoch, to continue an earlier training run
  bool shuffle = true;        // whether each epoch has a new, random order
  // If above 0, shuffles only within windows of this many examples, which suits disks with slow
  // random access. If one window contains all examples, all are shuffled.
  int64_t shuffle_buffer = 0;
  AutoShard shard = AutoShard::kAuto;
  // If set, groups examples of similar lengths into batches. The model must accept inputs of any
  // length.
  std::optional<BucketByLength> bucket_by_length = {};
  // If set, masks tokens, for masked language models. The labels are the tokens before masking.
  std::optional<MaskTokens> mask_tokens = {};
  // Layers without variables, such as RandomCrop, which change each example of the model's only
  // input before batches are formed. Random layers change only examples for training. Their random
  // numbers depend only on the seed of the session, the epoch and the index of the example. These
  // layers are not part of the model. If the model needs them, pass them to Evaluate, too, and
  // apply them to the inputs of Predict.
  std::vector<Layer> augment = {};
  // The number of steps per epoch; 0: one pass over all examples. Each epoch continues where the
  // previous one ended, even across calls of Fit. However, if the number of batches in a pass has
  // changed since the last Fit, Fit starts a new pass.
  int64_t steps_per_epoch = 0;
  const Dataset* validation = nullptr;  // evaluated at the end of epochs; may be null
  // The fraction of the examples, from 0 to below 1, that is used for validation instead of
  // training. These are the last examples, before shuffling. Can be used only with arrays in
  // memory, which each Fit copies. Cannot be combined with `validation`, or used in a job with an
  // evaluator.
  double validation_split = 0;
  int64_t validation_steps = 0;                 // batches per validation; 0: all
  int64_t validation_freq = 1;                  // epochs from one validation to the next
  int64_t validation_batch_size = 0;            // 0: batch_size
  std::map<int64_t, double> class_weight = {};  // classes without an entry have weight 1
  std::vector<Callback> callbacks = {};
  // Set this if the program calls Fit again later and runs as a job of several tasks. The tasks
  // without a trained model, such as ps, then return OK instead of kCancelled, with an empty
  // History, and take part in the next Fit. A process that is started again during a later Fit
  // repeats the earlier ones: they return the result that they had, without training and without
  // calling callbacks. This needs a BackupAndRestore, whose folder all tasks that train share and
  // no other Fit uses. It keeps its checkpoints.
  bool followed_by_fit = false;
  Verbose verbose = Verbose::kAuto;
};

struct EvaluateOptions {
  int64_t batch_size = 32;
  int64_t steps = 0;                                    // batches to evaluate; 0 for all
  std::optional<BucketByLength> bucket_by_length = {};  // as in FitOptions
  std::optional<MaskTokens> mask_tokens = {};           // every evaluation masks the same tokens
  std::vector<Layer> augment = {};  // as in FitOptions; random layers behave as in evaluation
};

struct LoadOptions {
  // Patterns, such as "head/*", for the names of variables that keep their values.
  std::vector<std::string> skip = {};
};

struct PredictOptions {
  int64_t batch_size = 32;
  double scale = 1;  // factor for the float32 inputs; must be 1 with a Dataset, which has its own
};

// The results of a step.
struct BatchReport {
  double loss = 0;       // the mean over the examples of the step, before the update
  Metrics metrics = {};  // the loss and the metrics of these examples
  int64_t examples = 0;  // total over all devices of all tasks
  int64_t step = 0;      // the number of updates that the optimizer has made
};

// A model with the values of its variables, an optimizer and its state, a loss and metrics.
//
// A copy is trained independently of the original. The variables get their initial values as soon
// as their shapes are known: in Compile if the inputs that the model states determine these shapes,
// and otherwise when data are first used. Not thread-safe. A moved-from CompiledModel may only be
// destroyed or assigned to.
class CompiledModel {
 public:
  CompiledModel(const CompiledModel& other);
  CompiledModel(CompiledModel&& other) noexcept;
  CompiledModel& operator=(const CompiledModel& other);
  CompiledModel& operator=(CompiledModel&& other) noexcept;
  ~CompiledModel();

  // Trains, starting from the current values and the current state of the optimizer. If the process
  // receives SIGTERM or SIGINT, Fit stops after the current step and returns kCancelled, unless the
  // program handles the signal itself (SessionOptions::handle_signals). A second signal terminates
  // the process. After SIGTERM, a program should save what it needs and exit. Later calls of Fit,
  // Evaluate and Predict are not affected by the earlier signal.
  //
  // After kCancelled and after other errors, the model holds the values that the last step
  // produced, and history() contains the completed epochs. If numbers were not finite, however, the
  // model holds the values from the end of the previous epoch. If Fit fails before its first step,
  // the model does not change.
  //
  // Fit also returns kCancelled in a task that has no trained model at the end; value() then ends
  // the process with exit code 0. This is the case in a task whose job has ended without it, for
  // example because the task was restarted too late. With parameter servers, it is also the case in
  // every worker, because only the chief gets the values. A ps returns kCancelled after it has
  // served variables until the end of the job. An evaluator returns kCancelled after it has
  // evaluated the checkpoints of BackupAndRestore on `validation` until the end of the job.
  //
  // While Fit runs, callbacks must use FitControl instead of the model. All functions of the model
  // that return a Status or a Result, apart from Summary, then return FailedPrecondition. If the
  // model is copied, moved or assigned to while Fit runs, the process ends (Exit).
  Result<History> Fit(const Dataset& train, const FitOptions& options = {});
  // Returns the history of the last call of Fit, even if that call returned an error.
  const History& history() const&;
  History history() && { return std::as_const(*this).history(); }

  // Takes one training step on the examples, as Fit does with each batch: the devices of the
  // strategy share the examples, and the loss is the mean over all examples. If the loss or a
  // gradient is not finite, returns an error and does not change the model. `class_weight` is as in
  // FitOptions.
  //
  // The first call with a new number or new types of examples compiles programs. The values of the
  // variables stay on the devices until another function needs them.
  //
  // In a job of several tasks, all tasks take the step together, each on its own examples, which
  // may be none. Step, TrainOnBatch, TestOnBatch, Session::Barrier and the functions of a session
  // are calls that all tasks must make, in the same order and with batches of the same types; only
  // one thread of a task may make them. The first call waits for all tasks. If values were set or
  // read in any task since the last call (such as initial values, or those of a checkpoint), the
  // values of the first task (the chief) are sent to the others. These errors are particular to
  // such jobs:
  //   kUnavailable         a task has failed or is lost, so no further call is possible. Start all
  //                        tasks again. value() ends the process with exit code 138, after which
  //                        the restart policies ExitCode and OnFailure start it again.
  //   kAborted             another task could not take part, for example because its batch is not
  //                        valid. No model has changed.
  //   kFailedPrecondition  the tasks made different calls; the message names two of them. No
  //                        further call is possible.
  //   kUnimplemented       the job has parameter servers, or this process has already taken part
  //                        in the training of its job with Fit or another session.
  // If a session has made such a call, destroying it and all its models waits until the other tasks
  // have destroyed theirs.
  Result<BatchReport> Step(const Batch& batch, const std::map<int64_t, double>& class_weight = {});
  // Trains like Step. As in Keras 3, returns the loss and the metrics over all batches since
  // ResetMetrics, Fit or Evaluate, including the batches of TestOnBatch.
  Result<Metrics> TrainOnBatch(const Batch& batch,
                               const std::map<int64_t, double>& class_weight = {});
  // Returns the same totals as TrainOnBatch, but does not train.
  Result<Metrics> TestOnBatch(const Batch& batch);
  void ResetMetrics();

  // Returns the mean loss and the metrics over all examples. Reads the examples in order.
  Result<Metrics> Evaluate(const Dataset& test, const EvaluateOptions& options = {});

  // Return the outputs for the examples in `x` or `inputs`. The first axis of each array is the
  // example axis. The keys of the maps are the names of the input and output layers. The first form
  // is for models with one input and one output.
  Result<Tensor> Predict(const Tensor& x, const PredictOptions& options = {});
  Result<std::map<std::string, Tensor>> Predict(const std::map<std::string, Tensor>& inputs,
                                                const PredictOptions& options = {});
  // Returns the outputs for all examples of a Dataset, in its order. Reads one batch at a time.
  // Does not need labels. If the dataset uses Map or Filter, their functions also get the labels,
  // if the dataset has any (for files with features: if `features` includes them). Other datasets
  // read only the inputs, if their format has names (Arrays, Npz, TfRecord, JsonLines, and Csv with
  // features). Error messages call the data `data.eval`.
  Result<std::map<std::string, Tensor>> Predict(const Dataset& examples,
                                                const PredictOptions& options = {});

  // Saves the model to a file. An existing file is replaced only once the new one is complete. The
  // extension determines the format:
  //   .keras, .h5     the whole model, with the settings of compile() and the state of the
  //                   optimizer, for keras.models.load_model and Session::Load
  //   .weights.h5     the weights, for Keras' Model.load_weights
  //   .safetensors    the weights, by variable name
  // To write .keras and .h5 files, this function starts the program tfjob-hdf5. An installed
  // library finds the program that was installed with it. Otherwise, tfjob-hdf5 must be in the
  // running program's folder, or the environment variable TFJOB_HDF5 must contain its path. Save
  // never waits for another task.
  Status Save(const std::string& path) const;
  // Adds a checkpoint to the folder, in the format of TensorFlow and of tfjob-trainer: the
  // variables, the state of the optimizer and the step. Keeps the newest five checkpoints. Deletes
  // checkpoints of later steps, because these belong to another training run. Only one task of a
  // job may call this function.
  Status SaveCheckpoint(const std::string& folder) const;

  // Reads the values of the variables from a file written by Save, from a weights file written by
  // Keras, or from a checkpoint (its prefix, or a folder with checkpoints). Does not change the
  // state of the optimizer.
  Status LoadWeights(const std::string& path, const LoadOptions& options = {});
  // Sets the variables with these names (see Weights). Does not change other variables or the state
  // of the optimizer. Returns InvalidArgument if the model lacks a variable with one of these
  // names, or if its type or shape differs.
  Status SetWeights(const std::map<std::string, Tensor>& values);
  // Reads the variables, the state of the optimizer and the step from the newest checkpoint in the
  // folder. Returns NotFound if the folder has no checkpoint.
  Status LoadCheckpoint(const std::string& folder);

  // Returns the names and values of the variables, such as "dense/kernel", in the order of the
  // layers. Returns FailedPrecondition if they have no values yet.
  Result<std::vector<std::pair<std::string, Tensor>>> Weights() const;
  // Returns the number of updates that the optimizer has made.
  int64_t step() const;
  // Returns the model without the values of the variables.
  const Model& model() const&;
  Model model() && { return std::as_const(*this).model(); }
  Result<std::string> Summary() const;

 private:
  friend struct Access;

  explicit CompiledModel(std::shared_ptr<CompiledData> data);

  std::shared_ptr<CompiledData> data_;  // shared with a running Fit, and with functions
};

struct SessionOptions {
  // Determines initial values, the order of the examples and dropout. Equal seeds produce equal
  // results, so the models of an ensemble need different seeds.
  int64_t seed = 0;
  int threads = 0;  // for computation; 0: one per processor that the process may use
  // "cpu", "cuda" or "auto". With Strategy::FromEnvironment, the environment variable TFJOB_DEVICE
  // overrides this option.
  std::string device = "auto";
  // "debug", "info", "warning", "error" or "off". Messages of this level and above are written to
  // standard error. The first session sets the level for the whole process ("" sets "warning"). In
  // later sessions, "" keeps this level, and any other level is an error.
  std::string log_level = {};
  // Whether SIGTERM and SIGINT stop a running Fit, unless the program handles the signal itself. If
  // false, the library does not handle signals.
  bool handle_signals = true;
};

// Compiles and loads models for one strategy. Immutable and cheap to copy.
class Session {
 public:
  // Moving a Session copies it, so a moved-from Session can still be used.
  Session(const Session&) = default;
  Session& operator=(const Session&) = default;
  // If the strategy or the options are invalid, Compile and Load return the error.
  explicit Session(const Strategy& strategy = Strategy::FromEnvironment(),
                   const SessionOptions& options = {});

  Result<CompiledModel> Compile(const Model& model, const CompileOptions& options) const;
  // Reads a whole model from a .keras or .h5 file: the layers, the weights, the compile() settings
  // and the state of the optimizer. Returns InvalidArgument if the file has no compile() settings;
  // in that case, use Model::Load and Compile. If the model does not state the shapes of its
  // inputs, the file is read again when data are first used, and must not change until then.
  Result<CompiledModel> Load(const std::string& path) const;

  // Returns an iterator over the batches of a dataset, for a program's own training loop. In a job
  // of several tasks, each task gets its part of each batch; this part may be empty. Images and
  // other inputs with a `scale` are converted to float32 and multiplied by the scale; other arrays
  // keep their types. A dataset of files that does not name its arrays has one input and one
  // output.
  Result<Batches> Distribute(const Dataset& dataset, const DistributeOptions& options = {}) const;
  // Creates a function from the step that `body` records. Calls `body` once, before returning.
  // `inputs` states the shape and type that one example has in each input. The arrays that are
  // passed to the function have an additional first axis, the example axis. Does not wait for other
  // tasks. Returns Unimplemented in a job with parameter servers.
  Result<api::Function> Function(const std::vector<Input>& inputs, const StepBody& body) const;
  // Waits until all tasks of the job have called Barrier. Returns immediately if this task trains
  // alone. Call it before LoadCheckpoint, so that no task of an earlier attempt of the job still
  // saves checkpoints, and all tasks read the same one. Returns the same errors as
  // CompiledModel::Step.
  Status Barrier() const;
  // Returns the number of devices that take part in a step, in all tasks together.
  int NumReplicasInSync() const;
  // In a ps task, serves variables until the chief has ended the job, and then returns kCancelled,
  // because the task has no trained model; value() then ends the process with exit code 0. In all
  // other tasks, returns OK immediately. In a ps task, Fit does the same, but if a program calls
  // this function first, its ps tasks need neither data nor a model. Unlike Fit with a
  // BackupAndRestore, this function cannot detect that the job has already failed: in a ps task
  // that is restarted after the failure, it serves until the process is stopped.
  //
  //   session.ServeVariables().value();
  Status ServeVariables() const;

  bool is_chief() const;
  const Strategy& strategy() const&;
  Strategy strategy() && { return std::as_const(*this).strategy(); }

 private:
  std::shared_ptr<const SessionData> data_;
};

}  // namespace tfjob::api
