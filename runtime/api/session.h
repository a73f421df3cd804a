// Trains, evaluates and uses models.
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
#include "metrics.h"
#include "model.h"
#include "optimizer.h"
#include "status.h"
#include "strategy.h"
#include "tensor.h"

namespace tfjob::api {

struct CompiledData;
struct SessionData;

// How one output of a model is trained and measured.
struct OutputOptions {
  Loss loss = {};
  double loss_weight = 1;
  // Keras' names, with arguments if needed:
  // {"accuracy", {"top_k_categorical_accuracy", {{"k", 3}}}}
  std::vector<Named> metrics = {};
  std::vector<Named> weighted_metrics = {};  // these use the sample weights or class weights
};

struct CompileOptions {
  Optimizer optimizer = {};
  // For every output without an entry in `outputs`. A model that only functions train, or that only
  // predicts, needs no loss.
  Loss loss = {};
  std::vector<Named> metrics = {};
  std::vector<Named> weighted_metrics = {};
  std::map<std::string, OutputOptions> outputs = {};  // by the names of the output layers
};

enum class Verbose {
  kAuto,  // kBar if standard output is a terminal, otherwise kEpochs
  kSilent,
  kBar,     // a bar that moves, as Keras shows it
  kEpochs,  // a line per epoch
};

// Batches of examples of similar lengths, with little padding, as
// tf.data.Dataset.bucket_by_sequence_length makes them. An example is as long as the longest of its
// inputs, up to the last value that is not `padding`.
struct BucketByLength {
  std::vector<int64_t> boundaries = {};  // the greatest lengths of the buckets, ascending
  // Examples per batch and task, for each boundary and for longer examples; empty: the batch_size
  // of Fit.
  std::vector<int64_t> batch_sizes = {};
  double padding = 0;
};

// Masks tokens at random, as BERT does: a share of the tokens is predicted, and 80 % of these are
// replaced by mask_token and 10 % by another token.
struct MaskTokens {
  int64_t mask_token = 0;       // an id
  int64_t vocabulary_size = 0;  // number of ids
  // Ids that are never masked or drawn, in addition to mask_token.
  std::vector<int64_t> special_tokens = {0};
  double rate = 0.15;
};

struct FitOptions {
  int64_t batch_size = 32;    // examples of all tasks and devices together: 1 to 16777216
  int64_t epochs = 1;         // the number of the epoch at which training ends
  int64_t initial_epoch = 0;  // the number of the epoch at which it starts, to continue a training
  bool shuffle = true;        // whether each epoch has a new order
  // If above 0, the examples are shuffled only within windows of this many, which suits disks that
  // are slow to read at random places. If there are not more than that, all are shuffled.
  int64_t shuffle_buffer = 0;
  // Batches of examples of similar lengths, for a model that takes any length.
  std::optional<BucketByLength> bucket_by_length = {};
  // Masks tokens, for masked language models. The labels are the same tokens.
  std::optional<MaskTokens> mask_tokens = {};
  // The batches per epoch; 0: all. An epoch begins where the last one has ended, also that of an
  // earlier Fit, unless the number of batches in all examples has changed meanwhile: Fit then
  // begins with a new pass.
  int64_t steps_per_epoch = 0;
  const Dataset* validation = nullptr;  // evaluated at the end of an epoch; may be null
  // The part of the examples, from 0 to below 1, that is not trained on but evaluated: the last
  // ones, before the order is shuffled. For arrays in memory, which each Fit copies; without
  // `validation`, and not in a job with an evaluator.
  double validation_split = 0;
  int64_t validation_steps = 0;                 // batches per validation; 0: all
  int64_t validation_freq = 1;                  // epochs from one validation to the next
  int64_t validation_batch_size = 0;            // 0: batch_size
  std::map<int64_t, double> class_weight = {};  // a class without an entry weighs 1
  std::vector<Callback> callbacks = {};
  Verbose verbose = Verbose::kAuto;
};

struct EvaluateOptions {
  int64_t batch_size = 32;
  int64_t steps = 0;                                    // batches to evaluate; 0 for all
  std::optional<BucketByLength> bucket_by_length = {};  // as in FitOptions
  std::optional<MaskTokens> mask_tokens = {};           // every evaluation masks the same tokens
};

struct LoadOptions {
  // Patterns of variables that keep their values ("head/*").
  std::vector<std::string> skip = {};
};

struct PredictOptions {
  int64_t batch_size = 32;
  double scale = 1;  // factor for the float32 inputs
};

// The results of a step.
struct BatchReport {
  double loss = 0;       // the mean over the examples of the step, before the update
  Metrics metrics = {};  // the loss and the metrics of these examples
  int64_t examples = 0;  // of all devices
  int64_t step = 0;      // the number of updates that the optimizer has made
};

// A model with the values of its variables, an optimizer with its state, a loss and metrics.
//
// A value: a copy is trained independently of the original. The variables get their initial values
// when their shapes are known: in Compile if the inputs that the model states determine them, and
// otherwise when the first data are used. Not synchronised. After a move, it may only be destroyed
// or assigned.
class CompiledModel {
 public:
  CompiledModel(const CompiledModel& other);
  CompiledModel(CompiledModel&& other) noexcept;
  CompiledModel& operator=(const CompiledModel& other);
  CompiledModel& operator=(CompiledModel&& other) noexcept;
  ~CompiledModel();

