#include "runtime/api/function.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/api/loops/step_data.h"
#include "runtime/api/loops/task_group.h"
#include "runtime/api/session.h"
#include "runtime/base/did_you_mean.h"
#include "runtime/base/fnv1a.h"
#include "runtime/steps/nodes.h"
#include "runtime/steps/step_graph.h"
#include "runtime/tensor/half.h"

namespace tfjob::api {
namespace {

constexpr char kFunction[] = "Function";

// Returns the model's name, or "" for a moved-from model.
std::string NameOfModel(const CompiledModel& model) {
  const std::shared_ptr<CompiledData>& data = Access::Shared(model);
  return data == nullptr ? "" : data->model.name();
}

std::vector<CompiledData*> PointersTo(const std::vector<std::shared_ptr<CompiledData>>& models) {
  std::vector<CompiledData*> pointers;
  for (const auto& model : models) pointers.push_back(model.get());
  return pointers;
}

// Converts the inputs to the type that steps::Definition uses. Returns an error if one of them is
// invalid.
StatusOr<std::vector<steps::Input>> InputsOf(const std::vector<Input>& inputs) {
  std::vector<steps::Input> made;
  for (const Input& input : inputs) {
    const std::string name = input.name.empty() ? StrCat("input ", made.size()) : input.name;
    const std::optional<tfjob::DType> dtype = ParseDType(input.dtype);
    if (!dtype || IsHalf(*dtype)) {
      return InvalidArgument(name, ": dtype: expected float32, float64, int32, int64, uint8 or ",
                             "bool, got ", input.dtype);
    }
    for (const int64_t length : input.shape) {
      if (length >= 0) continue;
      return InvalidArgument(name, ": shape: expected lengths of at least 0, got ", length,
                             "; the shapes of a function's inputs do not vary");
    }
    for (const steps::Input& other : made) {
      if (other.name == name)
        return InvalidArgument("two inputs are called ", name, "; give each its own name");
    }
    made.push_back({name, {*dtype, Shape(input.shape)}});
  }
  return made;
}

// Calls the body, which records a step, and adds this step to `data`.
tfjob::Status Record(const std::vector<Input>& inputs, const StepBody& body, StepData& data) {
  if (!body) return InvalidArgument("the step is an empty function");
  ASSIGN_OR_RETURN(data.definition.inputs, InputsOf(inputs));
  data.definition.seed = data.session->options.seed;
  std::vector<Symbol> symbols;
  for (size_t i = 0; i < inputs.size(); ++i)
    symbols.push_back(data.Make(data.definition.inputs[i].name, {}, steps::InputNode(i)));
  Access::RunStep(data, body, symbols);
  return data.Finish();
}

// Returns the inputs and models in the form " (x float32[1]) of model a, b".
std::string FunctionNameOf(const steps::Definition& definition) {
  std::string inputs, models;
  for (const steps::Input& input : definition.inputs)
    inputs += StrCat(inputs.empty() ? "" : ", ", input.name, " ", input.example.ToString());
  for (const steps::StepModel& model : definition.models)
    models += StrCat(models.empty() ? "" : ", ", model.model.name);
  return StrCat(" (", inputs, ") of model ", models);
}

// Returns a digest of everything that must be equal in all tasks that run the function together.
StatusOr<uint64_t> DigestOfStep(const steps::Definition& definition) {
  ASSIGN_OR_RETURN(const steps::BuiltStep built,
                   steps::BuildStep(definition, /*examples=*/1, /*replica=*/0, /*updates=*/true));
  Fnv1a digest;
  digest.Add(built.graph.ToString()).Add(StrCat("seed: ", definition.seed));
  for (const steps::StepModel& model : definition.models) {
    digest.Add(PrintJson(optimizer::ToJson(model.optimizer)));
    digest.Add(
        StrCat("clipping: ", static_cast<int>(model.clipping.kind), " ", model.clipping.limit));
  }
  for (const steps::Result& result : definition.results) {
    digest.Add(StrCat(result.name, ": ", static_cast<int>(result.reduction), " ",
                      result.over_examples ? 1 : 0));
  }
  return digest.hash();
}

StatusOr<std::shared_ptr<FunctionData>> MakeFunction(
    const std::shared_ptr<const SessionData>& session, const std::vector<Input>& inputs,
    const StepBody& body) {
  StepData data{.session = session};
  RETURN_IF_ERROR(Record(inputs, body, data));
  if (data.models.empty()) {
    return InvalidArgument("the step calls no model; ops on their own need no function: put them ",
                           "into a Model, and use Predict");
  }
  auto made = std::make_shared<FunctionData>();
  made->workspace = session->workspace;
  made->models = data.models;
  RETURN_IF_ERROR(made->workspace->Prepare(*data.models[0]));
  for (size_t m = 0; m < data.models.size(); ++m) {
    ASSIGN_OR_RETURN(const auto live, made->workspace->Bind(*data.models[m]));
    data.definition.models[m].variables = live->model().variables;
    data.definition.models[m].prefix = live->model().prefix;
  }
  ASSIGN_OR_RETURN(made->runner, made->workspace->MakeRunner(std::move(data.definition),
                                                             PointersTo(made->models)));
  ASSIGN_OR_RETURN(const int tasks, TasksOfLoops(Access::Data(session->strategy)));
  if (tasks > 1) {
    made->name = StrCat("function ", made->workspace->NextFunction(),
                        FunctionNameOf(made->runner->definition()));
    ASSIGN_OR_RETURN(made->digest, DigestOfStep(made->runner->definition()));
  }
  return made;
}

// Returns the array for an input: the array with the input's name. If the input has no name, or the
// batch has no named arrays, the input's position determines whether this is x, y or sample_weight.
const Tensor* Find(const Batch& batch, const std::string& name, size_t position) {
  for (const auto* arrays : {&batch.inputs, &batch.targets, &batch.sample_weights}) {
    const auto found = arrays->find(name);
    if (found != arrays->end()) return &found->second;
  }
  const Tensor* const unnamed[] = {&batch.x, &batch.y, &batch.sample_weight};
  constexpr std::string_view kNames[] = {"x", "y", "sample_weight"};
  for (size_t i = 0; i < 3; ++i)
    if (name == kNames[i] && unnamed[i]->present()) return unnamed[i];
  const bool named =
      !batch.inputs.empty() || !batch.targets.empty() || !batch.sample_weights.empty();
  if (position > 2 || (named && name != StrCat("input ", position))) return nullptr;
  return unnamed[position]->present() ? unnamed[position] : nullptr;
}

tfjob::Status NoArray(const Batch& batch, const std::string& input) {
  std::vector<std::string> names;
  for (const auto* arrays : {&batch.inputs, &batch.targets, &batch.sample_weights})
    for (const auto& [name, array] : *arrays) names.push_back(name);
  const Tensor* const unnamed[] = {&batch.x, &batch.y, &batch.sample_weight};
  constexpr const char* kNames[] = {"x", "y", "sample_weight"};
  for (size_t i = 0; i < 3; ++i)
    if (unnamed[i]->present()) names.emplace_back(kNames[i]);
  return InvalidArgument(input, ": the batch has no array for this input",
                         DidYouMean(input, names));
}

tfjob::Status CheckArray(const steps::Input& input, const tfjob::Tensor& array, int64_t rows,
                         int64_t least_rows) {
  const bool fits = array.dtype() == input.example.dtype && array.shape().rank() > 0 &&
                    model::ExampleOf(array.shape()) == input.example.shape;
  if (!fits) {
    return InvalidArgument(input.name, ": expected an array of examples of the type ",
                           input.example.ToString(), ", got ", tfjob::Name(array.dtype()),
                           array.shape().ToString());
  }
  if (rows < least_rows || rows > kMostBatch) {
    return InvalidArgument(input.name, ": expected ", least_rows, " to ", kMostBatch,
                           " examples, got ", rows);
  }
  if (array.shape().dim(0) == rows) return OkStatus();
  return InvalidArgument(input.name, ": expected ", rows, " examples, as in the first input, got ",
                         array.shape().dim(0));
}

StatusOr<std::vector<tfjob::Tensor>> ArraysOf(const steps::Definition& definition,
                                              const Batch& batch, int64_t least_rows) {
  if (batch.scale != 1) {
    return InvalidArgument("scale: expected 1, got ", batch.scale,
                           "; multiply by the scale in the step");
  }
  std::vector<tfjob::Tensor> arrays;
  for (const steps::Input& input : definition.inputs) {
    const Tensor* array = Find(batch, input.name, arrays.size());
    if (array == nullptr || !array->present()) return NoArray(batch, input.name);
    const tfjob::Tensor& tensor = Access::Data(*array);
    const int64_t rows = arrays.empty() ? (tensor.shape().rank() > 0 ? tensor.shape().dim(0) : 0)
                                        : arrays[0].shape().dim(0);
    RETURN_IF_ERROR(CheckArray(input, tensor, rows, least_rows));
    arrays.push_back(tensor);
  }
  return arrays;
}

// Recompiles the programs if the optimizer of a model has changed, because a callback of Fit may
// have changed the learning rate.
tfjob::Status Refresh(FunctionData& data) {
  bool same = true;
  const steps::Definition& made = data.runner->definition();
  for (size_t m = 0; m < data.models.size(); ++m)
    same = same && made.models[m].optimizer == data.models[m]->definition->state.optimizer;
  if (same) return OkStatus();
  steps::Definition definition = made;
  for (size_t m = 0; m < data.models.size(); ++m)
    definition.models[m].optimizer = data.models[m]->definition->state.optimizer;
  ASSIGN_OR_RETURN(data.runner,
                   data.workspace->MakeRunner(std::move(definition), PointersTo(data.models)));
  return OkStatus();
}

struct FunctionRun {
  std::vector<tfjob::Tensor> arrays;
  steps::Totals totals;  // of this task
};

StatusOr<FunctionRun> PrepareFunctionRun(FunctionData& data, const Batch& batch,
                                         int64_t least_rows) {
  RETURN_IF_ERROR(Refresh(data));
  FunctionRun run;
  ASSIGN_OR_RETURN(run.arrays, ArraysOf(data.runner->definition(), batch, least_rows));
  ASSIGN_OR_RETURN(run.totals, data.workspace->PrepareRun(*data.runner, PointersTo(data.models),
                                                          run.arrays[0].shape().dim(0)));
  return run;
}

StatusOr<std::vector<tfjob::Tensor>> RunFunctionAlone(FunctionData& data, const Batch& batch) {
  ASSIGN_OR_RETURN(const FunctionRun run, PrepareFunctionRun(data, batch, /*least_rows=*/1));
  return data.workspace->Run(*data.runner, PointersTo(data.models), run.arrays, run.totals,
                             /*group=*/nullptr);
}

steps::Announcement DescribeFunctionRun(const FunctionData& data,
                                        const StatusOr<FunctionRun>& run) {
  steps::Announcement made{.call = data.name, .digest = data.digest, .error = run.status()};
  if (!run.ok()) return made;
  for (const auto& model : data.models) made.steps.push_back(StepsToAnnounce(*model));
  made.examples = run->totals.examples;
  made.counts = run->totals.counts;
  return made;
}

// Runs the function together with the other tasks. Results with one row per example are those of
// this task's examples.
StatusOr<std::vector<tfjob::Tensor>> RunFunctionTogether(FunctionData& data, const Batch& batch,
                                                         steps::StepGroup& group) {
  StatusOr<FunctionRun> run = PrepareFunctionRun(data, batch, /*least_rows=*/0);
  ASSIGN_OR_RETURN(steps::Agreed agreed, group.Announce(DescribeFunctionRun(data, run)));
  for (size_t m = 0; m < data.models.size(); ++m)
    if (agreed.sends[m]) RETURN_IF_ERROR(ShareValues(*data.models[m], group));
  const steps::Totals totals{.examples = agreed.examples,
                             .replicas = agreed.tasks_with_examples,
                             .counts = std::move(agreed.counts)};
  auto results =
      data.workspace->Run(*data.runner, PointersTo(data.models), run->arrays, totals, &group);
  if (results.ok()) return results;
  if (data.runner->exchange_failed()) return group.Check(results.status());
  group.Fail(results.status());
  return results;
}

StatusOr<StepResults> RunFunction(FunctionData& data, const Batch& batch) {
  ASSIGN_OR_RETURN(TaskGroup * group, data.workspace->Group(*data.models[0]));
  const auto run = [&]() -> StatusOr<std::vector<tfjob::Tensor>> {
    if (group == nullptr) return RunFunctionAlone(data, batch);
    MutexLock turn(group->mutex());
    return RunFunctionTogether(data, batch, group->steps());
  };
  ASSIGN_OR_RETURN(std::vector<tfjob::Tensor> results, run());
  std::map<std::string, Tensor> named;
  for (size_t i = 0; i < results.size(); ++i) {
    named[data.runner->definition().results[i].name] = Access::MakeTensor(std::move(results[i]));
  }
  return StepResults(std::move(named));
}

steps::Reduction ToInternal(Reduction reduction) {
  return reduction == Reduction::kSum ? steps::Reduction::kSum : steps::Reduction::kMean;
}

}  // namespace

void Access::RunStep(StepData& data, const StepBody& body, const std::vector<Symbol>& inputs) {
  Step step(data);
  body(step, inputs);
}

Function Access::MakeFunction(std::shared_ptr<FunctionData> data) {
  return Function(std::move(data));
}

Symbol Step::Call(const CompiledModel& model, const Symbols& inputs, bool training) {
  const size_t number = data_.NumberOf(model, "Call");
  const Symbol made = data_.Make(StrCat("Call of model ", NameOfModel(model)), inputs.values(),
                                 steps::ModelNode(number, training));
  data_.roots.push_back(made);
  return made;
}

std::vector<Symbol> Step::TrainableVariables(const CompiledModel& model) {
  const size_t number = data_.NumberOf(model, "TrainableVariables");
  // After an error, return placeholders, because the body may index the variables before
  // Session::Function returns.
  if (!data_.error.ok()) return data_.PlaceholdersFor(Access::Shared(model).get());
  const steps::StepModel& of = data_.definition.models[number];
  std::vector<Symbol> variables;
  for (const size_t v : steps::TrainableOf(of))
    variables.push_back(data_.Make(of.variables[v].name, {}, steps::VariableNode(number, v)));
  return variables;
}

Symbol Step::Penalty(const CompiledModel& model) {
  const size_t number = data_.NumberOf(model, "Penalty");
  const Symbol made = data_.Make("Penalty", {}, steps::PenaltyNode(number));
  data_.roots.push_back(made);
  return made;
}

std::vector<Symbol> Step::Gradients(const Symbol& loss, const std::vector<Symbol>& values) {
  if (values.empty()) {
    data_.Fail(InvalidArgument("Gradients: expected at least one value, got none"));
    return {loss};
  }
  if (!data_.error.ok()) return values;  // the body may use them before Session::Function returns
  std::vector<Symbol> inputs = {loss};
  inputs.insert(inputs.end(), values.begin(), values.end());
  const Symbol made = data_.Make("Gradients", std::move(inputs), steps::GradientNode());
  std::vector<Symbol> gradients;
  for (size_t i = 0; i < values.size(); ++i) gradients.push_back(made.Output(static_cast<int>(i)));
  return gradients;
}

void Step::Apply(const CompiledModel& model, const std::vector<Symbol>& gradients) {
  const size_t number = data_.NumberOf(model, "Apply");
  if (!data_.error.ok()) return;
  for (const StepData::Application& other : data_.applications) {
    if (other.model != number) continue;
    data_.Fail(InvalidArgument("Apply: the step already applies gradients to model ",
                               NameOfModel(model), "; apply the sum of the gradients"));
  }
  data_.applications.push_back({number, gradients});
}

void Step::Minimize(const CompiledModel& model, const Symbol& loss) {
  Apply(model, Gradients(loss, TrainableVariables(model)));
}

Symbol Step::NumExamples() {
  return data_.Make("NumExamples", {}, steps::AllExamplesNode());
}

Symbol Step::StopGradient(const Symbol& x) {
  return data_.Make("StopGradient", {x}, steps::StopGradientNode());
}

Symbol Step::SoftmaxCrossEntropy(const Symbol& labels, const Symbol& logits) {
  return data_.Make("SoftmaxCrossEntropy", {labels, logits}, steps::CrossEntropyNode());
}

Symbol Step::RandomNormal(const std::vector<int64_t>& shape, double mean, double stddev) {
  if (!std::isfinite(mean) || !std::isfinite(stddev) || stddev < 0) {
    data_.Fail(InvalidArgument("RandomNormal: expected a finite mean, and a finite standard ",
                               "deviation of at least 0, got ", mean, " and ", stddev));
  }
  return data_.Make("RandomNormal", {}, steps::RandomNormalNode(Shape(shape), mean, stddev));
}

Symbol Step::RandomUniform(const std::vector<int64_t>& shape, double low, double high) {
  if (!std::isfinite(low) || !std::isfinite(high) || low > high) {
    data_.Fail(InvalidArgument("RandomUniform: expected finite numbers low <= high, got ", low,
                               " and ", high));
  }
  return data_.Make("RandomUniform", {}, steps::RandomUniformNode(Shape(shape), low, high));
}

Reduced Step::Reduce(Reduction reduction, const Symbol& value) {
  return {value, reduction, false};
}

Reduced Step::Reduce(Reduction reduction, const Symbol& value, int axis) {
  if (axis != 0) {
    data_.Fail(InvalidArgument("Reduce: axis: expected 0, the axis of the examples, got ", axis,
                               "; reduce other axes with ops::Sum or ops::Mean"));
  }
  return {value, reduction, true};
}

void Step::Return(const std::string& name, const Symbol& value) {
  data_.AddResult({.name = name, .value = value});
}

void Step::Return(const std::string& name, const Reduced& value) {
  data_.AddResult({name, value.value_, ToInternal(value.reduction_), value.over_examples_});
}

Tensor StepResults::at(const std::string& name) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, value] : values_) names.push_back(known);
  const Result<Tensor> none = ToPublic(StatusOr<Tensor>(
      InvalidArgument("the function has no result \"", name, "\"", DidYouMean(name, names))));
  return none.value();
}

