#include "runtime/api/loops/step_data.h"

#include <algorithm>
#include <atomic>

#include "runtime/api/loops/calls.h"
#include "runtime/model/keras_call.h"
#include "runtime/steps/nodes.h"

namespace tfjob::api {
namespace {

// Returns the JSON that a call uses to refer to input i as an argument, in the form that
// ReadKerasCall reads.
Json InputArgument(size_t i) {
  Json config = {{"shape", Json::array({nullptr})}, {"dtype", "float32"}};
  config["keras_history"] = Json::array({StrCat(i), 0, 0});
  return {{"class_name", "__keras_tensor__"}, {"config", std::move(config)}};
}

std::string NameOf(const LayerData& layer) {
  return layer.name().empty() ? layer.class_name()
                              : StrCat(layer.name(), " (", layer.class_name(), ")");
}

}  // namespace

int64_t StepData::NextNumber() {
  static std::atomic<int64_t> next{0};
  return next++;
}

Symbol StepData::Make(const std::string& name, std::vector<Symbol> inputs, steps::Emit emit) const {
  return Access::MakeSymbol(
      {.layer = nullptr,
       .inputs = std::move(inputs),
       .step = std::make_shared<const StepValue>(StepValue{name, std::move(emit), number})});
}

size_t StepData::NumberOf(const CompiledModel& model, const char* function) {
  const std::shared_ptr<CompiledData>& data = Access::Shared(model);
  const auto found = std::ranges::find(models, data);
  if (found != models.end()) return static_cast<size_t>(found - models.begin());
  const auto prepare = [&]() -> tfjob::Status {
    if (data == nullptr)
      return InvalidArgument("expected a model, got one that has been moved from");
    if (data->session != session) {
      return InvalidArgument("model ", data->model.name(),
                             ": expected a model of the session that ",
                             "makes the function, got one of another session");
    }
    RETURN_IF_ERROR(data->ExpectBuilt());
    return OkStatus();
  };
  const tfjob::Status prepared = prepare();
  if (!prepared.ok()) {
    Fail(Annotate(prepared, function));
    return 0;
  }
  models.push_back(data);
  definition.models.push_back(StepModelOf(*data, ""));
  return models.size() - 1;
}

std::vector<Symbol> StepData::PlaceholdersFor(const CompiledData* model) const {
  std::vector<Symbol> made;
  if (model == nullptr || !model->definition) return made;
  for (const model::VariableSpec& variable : model->definition->variables)
    if (variable.trained()) made.push_back(Make(variable.name, {}, nullptr));
  return made;
}

void StepData::AddResult(Returned result) {
  if (std::ranges::find(returned, result.name, &Returned::name) != returned.end()) {
    return Fail(InvalidArgument("Return: the step already returns \"", result.name,
                                "\"; give each result its own name"));
  }
  returned.push_back(std::move(result));
}

tfjob::Status StepData::Finish() {
  RETURN_IF_ERROR(error);
  StepWriter writer(*this, definition);
  for (const Symbol& root : roots) RETURN_IF_ERROR(writer.Write(root).status());
  for (const Application& application : applications) {
    steps::Application made{.model = static_cast<int>(application.model)};
    for (const Symbol& gradient : application.gradients) {
      ASSIGN_OR_RETURN(made.gradients.emplace_back(), writer.Write(gradient));
    }
    definition.applications.push_back(std::move(made));
  }
  for (const Returned& result : returned) {
    ASSIGN_OR_RETURN(const steps::Value value, writer.Write(result.value));
    definition.results.push_back({result.name, value, result.reduction, result.over_examples});
  }
  return OkStatus();
}

// Keeps a list of the calls to write, instead of using recursion, because a deep step could
// overflow the stack.
StatusOr<steps::Value> StepWriter::Write(const Symbol& symbol) {
  std::vector<const CallData*> waiting = {Access::Call(symbol)};
  while (!waiting.empty()) {
    const CallData* call = waiting.back();
    const size_t before = waiting.size();
    for (auto input = call->inputs.rbegin(); input != call->inputs.rend(); ++input) {
      if (!nodes_.contains(Access::Call(*input))) waiting.push_back(Access::Call(*input));
    }
    if (waiting.size() > before) continue;
    waiting.pop_back();
    if (!nodes_.contains(call)) RETURN_IF_ERROR(WriteCall(*call));
  }
  return steps::Value{nodes_.at(Access::Call(symbol)), Access::Output(symbol)};
}

tfjob::Status StepWriter::WriteCall(const CallData& call) {
  steps::Node node;
  const auto add_input = [&](const Symbol& input) {
    node.inputs.push_back({nodes_.at(Access::Call(input)), Access::Output(input)});
  };
  if (call.step != nullptr) {
    if (call.step->owner != owner_.number) {
      return InvalidArgument(call.step->name, ": the value belongs to the step of another ",
                             "function; make it again in this one");
    }
    node.name = call.step->name;
    node.emit = call.step->emit;
    for (const Symbol& input : call.inputs) add_input(input);
  } else {
    RETURN_IF_ERROR(call.layer->error);
    node.name = NameOf(*call.layer);
    if (call.inputs.empty()) {
      return InvalidArgument(node.name, ": expected a value of the step, got an Input; use the ",
                             "inputs that the step is called with");
    }
    std::vector<Json> tensors;
    for (size_t i = 0; i < call.inputs.size(); ++i) tensors.push_back(InputArgument(i));
    ASSIGN_OR_RETURN(const Json written, WriteNode(call, node.name, std::move(tensors)));
    ASSIGN_OR_RETURN(const model::KerasCall read, model::ReadKerasCall(call.layer->form, written));
    for (const std::string& input : read.inputs)
      add_input(call.inputs[static_cast<size_t>(std::stoul(input))]);
    node.emit = steps::LayerNode(read.layer);
  }
  nodes_[&call] = static_cast<int>(definition_.nodes.size());
  definition_.nodes.push_back(std::move(node));
  return OkStatus();
}

}  // namespace tfjob::api