  // Trains from the present values and state of the optimizer. While it trains, SIGTERM and SIGINT
  // make it end after the current step, with Cancelled, unless the program handles the signal
  // itself (SessionOptions::handle_signals); a second signal ends the process. After SIGTERM, a
  // program should save what it needs and end. Later calls of Fit, Evaluate and Predict work as if
  // there had been no signal.
  //
  // After Cancelled and after other errors, the model has the values of the last step, and
  // history() has the epochs until then. If numbers were not finite, it has the values at the end
  // of the last epoch before. If Fit has failed before its first step, nothing has changed.
  // Cancelled is also the error of a task whose job has ended without it, for example because it
  // was restarted too late; its values are then not those that the job has trained. A ps task
  // serves variables until its job has ended, and an evaluator evaluates the checkpoints of
  // BackupAndRestore on `validation`; both then return the same error, with which value() ends the
  // process with 0.
  //
  // While Fit runs, its callbacks use FitControl: the other functions of this model that return a
  // Status or a Result, apart from Summary, return FailedPrecondition, and the process ends (Exit)
  // if the model is copied, moved or assigned.
  Result<History> Fit(const Dataset& train, const FitOptions& options = {});
  // Returns what the last call of Fit has reported, also if it has ended with an error.
  const History& history() const&;
  History history() && { return std::as_const(*this).history(); }

  // Takes one step on the examples, as Fit does with each batch: on the devices of the strategy, of
  // which each takes a part of the examples, with the mean of the loss over all of them. If numbers
  // are not finite, returns an error and changes nothing. Class weights are those of Fit.
  //
  // The first call compiles programs for this number of examples and their types. The values stay
  // on the devices until another function needs them. Returns Unimplemented in a job of several
  // tasks.
  Result<BatchReport> Step(const Batch& batch, const std::map<int64_t, double>& class_weight = {});
  // Like Step. As in Keras 3, returns the loss and the metrics of all batches since ResetMetrics,
  // Fit or Evaluate, those of TestOnBatch included.
  Result<Metrics> TrainOnBatch(const Batch& batch,
                               const std::map<int64_t, double>& class_weight = {});
  // Like TrainOnBatch, but does not train.
  Result<Metrics> TestOnBatch(const Batch& batch);
  void ResetMetrics();

  // Returns the mean loss and metrics over the examples, in their order.
  Result<Metrics> Evaluate(const Dataset& test, const EvaluateOptions& options = {});

  // Return the outputs for the examples along the first axis of each input. The maps contain arrays
  // by the names of the input and output layers. The first form is for models with one input and
  // one output.
  Result<Tensor> Predict(const Tensor& x, const PredictOptions& options = {});
  Result<std::map<std::string, Tensor>> Predict(const std::map<std::string, Tensor>& inputs,
                                                const PredictOptions& options = {});

  // Writes the file, and replaces an older one only once the new file is complete. The end of the
  // name chooses the format:
  //   .keras, .h5     the whole model, with the settings of compile() and the state of the
  //                   optimizer: keras.models.load_model, Session::Load
  //   .weights.h5     the weights: Model.load_weights of Keras
  //   .safetensors    the weights, by the names of the variables
  // .keras and .h5 files are written by the program tfjob-hdf5, which this function starts. An
  // installed library finds the program that was installed with it; another one must be in the
  // folder of the running program, or be named by the environment variable TFJOB_HDF5.
  // Never waits for another task.
  Status Save(const std::string& path) const;
  // Adds a checkpoint to the folder, in the format of TensorFlow and of tfjob-trainer: variables,
  // state of the optimizer and step. Keeps the newest five, and deletes checkpoints of later steps,
  // which belong to another training. Only one task of a job may call it.
  Status SaveCheckpoint(const std::string& folder) const;