double StepResults::number(const std::string& name) const {
  const Tensor tensor = at(name);
  if (tensor.size() != 1) {
    ToPublic(InvalidArgument("result ", name, ": expected one number, got ", tensor.size()))
        .value();
  }
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return static_cast<double>(tensor.float32()[0]);
    case DType::kFloat64:
      return tensor.float64()[0];
    case DType::kInt32:
      return tensor.int32()[0];
    case DType::kInt64:
      return static_cast<double>(tensor.int64()[0]);
    case DType::kUInt8:
      return tensor.uint8()[0];
    case DType::kBool:
      return tensor.boolean()[0] ? 1 : 0;
  }
  return 0;
}

Result<StepResults> Function::operator()(const Batch& batch) {
  return ToPublic(RunFunction(*data_, batch));
}

Result<Function> Session::Function(const std::vector<Input>& inputs, const StepBody& body) const {
  auto made = MakeFunction(data_, inputs, body);
  if (!made.ok()) return ToPublic(Annotate(made.status(), kFunction));
  return Access::MakeFunction(*std::move(made));
}

int Session::NumReplicasInSync() const {
  const StrategyData& strategy = Access::Data(data_->strategy);
  const int tasks = std::max(cluster::TrainingTaskCount(strategy.tf_config), 1);
  const bool devices = strategy.config.kind == config::StrategyKind::kMirrored ||
                       strategy.config.kind == config::StrategyKind::kCentralStorage;
  return devices ? static_cast<int>(strategy.config.devices) : tasks;
}

}  // namespace tfjob::api
