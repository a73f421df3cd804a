// Defines steps that a program writes itself, out of operations (ops.h) and models.
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

// A result of a step that is combined over the replicas, that is, over the devices.
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

// Records what a step computes. Each replica runs the step on its part of the examples. All values
// of variables are those before the step: updates happen at its end. Only the moving statistics
// differ: a call with `training` changes those that later calls of the same model in the step read.
//
// The models belong to the session of the function, and have values (they begin with an Input).
// The functions below report errors when the function is made. Layers without variables, such as
// Dropout, may be called directly; they then always train, so a step that only evaluates calls a
// Model, with training = false.
class Step {
 public:
  Step(const Step&) = delete;
  Step& operator=(const Step&) = delete;

  // Calls the model. With `training`, dropout is active, and the step changes the model's moving
  // statistics, also if nothing else depends on the call; several replicas average them.
  Symbol Call(const CompiledModel& model, const Symbols& inputs, bool training = true);
  // Returns the variables, in the order of CompiledModel::Weights, without those that are not
  // trained. Empty if the model has no values yet; the function is then not made.
  std::vector<Symbol> TrainableVariables(const CompiledModel& model);
  // Returns the sum of the penalties of the model's regularizers: on its variables, and on the
  // outputs of layers in earlier calls. As in Keras, losses contain it only if you add it; with
  // several replicas, divide it by their number, since gradients are summed.
  Symbol Penalty(const CompiledModel& model);

  // Returns d loss / d value for each of the values. The loss is a scalar, and must depend on each
  // value. Gradients are values, from which further gradients can be taken.
  std::vector<Symbol> Gradients(const Symbol& loss, const std::vector<Symbol>& values);
  // Updates the model's trainable variables by its optimizer. `gradients` are in the order of
  // TrainableVariables, and are summed over the replicas: divide a loss by NumExamples, not by the
  // replica's examples. A step applies gradients to a model at most once.
  void Apply(const CompiledModel& model, const std::vector<Symbol>& gradients);
  // Applies the gradients of the loss.
  void Minimize(const CompiledModel& model, const Symbol& loss);

  // Returns the number of examples of all replicas together, a float32 scalar.
  Symbol NumExamples();
  // Returns the value, through which no gradient flows.
  Symbol StopGradient(const Symbol& x);
  // Returns the cross-entropy of each example: -log softmax(logits) of its class. `logits` have one
  // row per example. `labels` are the classes, integers, one per example, or rows of probabilities.
  Symbol SoftmaxCrossEntropy(const Symbol& labels, const Symbol& logits);
  // Return random float32 numbers of this shape for each example. They depend on the session's seed
  // and on the number of runs of its functions, and differ between replicas.
  Symbol RandomNormal(const std::vector<int64_t>& shape, double mean = 0, double stddev = 1);
  Symbol RandomUniform(const std::vector<int64_t>& shape, double low = 0, double high = 1);

  // Combines the values of the replicas. The first form combines values whose shape does not depend
  // on the number of examples; a mean is then the mean over the replicas that have examples. The
  // second form also reduces along axis 0, which counts examples: a mean is the mean over the
  // examples of all replicas. `axis` must be 0.
  Reduced Reduce(Reduction reduction, const Symbol& value);
  Reduced Reduce(Reduction reduction, const Symbol& value, int axis);

  // Adds a result of the function: a value with one row per example, whose rows are returned for
  // the examples of all replicas, or a reduced value. Each result has its own name.
  void Return(const std::string& name, const Symbol& value);
  void Return(const std::string& name, const Reduced& value);

 private:
  friend struct Access;
  explicit Step(StepData& data) : data_(data) {}

  StepData& data_;
};

using StepBody = std::function<void(Step& step, const std::vector<Symbol>& inputs)>;

// The results of a run of a function.
class StepResults {
 public:
  StepResults() = default;
  explicit StepResults(std::map<std::string, Tensor> values) : values_(std::move(values)) {}

  const std::map<std::string, Tensor>& values() const& { return values_; }
  std::map<std::string, Tensor> values() && { return std::move(values_); }
  // Return the result of this name. If there is none, end the process (Exit). number() returns the
  // only element of a result.
  Tensor at(const std::string& name) const;
  double number(const std::string& name) const;

 private:
  std::map<std::string, Tensor> values_;
};

// A step, which runs on the devices of its session, and which changes the models that it was made
// with. A model that is assigned another value is no longer that model. Copies are the same
// function. Functions, and models that they use, are not synchronised. The variables of all models
// that functions have used stay on the devices until the session, its models and its functions are
// destroyed: a search over many models takes a session for each.
class Function {
 public:
  // Runs the step on the examples. The arrays have the names of the inputs. Inputs without a name
  // take `x`, `y` and `sample_weight`: the first input `x`, and so on. So do inputs with a name, if
  // the batch has no named arrays. The arrays must have the types of the inputs, and the same
  // number of rows, at least 1; `scale` must be 1. The first call with a number of rows compiles
  // the step for it.
  //
  // Does not check whether numbers are finite. After an error, no optimizer has been applied;
  // moving statistics may have changed.
  Result<StepResults> operator()(const Batch& batch);

 private:
  friend struct Access;
  explicit Function(std::shared_ptr<FunctionData> data) : data_(std::move(data)) {}

  std::shared_ptr<FunctionData> data_;
};

}  // namespace tfjob::api