  // Reads the values of the variables from a file that Save has written, from another file of
  // weights of Keras, or from a checkpoint (its prefix, or a folder with checkpoints). The state of
  // the optimizer stays as it is.
  Status LoadWeights(const std::string& path, const LoadOptions& options = {});
  // Sets variables by their names (Weights). The others, and the state of the optimizer, stay as
  // they are. Returns InvalidArgument if the model has no variable of this name, type and shape.
  Status SetWeights(const std::map<std::string, Tensor>& values);
  // Reads variables, state of the optimizer and step from the newest checkpoint in the folder.
  // Returns NotFound if there is none.
  Status LoadCheckpoint(const std::string& folder);

  // Returns the names and values of the variables, such as "dense/kernel", in the order of the
  // layers. Returns FailedPrecondition if they have no values yet.
  Result<std::vector<std::pair<std::string, Tensor>>> Weights() const;
  // Returns the number of updates that the optimizer has made.
  int64_t step() const;
  // Returns the model without values of its variables.
  const Model& model() const&;
  Model model() && { return std::as_const(*this).model(); }
  Result<std::string> Summary() const;

 private:
  friend struct Access;

  explicit CompiledModel(std::shared_ptr<CompiledData> data);

  std::shared_ptr<CompiledData> data_;  // shared only with a Fit that is running
};

struct SessionOptions {
  // Determines initial values, the order of the examples and dropout. Equal seeds give equal
  // results, so the models of an ensemble need different ones.
  int64_t seed = 0;
  int threads = 0;  // for computation; 0: one per processor that the process may use
  // "cpu", "cuda" or "auto". Strategy::FromEnvironment takes the environment variable TFJOB_DEVICE
  // instead, if it is set.
  std::string device = "auto";
  // Lines of this level and above go to standard error: "debug", "info", "warning", "error", "off".
  // The first session sets the level for the process; "" is the level that it has set, or
  // "warning".
  std::string log_level = {};
  // Whether SIGTERM and SIGINT end a running Fit, as long as the program does not handle the signal
  // itself. If false, the library leaves the signals alone.
  bool handle_signals = true;
};

// Immutable and cheap to copy.
class Session {
 public:
  // Moves are copies, so that a value can be used after a move.
  Session(const Session&) = default;
  Session& operator=(const Session&) = default;
  // Errors of the strategy and the options are returned by Compile and Load.
  explicit Session(const Strategy& strategy = Strategy::FromEnvironment(),
                   const SessionOptions& options = {});

  Result<CompiledModel> Compile(const Model& model, const CompileOptions& options) const;
  // Reads a whole model, with its weights, the settings of compile() and the state of its
  // optimizer, from a .keras or .h5 file. Returns InvalidArgument if the file has no such settings;
  // in that case, use Model::Load and Compile. If the model does not state the shapes of its
  // inputs, the file is read again when the first data are used, and must not change until then.
  Result<CompiledModel> Load(const std::string& path) const;

  // Returns the batches of a dataset, for a program's own loop. In a job of several tasks, each
  // task gets its part of each batch, which may be empty. Images and other inputs with a `scale`
  // become float32, and are multiplied by it; other arrays keep their types. A dataset of files
  // whose arrays are not named has one input and one output.
  Result<Batches> Distribute(const Dataset& dataset, const DistributeOptions& options = {}) const;
  // Makes a function out of a step, which `body` records. `body` is called once, here. The first
  // axis of every input counts the examples; shapes and types are those of one example. Returns
  // Unimplemented in a job of several tasks.
  Result<api::Function> Function(const std::vector<Input>& inputs, const StepBody& body) const;
  // Returns the number of devices of all tasks that take part in a step.
  int NumReplicasInSync() const;
  // In a ps task, serves variables until the chief has ended the job, and then returns the
  // kCancelled of a task without a model, with which value() ends the process with 0. In all other
  // tasks, returns OK at once. Fit does the same in a ps task; a program that calls this function
  // first needs neither data nor a model there. Unlike Fit with a BackupAndRestore, a ps that is
  // restarted after its job has failed does not learn of it, and serves until it is stopped:
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
