#include "runtime/model/keras/optimizer_state.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/io/hdf5_file.h"
#include "runtime/model/keras/archive.h"
#include "runtime/model/keras/layout.h"
#include "runtime/model/keras/model_file.h"

namespace tfjob::keras {
namespace {

using Kind = OptimizerVariable::Kind;

void AddSlots(const std::vector<std::string>& slots, size_t trained,
              std::vector<OptimizerVariable>& variables) {
  for (size_t v = 0; v < trained; ++v) {
    for (const std::string& slot : slots) variables.push_back({Kind::kSlot, v, slot});
  }
}

// Returns the slots in the order in which Keras creates them, divided into groups. Keras
// interleaves the slots of a group.
std::vector<std::vector<std::string>> SlotGroups(const optimizer::Optimizer& optimizer) {
  std::vector<std::string> own;
  for (const optimizer::Slot& slot : optimizer::Slots(optimizer)) {
    if (slot.name != "average" && slot.name != "gradient_accumulator") own.push_back(slot.name);
  }
  std::vector<std::vector<std::string>> groups;
  if (optimizer.kind == optimizer::Kind::kRmsprop) {
    for (const char* name : {"velocity", "momentum", "average_gradient"}) {
      if (std::ranges::find(own, name) != own.end()) groups.push_back({name});
    }
    return groups;
  }
  // All other optimizers create their first two slots together, followed by the third slot if
  // amsgrad is set.
  const auto middle = own.begin() + static_cast<std::ptrdiff_t>(std::min<size_t>(2, own.size()));
  groups.emplace_back(own.begin(), middle);
  groups.emplace_back(middle, own.end());
  return groups;
}

// Lists the datasets of an optimizer's variables, in Keras' order.
struct StoredOptimizer {
  std::unique_ptr<io::Hdf5File> file;
  std::vector<std::string> paths;
};

StatusOr<StoredOptimizer> OpenOptimizer(const std::string& path) {
  ASSIGN_OR_RETURN(const FileFormat format, FormatOf(path));
  if (format != FileFormat::kArchive && format != FileFormat::kHdf5)
    return InvalidArgument(path, ": expected a .keras or .h5 file");
  StoredOptimizer stored;
  ASSIGN_OR_RETURN(stored.file, format == FileFormat::kArchive ? ReadArchiveWeights(path)
                                                               : io::Hdf5File::Open(path));
  const auto names = stored.file->Texts("optimizer_weights", "weight_names");
  if (names.ok()) {
    for (const std::string& name : *names)
      stored.paths.push_back(StrCat("optimizer_weights/", name));
  } else {
    for (size_t i = 0; stored.file->datasets().contains(StrCat("optimizer/vars/", i)); ++i)
      stored.paths.push_back(StrCat("optimizer/vars/", i));
  }
  if (stored.paths.empty()) return InvalidArgument(path, " has no state of an optimizer");
  return stored;
}

StatusOr<int64_t> ReadIterations(const StoredOptimizer& stored) {
  ASSIGN_OR_RETURN(const Tensor tensor, stored.file->Read(stored.paths[0]));
  int64_t iterations = -1;
  if (tensor.shape().num_elements() == 1 && tensor.dtype() == DType::kInt64)
    iterations = tensor.data<int64_t>()[0];
  if (tensor.shape().num_elements() == 1 && tensor.dtype() == DType::kInt32)
    iterations = tensor.data<int32_t>()[0];
  // Limits the number of iterations: a double cannot represent every integer above this limit.
  constexpr int64_t kMostIterations = int64_t{1} << 53;
  if (iterations >= 0 && iterations <= kMostIterations) return iterations;
  return InvalidArgument(stored.file->name(), ": ", stored.paths[0],
                         ": expected a number of steps from 0 to 2^53");
}

StatusOr<Tensor> ReadSlot(const StoredOptimizer& stored, const std::string& path,
                          const model::VariableSpec& variable, const std::string& slot) {
  const auto found = stored.file->datasets().find(path);
  if (found == stored.file->datasets().end())
    return InvalidArgument(stored.file->name(), ": ", path, " is missing");
  if (found->second.dtype == variable.dtype && found->second.shape == variable.shape)
    return stored.file->Read(path);
  return InvalidArgument(stored.file->name(), ": ", path, ", the ", slot, " of ", variable.name,
                         ", is ", found->second.stored, found->second.shape.ToString(), ", but ",
                         variable.name, " is ", Name(variable.dtype), variable.shape.ToString());
}

}  // namespace

std::vector<OptimizerVariable> OptimizerVariables(const optimizer::Optimizer& optimizer,
                                                  size_t trained) {
  std::vector<OptimizerVariable> variables = {{Kind::kIterations, 0, ""}};
  if (optimizer.schedule.decay == optimizer::Decay::kNone)
    variables.push_back({Kind::kLearningRate, 0, ""});
  if (optimizer.use_ema) AddSlots({"average"}, trained, variables);
  if (optimizer.gradient_accumulation_steps > 0)
    AddSlots({"gradient_accumulator"}, trained, variables);
  for (const std::vector<std::string>& group : SlotGroups(optimizer))
    AddSlots(group, trained, variables);
  if (optimizer.kind == optimizer::Kind::kNadam)
    variables.push_back({Kind::kMomentumProduct, 0, ""});
  return variables;
}

std::string NameOfVariable(const OptimizerVariable& variable,
                           std::span<const std::string> trained) {
  switch (variable.kind) {
    case Kind::kIterations:
      return "iteration";
    case Kind::kLearningRate:
      return "learning_rate";
    case Kind::kMomentumProduct:
      return "momentum_product";
    case Kind::kSlot:
      break;
  }
  return StrCat(trained[variable.variable], "/", variable.slot);
}

std::vector<std::string> TrainedVariables(const model::Model& model,
                                          std::span<const model::VariableSpec> variables) {
  std::vector<std::string> trained;
  for (const std::string& name : KerasOrder(model, variables)) {
    if (std::ranges::find(variables, name, &model::VariableSpec::name)->trainable)
      trained.push_back(name);
  }
  return trained;
}

StatusOr<OptimizerState> ReadOptimizerState(const std::string& path, const model::Model& model,
                                            std::span<const model::VariableSpec> variables,
                                            const optimizer::Optimizer& optimizer) {
  ASSIGN_OR_RETURN(const StoredOptimizer stored, OpenOptimizer(path));
  const std::vector<std::string> trained = TrainedVariables(model, variables);
  const auto expected = OptimizerVariables(optimizer, trained.size());
  OptimizerState state;
  ASSIGN_OR_RETURN(state.iterations, ReadIterations(stored));
  // A model that was compiled but never trained has no slots.
  if (state.iterations == 0 && stored.paths.size() <= 2) return state;
  if (stored.paths.size() != expected.size()) {
    return InvalidArgument(path, ": its optimizer has ", stored.paths.size(), " variables, but ",
                           optimizer::Name(optimizer.kind), " has ", expected.size(),
                           " for this model");
  }
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].kind != Kind::kSlot) continue;
    const std::string& name = trained[expected[i].variable];
    const auto variable = std::ranges::find(variables, name, &model::VariableSpec::name);
    ASSIGN_OR_RETURN(Tensor slot, ReadSlot(stored, stored.paths[i], *variable, expected[i].slot));
    state.slots[name].emplace(expected[i].slot, std::move(slot));
  }
  return state;
}

std::vector<Tensor> ValuesOf(const OptimizerState& state, const optimizer::Optimizer& optimizer,
                             std::span<const std::string> trained) {
  const int64_t updates =
      state.iterations / std::max<int64_t>(1, optimizer.gradient_accumulation_steps);
  std::vector<Tensor> values;
  for (const OptimizerVariable& variable : OptimizerVariables(optimizer, trained.size())) {
    switch (variable.kind) {
      case Kind::kIterations:
        values.push_back(Tensor::Scalar<int64_t>(state.iterations));
        break;
      case Kind::kLearningRate:
        values.push_back(Tensor::Scalar<float>(static_cast<float>(optimizer.learning_rate)));
        break;
      case Kind::kMomentumProduct:
        values.push_back(Tensor::Scalar<float>(
            static_cast<float>(optimizer::NadamProduct(optimizer.beta_1, updates))));
        break;
      case Kind::kSlot:
        values.push_back(state.slots.at(trained[variable.variable]).at(variable.slot));
        break;
    }
  }
  return values;
}

}  // namespace tfjob::keras
