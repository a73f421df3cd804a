#include "runtime/config/keys.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/config/bind.h"

namespace tfjob::config {
namespace {

using C = TrainingConfig;

std::vector<std::string> LossNames() {
  return {"sparse_categorical_crossentropy",
          "categorical_crossentropy",
          "clipped_crossentropy",
          "binary_crossentropy",
          "binary_focal_crossentropy",
          "categorical_focal_crossentropy",
          "categorical_generalized_cross_entropy",
          "mean_squared_error",
          "mean_absolute_error",
          "mean_absolute_percentage_error",
          "mean_squared_logarithmic_error",
          "huber",
          "log_cosh",
          "poisson",
          "kl_divergence",
          "cosine_similarity",
          "hinge",
          "squared_hinge",
          "categorical_hinge",
          "dice",
          "tversky",
          "circle",
          "ctc"};
}

// Returns whether the loss is not a metric, because its value is not a mean over places.
bool IsOnlyLoss(const std::string& name) {
  return name == "dice" || name == "tversky" || name == "circle" || name == "ctc";
}

std::vector<std::string> MetricNames() {
  std::vector<std::string> names = {"accuracy",
                                    "binary_accuracy",
                                    "categorical_accuracy",
                                    "sparse_categorical_accuracy",
                                    "top_k_categorical_accuracy",
                                    "sparse_top_k_categorical_accuracy",
                                    "perplexity",
                                    "root_mean_squared_error",
                                    "r2_score",
                                    "precision",
                                    "recall",
                                    "auc",
                                    "true_positives",
                                    "true_negatives",
                                    "false_positives",
                                    "false_negatives",
                                    "precision_at_recall",
                                    "recall_at_precision",
                                    "sensitivity_at_specificity",
                                    "specificity_at_sensitivity",
                                    "f1_score",
                                    "fbeta_score",
                                    "io_u",
                                    "binary_io_u",
                                    "mean_io_u",
                                    "one_hot_io_u",
                                    "one_hot_mean_io_u",
                                    "pearson_correlation",
                                    "concordance_correlation"};
  for (std::string& loss : LossNames()) {
    if (!IsOnlyLoss(loss)) names.push_back(std::move(loss));
  }
  names.emplace_back("custom");
  return names;
}

void AddOverlapArguments(std::vector<Key>& keys) {
  using L = LossConfig;
  constexpr auto kOf = &C::loss;
  keys.push_back({.path = "loss.beta",
                  .type = KeyType::kNumber,
                  .binding = Bind<kOf, &L::beta>(),
                  .doc = "Weight of what the predictions contain in excess of the labels.",
                  .minimum = 0,
                  .when_key = "loss.name",
                  .when_values = {"tversky"},
                  .unset_doc = "0.5"});
  keys.push_back({.path = "loss.axis",
                  .type = KeyType::kNumbers,
                  .binding = Bind<kOf, &L::axis>(),
                  .doc = "Axes over which the loss sums, where axis 0 contains the examples of the "
                         "batch. `[1, 2, 3]`: the loss of each image on its own.",
                  .when_key = "loss.name",
                  .when_values = {"dice", "tversky"},
                  .unset_doc = "all axes"});
}

void AddLossArguments(std::vector<Key>& keys) {
  using L = LossConfig;
  constexpr auto kOf = &C::loss;
  const auto add = [&](const char* name, KeyType type, Binding binding, double most,
                       std::vector<std::string> losses, const char* unset, const char* doc) {
    keys.push_back({.path = StrCat("loss.", name),
                    .type = type,
                    .binding = binding,
                    .doc = doc,
                    .minimum = 0,
                    .maximum = most,
                    .when_key = "loss.name",
                    .when_values = std::move(losses),
                    .unset_doc = unset});
  };
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  add("label_smoothing", KeyType::kNumber, Bind<kOf, &L::label_smoothing>(), 1,
      {"categorical_crossentropy", "categorical_focal_crossentropy", "binary_crossentropy",
       "binary_focal_crossentropy"},
      "0", "Fraction of each label that is spread evenly over all classes.");
  add("alpha", KeyType::kNumber, Bind<kOf, &L::alpha>(), kNoLimit,
      {"binary_focal_crossentropy", "categorical_focal_crossentropy", "tversky"},
      "0.25; `tversky`: 0.5",
      "Weight of the classes, from 0 to 1; `binary_focal_crossentropy` uses it only with "
      "apply_class_balancing. `tversky`: weight of what the predictions miss.");
  add("gamma", KeyType::kNumber, Bind<kOf, &L::gamma>(), kNoLimit,
      {"binary_focal_crossentropy", "categorical_focal_crossentropy", "circle"}, "2; `circle`: 80",
      "Exponent of the factor that reduces the weight of well-classified examples. `circle`: "
      "factor "
      "of the similarities.");
  add("apply_class_balancing", KeyType::kBool, Bind<kOf, &L::apply_class_balancing>(), kNoLimit,
      {"binary_focal_crossentropy"}, "false",
      "Multiply the loss by alpha where the label is 1, and by 1 − alpha where it is 0.");
  add("delta", KeyType::kNumber, Bind<kOf, &L::delta>(), kNoLimit, {"huber"}, "1",
      "The absolute error at which the loss changes from quadratic to linear.");
  add("q", KeyType::kNumber, Bind<kOf, &L::q>(), 1, {"categorical_generalized_cross_entropy"},
      "0.5",
      "A number between 0 and 1. The closer it is to 1, the smaller the effect of wrong labels.");
  AddOverlapArguments(keys);
  add("margin", KeyType::kNumber, Bind<kOf, &L::margin>(), kNoLimit, {"circle"}, "0.4",
      "Pairs with the same label should be closer than this distance, and others farther apart "
      "than 1 minus it.");
  add("remove_diagonal", KeyType::kBool, Bind<kOf, &L::remove_diagonal>(), kNoLimit, {"circle"},
      "true", "Do not compare examples with themselves.");
  keys.push_back({.path = "loss.ignore_class",
                  .type = KeyType::kInteger,
                  .binding = Bind<kOf, &L::ignore_class>(),
                  .doc = "Label of positions that the loss ignores, such as -1 or 255. The mean is "
                         "taken over the other positions.",
                  .when_key = "loss.name",
                  .when_values = {"sparse_categorical_crossentropy"},
                  .unset_doc = "no position is ignored"});
}

void AddWeightsKeys(std::vector<Key>& keys) {
  keys.push_back({.path = "model.weights",
                  .type = KeyType::kString,
                  .binding = Bind<&C::model, &ModelConfig::weights>(),
                  .doc = "Weights from which training starts, if model_dir has no checkpoint: a "
                         "safetensors, `.keras` or `.h5` file, a checkpoint's prefix, or a folder "
                         "with checkpoints.",
                  .unset_doc = "initial values"});
  keys.push_back({.path = "model.optimizer_state",
                  .type = KeyType::kString,
                  .binding = Bind<&C::model, &ModelConfig::optimizer_state>(),
                  .doc = "A `.keras` or `.h5` file of Keras 3. Training continues with the state "
                         "of its optimizer: slots and steps. Needs model.weights.",
                  .unset_doc = "model.file, if it is also model.weights and optimizer.name is not "
                               "set; otherwise the optimizer starts afresh"});
  keys.push_back({.path = "model.weights_skip",
                  .type = KeyType::kStrings,
                  .binding = Bind<&C::model, &ModelConfig::weights_skip>(),
                  .doc =
                      "Patterns such as `logits/*`, as in a shell: matching variables keep their "
                      "initial values, and matching tensors of the file are ignored.",
                  .unset_doc = "none"});
  keys.push_back({.path = "model.frozen",
                  .type = KeyType::kStrings,
                  .binding = Bind<&C::model, &ModelConfig::frozen>(),
                  .doc = "Patterns such as `conv_*`, `encoder/*` or `*/bias`, as in a shell: "
                         "layers whose name matches are not trained, like those with `trainable: "
                         "false`, and neither are single variables whose full name, such as "
                         "`dense_1/kernel`, matches. The name of a layer in a nested model begins "
                         "with the name of that model. Keras' files cannot freeze single "
                         "variables, so Keras trains them again after `export`.",
                  .unset_doc = "none"});
  keys.push_back({.path = "model.recompute",
                  .type = KeyType::kStrings,
                  .binding = Bind<&C::model, &ModelConfig::recompute>(),
                  .doc = "Patterns like those of `frozen`. To save memory, training computes the "
                         "matching layers a second time for their gradients, and keeps only their "
                         "outputs until then. A nested model that matches is recomputed as a "
                         "whole.",
                  .unset_doc = "none"});
  keys.push_back(
      {.path = "model.dtype_policy",
       .type = KeyType::kString,
       .binding = Bind<&C::model, &ModelConfig::dtype_policy>(),
       .doc = "Keras' dtype policy for the layers in this file that have no `dtype`. Files from "
              "Keras name the policy of every layer. With a mixed policy, layers compute in 16 "
              "bits and keep their variables in float32: [Mixed precision](#mixed-precision).",
       .choices = {"float32", "mixed_bfloat16", "mixed_float16"},
       .unset_doc = "`float32`"});
}

void AddModelKeys(std::vector<Key>& keys) {
  keys.push_back({.path = "model.layers",
                  .type = KeyType::kLayers,
                  .binding = Bind<&C::model, &ModelConfig::layers>(),
                  .doc = "The layers in order, each written as `- Class: {argument: value}` or "
                         "with Keras' `class_name` and `config`.",
                  .unset_doc = "one of `layers`, `keras_json` and `file` is required"});
  keys.push_back({.path = "model.keras_json",
                  .type = KeyType::kString,
                  .binding = Bind<&C::model, &ModelConfig::keras_json>(),
                  .doc = "Path of a file written by Keras' `model.to_json()` (Keras 3 or tf.keras "
                         "2), relative to the working directory.",
                  .unset_doc = "one of `layers`, `keras_json` and `file` is required"});
  keys.push_back(
      {.path = "model.file",
       .type = KeyType::kString,
       .binding = Bind<&C::model, &ModelConfig::file>(),
       .doc = "Path of a `.keras` file, or of an `.h5` file that contains a whole model. The run "
              "uses its architecture. If the training file names no loss or no optimizer, the run "
              "takes the missing settings from those of compile(). To start from the weights in "
              "the file as well, set model.weights to the same path.",
       .unset_doc = "one of `layers`, `keras_json` and `file` is required"});
  AddWeightsKeys(keys);
}

void AddLossKeys(std::vector<Key>& keys) {
  std::vector<std::string> names = LossNames();
  names.emplace_back("custom");
  keys.push_back(
      {.path = "loss.name",
       .type = KeyType::kString,
       .binding = Bind<&C::loss, &LossConfig::name>(),
       .doc = "The loss to minimise. `clipped_crossentropy` is −Σ y·log(clip(p, 1e-10, 1)), where "
              "y is the label and p the model's output. `custom` is the loss that `loss.model` "
              "computes. `loss: NAME` is the short form.",
       .choices = std::move(names),
       .unset_doc = "required"});
  keys.push_back({.path = "loss.from_logits",
                  .type = KeyType::kBool,
                  .binding = Bind<&C::loss, &LossConfig::from_logits>(),
                  .doc =
                      "The model's outputs are logits, not probabilities. If the model ends in a "
                      "softmax or sigmoid, the loss uses the values before that function in "
                      "any case, as in Keras.",
                  .when_key = "loss.name",
                  .when_values = {"sparse_categorical_crossentropy", "categorical_crossentropy",
                                  "categorical_focal_crossentropy", "binary_crossentropy",
                                  "binary_focal_crossentropy"}});
  AddLossArguments(keys);
  keys.push_back(
      {.path = "loss.model",
       .type = KeyType::kModel,
       .binding = Bind<&C::loss, &LossConfig::model>(),
       .doc = "The functional model that computes the loss: the path of a file written by Keras' "
              "`model.to_json()`, or that JSON itself. Its inputs are the labels and the "
              "predictions, in this order. Its only output has one value per example, per position "
              "or per element of the predictions. It has no variables.",
       .when_key = "loss.name",
       .when_values = {"custom"},
       .unset_doc = "required"});
}

// Adds the keys that may differ between outputs.
void AddOutputKeys(std::vector<Key>& keys) {
  const size_t first = keys.size();
  AddLossKeys(keys);
  keys.push_back({.path = "loss.reduction",
                  .type = KeyType::kChoice,
                  .binding = Bind<&C::loss, &LossConfig::reduction>(),
                  .doc = "How the losses of a batch's examples are combined: into their mean or "
                         "their sum, by Keras' names.",
                  .choices = {"sum_over_batch_size", "sum"}});
  keys.push_back({.path = "metrics",
                  .type = KeyType::kMetrics,
                  .binding = Bind<&C::metrics>(),
                  .doc = "Metrics to report in addition to the loss, with Keras' names and "
                         "arguments, such as `[accuracy, {name: top_k_categorical_accuracy, k: "
                         "3}]`: [Losses and metrics](#losses-and-metrics). `custom` is the mean of "
                         "the values that a model computes: [Custom metrics](#custom-metrics).",
                  .choices = MetricNames()});
  keys.push_back({.path = "weighted_metrics",
                  .type = KeyType::kMetrics,
                  .binding = Bind<&C::weighted_metrics>(),
                  .doc = "Metrics in the same form as `metrics`, but weighted by the sample "
                         "weights or class_weight, as in Keras.",
                  .choices = MetricNames()});
  keys.push_back({.path = "class_weight",
                  .type = KeyType::kClassWeights,
                  .binding = Bind<&C::class_weight>(),
                  .doc = "Weights of the classes in the training loss, such as `{0: 1, 1: 5}`, as "
                         "in Keras. Classes that are not listed have the weight 1.",
                  .unset_doc = "every weight is 1"});
  keys.push_back({.path = "loss_weight",
                  .type = KeyType::kNumber,
                  .binding = Bind<&C::loss_weight>(),
                  .doc = "Factor by which an output's loss is multiplied in the sum of all "
                         "outputs' losses, which training minimises."});
  for (size_t i = first; i < keys.size(); ++i) keys[i].per_output = true;
  keys.push_back({.path = "outputs",
                  .type = KeyType::kOutputs,
                  .binding = Bind<&C::outputs>(),
                  .doc = "Keys that apply to one output of a model with several outputs, by the "
                         "output's name: `loss`, `loss_weight`, `metrics`, `weighted_metrics` and "
                         "`class_weight`. Other outputs take these keys from the top level.",
                  .unset_doc = "the keys at the top level apply to all outputs"});
}

Key Plain(const char* path, KeyType type, Binding binding, double minimum, const char* doc,
          const char* unset = "") {
  return {.path = path,
          .type = type,
          .binding = binding,
          .doc = doc,
          .minimum = minimum,
          .unset_doc = unset};
}

constexpr double kMostExamples = 1 << 24;  // per batch

void AddGpuKeys(std::vector<Key>& keys) {
  const size_t first = keys.size();
  keys.push_back(
      {.path = "gpu.memory_fraction",
       .type = KeyType::kNumber,
       .binding = Bind<&C::gpu, &GpuConfig::memory_fraction>(),
       .doc = "Fraction of the GPU's memory that a task may use, above 0. If several tasks share "
              "a GPU, their fractions must add up to less than 1.",
       .minimum = 0,
       .maximum = 1});
  keys.push_back({.path = "gpu.allow_tf32",
                  .type = KeyType::kBool,
                  .binding = Bind<&C::gpu, &GpuConfig::allow_tf32>(),
                  .doc = "Round the operands of matrix products and convolutions to TF32, which "
                         "has 10 bits of mantissa. These ops are then several times as fast, but "
                         "their results differ from the CPU's by up to about 0.1 %."});
  for (size_t i = first; i < keys.size(); ++i) {
    keys[i].when_key = "device";
    keys[i].when_values = {"auto", "cuda"};
  }
}

void AddBatchKeys(std::vector<Key>& keys) {
  using enum KeyType;
  keys.push_back(Plain("batch_size", kInteger, Bind<&C::batch_size>(), 1,
                       "Number of examples per step and training task. A task with several devices "
                       "splits these examples over its devices.",
                       "32, unless global_batch_size is set"));
  keys.push_back(
      Plain("global_batch_size", kInteger, Bind<&C::global_batch_size>(), 1,
            "Total number of examples per step over all training tasks, instead of batch_size. It "
            "is split over the tasks, and then over their devices, as evenly as possible.",
            "batch_size times the number of training tasks"));
  for (size_t i = keys.size() - 2; i < keys.size(); ++i) keys[i].maximum = kMostExamples;
}

void AddRunKeys(std::vector<Key>& keys) {
  using enum KeyType;
  keys.push_back(Plain(
      "epochs", kInteger, Bind<&C::epochs>(), 0,
      "Number of passes over the training data; 0: no limit. If max_steps is also set, training "
      "ends at whichever limit is reached first. At least one of the two is required."));
  keys.push_back(Plain("max_steps", kInteger, Bind<&C::max_steps>(), 0,
                       "Number of global steps after which training ends; 0: no limit."));
  keys.push_back({.path = "device",
                  .type = kChoice,
                  .binding = Bind<&C::device>(),
                  .doc = "Where a task computes: [GPUs](gpu.md). `auto`: on the CPU, until the "
                         "CUDA kernels have run on a real GPU. `cuda`: on a GPU; it is an error if "
                         "that is impossible, or if the model needs an op that has no CUDA kernel.",
                  .choices = {std::begin(kDeviceNames), std::end(kDeviceNames)}});
  AddGpuKeys(keys);
  keys.push_back(
      {.path = "on_non_finite",
       .type = kChoice,
       .binding = Bind<&C::on_non_finite>(),
       .doc = "What to do if a loss or a gradient is NaN or infinite. `fail`: end the run in all "
              "tasks; `skip`: leave out the batch; `continue`: do not check.",
       .choices = {"fail", "skip", "continue"}});
  keys.push_back(Plain("eval.batch_size", kInteger, Bind<&C::eval, &EvalConfig::batch_size>(), 0,
                       "Examples per evaluation batch; 0: batch_size, or global_batch_size."));
  keys.back().maximum = kMostExamples;
  keys.push_back(Plain("eval.steps", kInteger, Bind<&C::eval, &EvalConfig::steps>(), 0,
                       "Batches per evaluation; 0: all."));
  keys.push_back(Plain("eval.start_delay_secs", kNumber,
                       Bind<&C::eval, &EvalConfig::start_delay_secs>(), 0,
                       "Seconds that the evaluator waits before its first evaluation."));
  keys.push_back(Plain("eval.throttle_secs", kNumber, Bind<&C::eval, &EvalConfig::throttle_secs>(),
                       0, "Minimum number of seconds between the starts of two evaluations."));
  keys.push_back(Plain("model_dir", kString, Bind<&C::model_dir>(), 0,
                       "Folder for checkpoints and events, relative to the working directory.",
                       "nothing is saved"));
  keys.push_back(Plain("save_checkpoints_secs", kNumber, Bind<&C::save_checkpoints_secs>(), 0,
                       "Seconds between checkpoints. 0: unless save_checkpoints_steps is set, only "
                       "the first and the last checkpoint are saved.",
                       "600, unless by steps"));
  keys.push_back(Plain("save_checkpoints_steps", kInteger, Bind<&C::save_checkpoints_steps>(), 0,
                       "Steps between checkpoints. Cannot be combined with save_checkpoints_secs.",
                       "by seconds"));
  keys.push_back(Plain(
      "final_save_secs", kNumber, Bind<&C::final_save_secs>(), 0,
      "Seconds during which the chief keeps trying to save the last checkpoint if saving fails. "
      "After that, it exits with code 138, and the job has not succeeded. 0: one attempt."));
  keys.push_back(Plain("keep_checkpoint_max", kInteger, Bind<&C::keep_checkpoint_max>(), 0,
                       "Number of checkpoints to keep; older ones are deleted. 0: keep all."));
  keys.push_back(Plain("save_summary_steps", kInteger, Bind<&C::save_summary_steps>(), 0,
                       "Steps between summaries; 0: none."));
  keys.push_back(Plain("log_step_count_steps", kInteger, Bind<&C::log_step_count_steps>(), 0,
                       "Steps between log lines with loss and speed; 0: none."));
  keys.push_back(Plain("seed", kInteger, Bind<&C::seed>(), 0,
                       "Seed for initial values, shuffling, dropout and generated data."));
  keys.push_back(Plain("threads", kInteger, Bind<&C::threads>(), 0,
                       "Number of threads for computation; 0: one per processor that the CPU "
                       "affinity and the cgroup's quota allow."));
  keys.back().maximum = 4096;
}

}  // namespace

const std::vector<Key>& Keys() {
  static const std::vector<Key>* const kKeys = [] {
    auto* keys = new std::vector<Key>;
    AddModelKeys(*keys);
    AddOutputKeys(*keys);
    AddOptimizerKeys(*keys);
    AddDataKeys(*keys);
    AddStrategyKeys(*keys);
    AddBatchKeys(*keys);
    AddRunKeys(*keys);
    return keys;
  }();
  return *kKeys;
}

const Key* FindKey(std::string_view path) {
  const auto& keys = Keys();
  auto found =
      std::find_if(keys.begin(), keys.end(), [&](const Key& key) { return key.path == path; });
  return found == keys.end() ? nullptr : &*found;
}

bool HasShortForm(std::string_view section) {
  return section == "loss" || section == "optimizer" || section == "strategy";
}

}  // namespace tfjob::config
