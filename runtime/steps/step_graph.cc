#include "runtime/steps/step_graph.h"

#include <algorithm>
#include <utility>

#include "runtime/graph/ops.h"
#include "runtime/model/updates.h"

namespace tfjob::steps {
namespace {

using graph::Builder;
using graph::Output;

// Check builds a definition for these two numbers of examples. If the length of an axis equals one
// of these numbers by coincidence, it does not also equal the other one.
constexpr int64_t kOneSize = 1'013, kOtherSize = 1'009;

Status NodeError(const Node& node, const Status& error) {
  return node.name.empty() ? error : Annotate(error, node.name);
}

// Returns the output that `value` refers to, or an error if the node has no such output.
StatusOr<Output> At(const std::vector<std::vector<Output>>& values, const Value& value) {
  const std::vector<Output>& from = values[static_cast<size_t>(value.node)];
  if (value.output >= 0 && static_cast<size_t>(value.output) < from.size())
    return from[static_cast<size_t>(value.output)];
  return InvalidArgument("expected one of the ", from.size(), " outputs of the call, got output ",
                         value.output);
}

// Appends all nodes. Returns the values of each node.
StatusOr<std::vector<std::vector<Output>>> EmitNodes(StepGraph& step) {
  std::vector<std::vector<Output>> values;
  for (const Node& node : step.definition.nodes) {
    std::vector<Output> inputs;
    for (const Value& input : node.inputs) {
      const StatusOr<Output> value = At(values, input);
      if (!value.ok()) return NodeError(node, value.status());
      inputs.push_back(*value);
    }
    values.push_back(node.emit(step, inputs));
    if (!step.b.ok()) return NodeError(node, step.b.status());
    if (step.alignment.ok()) continue;
    if (step.misaligned.ok()) step.misaligned = NodeError(node, step.alignment);
    step.alignment = OkStatus();
  }
  return values;
}

// Adds a fetch for each result.
Status AddResults(StepGraph& step, const std::vector<std::vector<Output>>& values,
                  BuiltStep& built) {
  for (size_t i = 0; i < step.definition.results.size(); ++i) {
    const Result& result = step.definition.results[i];
    const StatusOr<Output> returned = At(values, result.value);
    if (!returned.ok()) return Annotate(returned.status(), StrCat("result ", result.name));
    Output value = *returned;
    const Shape shape = step.b.shape(value);
    built.by_example.push_back(shape.rank() > 0 && shape.dim(0) == step.examples);
    built.counts.push_back(shape.rank() > 0 ? shape.dim(0) : 1);
    if (result.over_examples) {
      if (shape.rank() == 0) {
        return InvalidArgument("result ", result.name,
                               ": expected a value whose first axis counts ",
                               "examples, to reduce along it, got a scalar");
      }
      value = Sum(step.b, value, {0});
    }
    step.b.AddFetch(ResultFetch(i), value);
    built.results.push_back(step.b.type(value));
  }
  return step.b.status();
}

std::string NameInModel(const StepModel& model, const model::VariableSpec& variable) {
  return variable.name.substr(model.prefix.size());
}

StatusOr<std::vector<model::VariableGradient>> GradientsOf(
    const StepModel& model, const Application& application,
    const std::vector<std::vector<Output>>& values) {
  std::vector<model::VariableGradient> gradients;
  const std::vector<size_t> trained = TrainableOf(model);
  for (size_t i = 0; i < trained.size(); ++i) {
    const model::VariableSpec& variable = model.variables[trained[i]];
    const StatusOr<Output> value = At(values, application.gradients[i]);
    if (!value.ok())
      return Annotate(value.status(), StrCat("Apply: the gradient of variable ", variable.name));
    gradients.push_back({&variable, *value, {}, NameInModel(model, variable)});
  }
  return gradients;
}

using Gradients = std::vector<std::vector<model::VariableGradient>>;
// Returns the gradients for each application.
StatusOr<Gradients> AllGradientsOf(const Definition& definition,
                                   const std::vector<std::vector<Output>>& values) {
  Gradients all;
  for (const Application& application : definition.applications) {
    const StepModel& model = definition.models[static_cast<size_t>(application.model)];
    ASSIGN_OR_RETURN(all.emplace_back(), GradientsOf(model, application, values));
  }
  return all;
}

// Returns an error unless the gradients have the types of the variables.
Status CheckGradients(const StepGraph& step,
                      const std::vector<model::VariableGradient>& gradients) {
  for (const model::VariableGradient& gradient : gradients) {
    const graph::TensorType expected = {gradient.variable->dtype, gradient.variable->shape};
    const graph::TensorType& type = step.b.type(gradient.value);
    if (type == expected) continue;
    return InvalidArgument("Apply: the gradient of variable ", gradient.variable->name,
                           ": expected ", expected.ToString(), ", got ", type.ToString());
  }
  return OkStatus();
}

// Calls visit(model, variable, value) for each moving statistic that the step assigns a value to.
template <typename Visit>
void ForEachStatistic(const StepGraph& step, const Visit& visit) {
  for (size_t m = 0; m < step.models.size(); ++m) {
    for (size_t v = 0; v < step.models[m].assigned.size(); ++v)
      if (step.models[m].assigned[v]) visit(m, v, step.models[m].current[v]);
  }
}

// Appends the updates of the variables. The updates come after all other nodes, so that these read
// the values from before the step.
void AppendUpdates(StepGraph& step, Gradients gradients) {
  const Definition& definition = step.definition;
  ForEachStatistic(step, [&](size_t m, size_t v, Output value) {
    Assign(step.b, definition.models[m].variables[v].name, value);
  });
  for (size_t i = 0; i < definition.applications.size(); ++i) {
    const auto m = static_cast<size_t>(definition.applications[i].model);
    const StepModel& model = definition.models[m];
    const Output made = Placeholder(step.b, StepFeed(m), DType::kInt64, {});
    ApplyGradients(step.b, model.optimizer, model.clipping, std::move(gradients[i]), made);
  }
}

void FetchChange(StepGraph& step, size_t m, size_t v, bool gradient, Output value,
                 BuiltStep& built) {
  const std::string& variable = step.definition.models[m].variables[v].name;
  const std::string name = StrCat(gradient ? "gradients/" : "assignments/", variable);
  step.b.AddFetch(name, value);
  built.changes.push_back({m, v, gradient, name});
}

void FetchChanges(StepGraph& step, const Gradients& gradients, BuiltStep& built) {
  ForEachStatistic(step, [&](size_t m, size_t v, Output value) {
    FetchChange(step, m, v, /*gradient=*/false, value, built);
  });
  for (size_t a = 0; a < gradients.size(); ++a) {
    const auto m = static_cast<size_t>(step.definition.applications[a].model);
    const std::vector<size_t> trained = TrainableOf(step.definition.models[m]);
    for (size_t i = 0; i < trained.size(); ++i)
      FetchChange(step, m, trained[i], /*gradient=*/true, gradients[a][i].value, built);
  }
}

// Returns an error unless the result has the form that its reduction requires. Compares two steps
// that were built for different numbers of examples.
Status CheckResult(const Result& result, const BuiltStep& one, const BuiltStep& other, size_t i) {
  if (result.reduction == Reduction::kNone) {
    if (one.by_example[i] && other.by_example[i]) return OkStatus();
    return InvalidArgument("result ", result.name, ": expected one row per example, or a value ",
                           "that Reduce returns, got ", one.results[i].ToString(), " for ",
                           kOneSize, " examples");
  }
  if (one.results[i] == other.results[i]) return OkStatus();
  return InvalidArgument("result ", result.name, ": expected a value whose shape does not depend ",
                         "on the number of examples, got ", one.results[i].ToString(), " for ",
                         kOneSize, " examples; reduce along axis 0");
}

Status CheckGradientCounts(const Definition& definition) {
  for (const Application& application : definition.applications) {
    const StepModel& model = definition.models[static_cast<size_t>(application.model)];
    const size_t trained = TrainableOf(model).size();
    if (application.gradients.size() == trained) continue;
    return InvalidArgument("Apply: expected a gradient for each of the ", trained,
                           " trainable variables of model ", model.model.name, ", got ",
                           application.gradients.size());
  }
  return OkStatus();
}

// Builds the step for a number of examples. Errors contain this number, because it is chosen by
// Check, not by the program.
StatusOr<BuiltStep> TryWith(int64_t examples, const Definition& definition) {
  StatusOr<BuiltStep> built = BuildStep(definition, examples, 0, /*updates=*/false);
  if (built.ok()) return built;
  return Annotate(built.status(), StrCat("tried with ", examples, " examples"));
}

}  // namespace

std::string InputFeed(size_t input) {
  return StrCat("input/", input);
}

std::string StepFeed(size_t model) {
  return StrCat("step/", model);
}

std::string ResultFetch(size_t result) {
  return StrCat("result/", result);
}

std::vector<size_t> TrainableOf(const StepModel& model) {
  std::vector<size_t> trained;
  for (size_t v = 0; v < model.variables.size(); ++v)
    if (model.variables[v].trained()) trained.push_back(v);
  return trained;
}

StepGraph::StepGraph(const Definition& of, int64_t rows, int64_t number)
    : definition(of), examples(rows), replica(number) {
  for (size_t i = 0; i < definition.inputs.size(); ++i) {
    const graph::TensorType& example = definition.inputs[i].example;
    inputs.push_back(
        Placeholder(b, InputFeed(i), example.dtype, model::Batched(examples, example.shape)));
  }
  run = Placeholder(b, kRun, DType::kInt64, {});
  seed = Placeholder(b, kSeed, DType::kInt64, {});
  all_examples = Placeholder(b, kExamples, DType::kFloat32, {});
  for (const StepModel& model : definition.models) {
    ModelState state;
    for (const model::VariableSpec& variable : model.variables)
      state.reads.push_back(ReadVariable(b, variable.name, variable.dtype, variable.shape));
    state.current = state.reads;
    state.assigned.resize(state.reads.size());
    models.push_back(std::move(state));
  }
}

StatusOr<BuiltStep> BuildStep(const Definition& definition, int64_t examples, int64_t replica,
                              bool updates) {
  StepGraph step(definition, examples, replica);
  ASSIGN_OR_RETURN(const auto values, EmitNodes(step));
  BuiltStep built;
  RETURN_IF_ERROR(AddResults(step, values, built));
  ASSIGN_OR_RETURN(Gradients gradients, AllGradientsOf(definition, values));
  for (const auto& of_model : gradients) RETURN_IF_ERROR(CheckGradients(step, of_model));
  if (updates) {
    AppendUpdates(step, std::move(gradients));
  } else {
    FetchChanges(step, gradients, built);
  }
  built.misaligned = step.misaligned;
  ASSIGN_OR_RETURN(built.graph, std::move(step.b).Finish());
  return built;
}

StatusOr<graph::Graph> BuildUpdates(const Definition& definition, const BuiltStep& built) {
  Builder b;
  std::vector<std::vector<model::VariableGradient>> gradients(definition.models.size());
  for (const Change& change : built.changes) {
    const StepModel& model = definition.models[change.model];
    const model::VariableSpec& variable = model.variables[change.variable];
    const Output value = Placeholder(b, change.name, variable.dtype, variable.shape);
    if (change.gradient) {
      gradients[change.model].push_back({&variable, value, {}, NameInModel(model, variable)});
    } else {
      Assign(b, variable.name, value);
    }
  }
  for (const Application& application : definition.applications) {
    const auto m = static_cast<size_t>(application.model);
    const Output made = Placeholder(b, StepFeed(m), DType::kInt64, {});
    ApplyGradients(b, definition.models[m].optimizer, definition.models[m].clipping,
                   std::move(gradients[m]), made);
  }
  return std::move(b).Finish();
}

Status Check(const Definition& definition) {
  if (definition.inputs.empty())
    return InvalidArgument("inputs: expected at least one, whose rows are the examples");
  RETURN_IF_ERROR(CheckGradientCounts(definition));
  ASSIGN_OR_RETURN(const BuiltStep one, TryWith(kOneSize, definition));
  ASSIGN_OR_RETURN(const BuiltStep other, TryWith(kOtherSize, definition));
  if (!other.misaligned.ok()) RETURN_IF_ERROR(one.misaligned);
  for (size_t i = 0; i < definition.results.size(); ++i)
    RETURN_IF_ERROR(CheckResult(definition.results[i], one, other, i));
  return OkStatus();
}

}  // namespace tfjob::steps
