// Defines functions. A function is a training step, or another computation, that the program
// composes from models and operations (ops.h).
//
//   Function train = session.Function({{.shape = {1}, .name = "x"}, {.shape = {1}, .name = "y"}},
//       [&](Step& step, const std::vector<Symbol>& in) {
//         Symbol error = ops::Square(step.Call(model, in[0]) - in[1]);
//         Symbol loss = ops::Sum(error) / step.NumExamples();
//         step.Apply(model, step.Gradients(loss, step.TrainableVariables(model)));
//         step.Return("loss", step.Reduce(Reduction::kSum, loss));
//       }).value();
//   double loss = train(batch).value().number("loss");
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "batch.h"
#include "layer.h"
#include "ops.h"
#include "status.h"
#include "tensor.h"

namespace tfjob::api {

class CompiledModel;
struct FunctionData;
struct StepData;

enum class Reduction { kSum, kMean };

// A result of a step, combined across the replicas (the devices of all tasks).
class Reduced {
 private:
  friend struct Access;
  friend class Step;
  Reduced(Symbol value, Reduction reduction, bool over_examples)
      : value_(std::move(value)), reduction_(reduction), over_examples_(over_examples) {}

  Symbol value_;
  Reduction reduction_;
  bool over_examples_;
};

// Records what a step computes. Each replica runs the step on its part of the examples. Reads of
// variables return the values from before the step, because updates happen at its end. Moving
// statistics are an exception: a call with `training` changes them at once, for later calls of the
// same model in this step.
//
// The models must belong to the session of the function. Their variables must have values, so the
// models must start with an Input. If one of the functions below fails, Session::Function returns
// the error. Layers without variables, such as Dropout, may be called directly; they then always
// behave as in training, so a step that only evaluates should call a Model that contains them, with
// training = false.
class Step {
 public:
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Calls the model. With `training`, dropout is active, and the step changes the model's moving
  // statistics, even if nothing else depends on the call. Moving statistics are averaged over the
  // examples of all replicas.
  Symbol Call(const CompiledModel& model, const Symbols& inputs, bool training = true);
  // Returns the trainable variables, in the order of CompiledModel::Weights. Returns none if the
  // model has no values yet; Session::Function then returns an error.
  std::vector<Symbol> TrainableVariables(const CompiledModel& model);
  // Returns the sum of the penalties of the model's regularizers. It contains the penalties on the
  // variables and on the outputs of layers in earlier calls. As in Keras, a loss contains this sum
  // only if you add it. Add it to the loss of each example, as in Sum(losses + penalty) /
  // NumExamples(), so that it counts once, no matter how many replicas there are: gradients are
  // summed over the replicas.
  Symbol Penalty(const CompiledModel& model);

  // Returns d loss / d value for each of the values. The loss must be a scalar that depends on each
  // value. A gradient is a value, so you can compute its gradients, too.
  std::vector<Symbol> Gradients(const Symbol& loss, const std::vector<Symbol>& values);
  // Updates the model's trainable variables with its optimizer. `gradients` are in the order of
  // TrainableVariables. The gradients are summed over the replicas, so divide a loss by
  // NumExamples, not by the number of examples in the replica. A step may apply gradients to a
  // model only once.
  void Apply(const CompiledModel& model, const std::vector<Symbol>& gradients);
  // Computes the gradients of the loss with respect to the model's trainable variables, and applies
  // them.
  void Minimize(const CompiledModel& model, const Symbol& loss);

  // Returns the total number of examples in all replicas, a float32 scalar.
  Symbol NumExamples();
  // Returns the value of `x`, but gradients treat it as a constant.
  Symbol StopGradient(const Symbol& x);
  // Returns the cross-entropy of each example: -log softmax(logits) of its class. `logits` have one
  // row per example. `labels` are either integer classes, one per example, or rows of
  // probabilities.
  Symbol SoftmaxCrossEntropy(const Symbol& labels, const Symbol& logits);
  // Return random float32 numbers, with this shape for each example. The numbers depend on the
  // session's seed and on how many times the session's functions have run. They differ between
  // replicas.
  Symbol RandomNormal(const std::vector<int64_t>& shape, double mean = 0, double stddev = 1);
  Symbol RandomUniform(const std::vector<int64_t>& shape, double low = 0, double high = 1);

  // Combine the values of the replicas. The first form is for values whose shape does not depend on
  // the number of examples; its mean is taken over the replicas that have examples. The second form
  // also reduces axis 0, the example axis; its mean is taken over the examples of all replicas.
  // `axis` must be 0.
  Reduced Reduce(Reduction reduction, const Symbol& value);
  Reduced Reduce(Reduction reduction, const Symbol& value, int axis);

  // Add a result of the function. The value is either reduced or has one row per example; in the
  // second case, the function returns the rows of all replicas of this task, in the order of the
  // examples that were passed to it. Each result needs its own name.
  void Return(const std::string& name, const Symbol& value);
  void Return(const std::string& name, const Reduced& value);

 private:
  friend struct Access;
  explicit Step(StepData& data) : data_(data) {}

  StepData& data_;
};

using StepBody = std::function<void(Step& step, const std::vector<Symbol>& inputs)>;

// The results of one run of a function.
class StepResults {
 public:
  StepResults() = default;
  explicit StepResults(std::map<std::string, Tensor> values) : values_(std::move(values)) {}

  const std::map<std::string, Tensor>& values() const& { return values_; }
  std::map<std::string, Tensor> values() && { return std::move(values_); }
  // at() returns the result with this name, and number() returns its only element. Both end the
  // process (Exit) if there is no such result; number() also does so if the result does not have
  // exactly one element.
  Tensor at(const std::string& name) const;
  double number(const std::string& name) const;

 private:
  std::map<std::string, Tensor> values_;
};

// Runs a step on the devices of its session, and changes the models that the step uses. If you
// assign another model to such a CompiledModel, the function still uses the earlier one. Copying a
// Function does not create a new function. Neither functions nor the models that they use are
// thread-safe. The variables of all models that functions have used stay on the devices until the
// session, its models and its functions are destroyed. If you search over many models, use one
// session per model.
class Function {
 public:
  // Runs the step on the examples. Each input gets the array with its name. Inputs without a name
  // get `x`, `y` or `sample_weight`, by their position, and so do all inputs if the batch has no
  // named arrays. The arrays must have the types of the inputs, and the same number of rows, at
  // least 1; `scale` must be 1. The first call with a new number of rows compiles the step for this
  // number.
  //
  // In a job of several tasks, all tasks run the step together, each on its own rows, which may be
  // none in some tasks. See CompiledModel::Step for what this requires, and for its errors.
  //
  // Does not check whether numbers are finite. If the call fails, the optimizers have changed
  // nothing, but moving statistics may have changed.
  Result<StepResults> operator()(const Batch& batch);

 private:
  friend struct Access;
  explicit Function(std::shared_ptr<FunctionData> data) : data_(std::move(data)) {}

  std::shared_ptr<FunctionData> data_;
};

}  // namespace tfjob::api
