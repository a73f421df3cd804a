#include "runtime/strategy/model/model_definition.h"

#include <algorithm>

#include "runtime/exec/exchange.h"
#include "runtime/model/layer/initial_pieces.h"
#include "runtime/model/layer/initializer.h"
#include "runtime/variables/memory_use.h"

namespace tfjob::strategy {
namespace {

class InitialStream : public state::StreamedValue {
 public:
  InitialStream(const model::VariableSpec& spec, int64_t seed)
      : pieces_(spec.initializer, spec.dtype, spec.shape, static_cast<uint64_t>(seed), spec.name) {}

  Status Read(int64_t offset, std::span<std::byte> to) const override {
    pieces_.Read(offset, to);
    return OkStatus();
  }

 private:
  const model::InitialPieces pieces_;
};

}  // namespace

Status DefineVariables(ModelDefinition& definition) {
  ASSIGN_OR_RETURN(definition.variables,
                   model::Variables(definition.model, definition.build.features));
  model::FindMasks(definition.model, definition.build);
  definition.state.variables.clear();
  for (const model::VariableSpec& spec : definition.variables) {
    // A variable that is not trained has no slots, and changes only if its layer assigns values to
    // it.
    const auto update = spec.trained() ? state::Update::kGradient : state::Update::kAssign;
    definition.state.variables.push_back(
        {.name = spec.name,
         .dtype = spec.dtype,
         .shape = spec.shape,
         .update = update,
         .constraint = spec.trained() ? spec.rules.constraint : optimizer::Constraint()});
  }
  return state::Validate(definition.state);
}

bool IsTable(const ModelDefinition& definition, size_t variable) {
  return std::ranges::binary_search(definition.tables, static_cast<int>(variable));
}

StatusOr<std::vector<int>> SeparableTables(const ModelDefinition& definition, model::Mode mode,
                                           int64_t least_bytes) {
  ASSIGN_OR_RETURN(
      const model::BuiltGraph built,
      BuildGraph(definition, mode, definition.build.batch_size, /*with_updates=*/false));
  const std::vector<std::string> names = model::SeparableTables(built);
  std::vector<int> tables;
  for (size_t v = 0; v < definition.variables.size(); ++v) {
    const model::VariableSpec& spec = definition.variables[v];
    const auto element = static_cast<int64_t>(SizeOf(spec.dtype));
    const bool large = spec.shape.num_elements() > least_bytes / element;
    if (large && std::ranges::find(names, spec.name) != names.end())
      tables.push_back(static_cast<int>(v));
  }
  return tables;
}

state::Snapshot InitialState(const ModelDefinition& definition, std::span<const int> streamed) {
  state::Snapshot snapshot;
  for (size_t i = 0; i < definition.variables.size(); ++i) {
    const model::VariableSpec& spec = definition.variables[i];
    if (std::ranges::binary_search(streamed, static_cast<int>(i)) &&
        model::InitialPieces::CanMake(spec.initializer)) {
      snapshot.variables.push_back(
          state::VariableState::Initial(definition.state.variables[i], definition.state.optimizer,
                                        std::make_shared<InitialStream>(spec, definition.seed)));
      continue;
    }
    Tensor value = model::InitialValue(spec.initializer, spec.dtype, spec.shape,
                                       static_cast<uint64_t>(definition.seed), spec.name);
    snapshot.variables.push_back(state::VariableState::Initial(
        definition.state.variables[i], definition.state.optimizer, std::move(value)));
  }
  return snapshot;
}

StatusOr<model::BuiltGraph> BuildGraph(const ModelDefinition& definition, model::Mode mode,
                                       int64_t batch_size, bool with_updates) {
  model::BuildOptions options = definition.build;
  options.mode = mode;
  options.batch_size = batch_size;
  if (mode != model::Mode::kTrain) options.clipping = {};
  if (with_updates) options.optimizer = definition.state.optimizer;
  for (const int v : definition.tables)
    options.tables.push_back(definition.variables[static_cast<size_t>(v)].name);
  return model::Build(definition.model, options);
}

StatusOr<std::string> FirstExchange(const ModelDefinition& definition) {
  ASSIGN_OR_RETURN(const model::BuiltGraph built,
                   BuildGraph(definition, model::Mode::kTrain, /*batch_size=*/1,
                              /*with_updates=*/false));
  const std::vector<exec::PlannedExchange> exchanges = exec::ExchangesOf(built.graph);
  return exchanges.empty() ? std::string() : exchanges[0].name;
}

namespace {

Status CheckVariablesFit(const ModelDefinition& definition) {
  std::vector<variables::MemoryUse> tensors;
  size_t total = 0;
  for (size_t i = 0; i < definition.variables.size(); ++i) {
    const model::VariableSpec& spec = definition.variables[i];
    if (IsTable(definition, i)) continue;
    const size_t bytes = static_cast<size_t>(spec.shape.num_elements()) * SizeOf(spec.dtype);
    tensors.push_back({spec.name, spec.dtype, spec.shape, bytes});
    total += bytes;
  }
  return variables::CheckMemory(total, std::move(tensors));
}

}  // namespace

Status CreateVariables(const ModelDefinition& definition, variables::VariableStore& store) {
  RETURN_IF_ERROR(CheckVariablesFit(definition));
  for (size_t i = 0; i < definition.variables.size(); ++i) {
    const model::VariableSpec& spec = definition.variables[i];
    if (IsTable(definition, i)) continue;
    const auto kind =
        spec.trained() ? variables::Kind::kTrainable : variables::Kind::kMovingStatistic;
    RETURN_IF_ERROR(store.Create(spec.name, spec.dtype, spec.shape, kind).status());
  }
  return OkStatus();
}

Status LoadValues(const ModelDefinition& definition, const state::Snapshot& snapshot,
                  variables::VariableStore& store) {
  for (size_t i = 0; i < definition.variables.size(); ++i) {
    if (IsTable(definition, i)) continue;
    ASSIGN_OR_RETURN(variables::Variable * variable, store.Get(definition.variables[i].name));
    const state::VariableState& state = snapshot.variables[i];
    Tensor value = state.value;
    if (!state.streamed.empty()) {
      ASSIGN_OR_RETURN(value, state::ReadWhole(definition.state.variables[i], *state.streamed[0]));
    }
    RETURN_IF_ERROR(variable->FromTensor(value));
  }
  return OkStatus();
}

}  // namespace tfjob::strategy
