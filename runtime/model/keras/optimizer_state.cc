#include "runtime/model/keras/optimizer_state.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "runtime/io/hdf5_file.h"
#include "runtime/model/keras/archive.h"
#include "runtime/model/keras/keras2_settings.h"
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

enum class Generation {
  kKeras3,
  kKeras2,  // tf.keras.optimizers of tf.keras 2.11 and newer
  kLegacy,  // tf.keras.optimizers.legacy, and all optimizers of older versions
};

// Lists the datasets of an optimizer's variables, in Keras' order.
struct StoredOptimizer {
  std::shared_ptr<const io::Hdf5File> file;
  std::vector<std::string> paths;  // empty if the optimizer has not created its variables
  Generation generation = Generation::kKeras3;
};

// Returns the last part of a variable's name in a file of tf.keras 2: "m" for "Adam/a/kernel/m:0".
std::string_view LastPart(std::string_view name) {
  name = name.substr(0, name.rfind(':'));
  return name.substr(name.rfind('/') + 1);  // npos + 1 is 0
}

// Returns which optimizer of tf.keras 2 has these variables.
Generation GenerationOf(std::span<const std::string> names) {
  const bool legacy = !names.empty() && LastPart(names[0]) == "iter";
  return legacy ? Generation::kLegacy : Generation::kKeras2;
}

StatusOr<StoredOptimizer> OpenOptimizer(const std::string& path) {
  ASSIGN_OR_RETURN(const FileFormat format, FormatOf(path));
  if (format != FileFormat::kArchive && format != FileFormat::kHdf5)
    return InvalidArgument(path, ": expected a .keras or .h5 file");
  StoredOptimizer stored;
  bool keras2 = false, untrained = false;
  if (format == FileFormat::kArchive) {
    ASSIGN_OR_RETURN(const Json config, ReadArchiveConfig(path));
    keras2 = IsKeras2(JsonField(config)["keras_version"].String());
    ASSIGN_OR_RETURN(stored.file, ReadArchiveWeights(path));
  } else {
    ASSIGN_OR_RETURN(stored.file, io::Hdf5File::Open(path));
    keras2 = IsKeras2(stored.file->Text("", "keras_version"));
    // An optimizer of tf.keras 2 without variables in a compiled .h5 file has taken no step. In a
    // .keras file, the variables of legacy optimizers are missing in any case.
    untrained = keras2 && stored.file->Text("", "training_config").ok();
  }
  const auto names = stored.file->Texts("optimizer_weights", "weight_names");
  if (names.ok()) {
    for (const std::string& name : *names)
      stored.paths.push_back(StrCat("optimizer_weights/", name));
  } else {
    for (size_t i = 0; stored.file->datasets().contains(StrCat("optimizer/vars/", i)); ++i)
      stored.paths.push_back(StrCat("optimizer/vars/", i));
  }
  if (stored.paths.empty() && !untrained) {
    return InvalidArgument(path, " has no state of an optimizer; to let the optimizer start ",
                           "afresh, set optimizer.name, but not model.optimizer_state, in the ",
                           "training file or, in the API, use Model::Load and compile the model");
  }
  if (keras2) stored.generation = GenerationOf(stored.paths);
  return stored;
}

StatusOr<int64_t> ReadSteps(const StoredOptimizer& stored, const std::string& path) {
  ASSIGN_OR_RETURN(const Tensor tensor, stored.file->Read(path));
  int64_t steps = -1;
  if (tensor.shape().num_elements() == 1 && tensor.dtype() == DType::kInt64)
    steps = tensor.data<int64_t>()[0];
  if (tensor.shape().num_elements() == 1 && tensor.dtype() == DType::kInt32)
    steps = tensor.data<int32_t>()[0];
  // Limits the number of steps: a double cannot represent every integer above this limit.
  constexpr int64_t kMostSteps = int64_t{1} << 53;
  if (steps >= 0 && steps <= kMostSteps) return steps;
  return InvalidArgument(stored.file->name(), ": ", path,
                         ": expected a number of steps from 0 to 2^53");
}

// Returns whether the dataset is an integer scalar.
bool IsCount(const StoredOptimizer& stored, const std::string& path) {
  const auto found = stored.file->datasets().find(path);
  return found != stored.file->datasets().end() && found->second.shape.num_elements() == 1 &&
         (found->second.dtype == DType::kInt32 || found->second.dtype == DType::kInt64);
}

// If the variables are those of a LossScaleOptimizer, reads its state, and removes its variables
// from `stored.paths`. The third variable is then an integer: step_counter or, if the optimizer has
// not taken a step, the inner optimizer's number of steps. The third variable of any other
// optimizer is a slot.
StatusOr<std::optional<StoredLossScale>> TakeLossScale(StoredOptimizer& stored) {
  std::optional<StoredLossScale> loss_scale;
  std::vector<std::string>& paths = stored.paths;
  if (stored.generation != Generation::kKeras3 || paths.size() < 3 || !IsCount(stored, paths[2]))
    return loss_scale;
  constexpr std::ptrdiff_t kUntrained = 2;  // there is no step_counter and no scale
  std::ptrdiff_t own = kUntrained;
  if (paths.size() > 4) {
    own = std::ssize(kLossScaleVariables);
    ASSIGN_OR_RETURN(const Tensor scale, stored.file->Read(paths[3]));
    if (scale.dtype() != DType::kFloat32 || scale.shape().num_elements() != 1)
      return InvalidArgument(stored.file->name(), ": ", paths[3], ": expected a float32 scalar");
    ASSIGN_OR_RETURN(const int64_t good_steps, ReadSteps(stored, paths[2]));
    loss_scale = {.scale = scale.data<float>()[0], .good_steps = good_steps};
  }
  paths.erase(paths.begin(), paths.begin() + own);
  return loss_scale;
}

Status CheckSlot(const StoredOptimizer& stored, const std::string& path,
                 const model::VariableSpec& variable, const std::string& slot) {
  const auto found = stored.file->datasets().find(path);
  if (found == stored.file->datasets().end())
    return InvalidArgument(stored.file->name(), ": ", path, " is missing");
  if (found->second.dtype == variable.dtype && found->second.shape == variable.shape)
    return OkStatus();
  return InvalidArgument(stored.file->name(), ": ", path, ", the ", slot, " of ", variable.name,
                         ", is ", found->second.stored, found->second.shape.ToString(), ", but ",
                         variable.name, " is ", Name(variable.dtype), variable.shape.ToString());
}

// Returns the name of a slot in a legacy optimizer.
std::string_view LegacyName(optimizer::Kind kind, std::string_view slot) {
  struct Renamed {
    std::string_view slot, legacy;
  };
  constexpr Renamed kOfAdam[] = {
      {"momentum", "m"}, {"velocity", "v"}, {"velocity_hat", "vhat"}, {"norm", "v"}};
  constexpr Renamed kOfOthers[] = {{"velocity", "rms"},
                                   {"average_gradient", "mg"},
                                   {"accumulated_grad", "accum_grad"},
                                   {"accumulated_delta_var", "accum_var"}};
  const bool adam = kind == optimizer::Kind::kAdam || kind == optimizer::Kind::kAdamax;
  for (const auto& [name, legacy] : adam ? std::span<const Renamed>(kOfAdam) : kOfOthers) {
    if (name == slot) return legacy;
  }
  return slot;
}

// Returns the paths of a legacy optimizer's variables, in the order of `expected`. Most legacy
// optimizers write one slot of all variables after the other. Returns InvalidArgument if the file
// contains variables other than those expected.
StatusOr<std::vector<std::string>> LegacyPaths(const StoredOptimizer& stored, optimizer::Kind kind,
                                               std::span<const OptimizerVariable> expected) {
  std::map<std::string, std::vector<std::string>, std::less<>> slots;
  for (const std::string& path : std::span(stored.paths).subspan(1))
    slots[std::string(LastPart(path))].push_back(path);
  std::vector<std::string> paths = {stored.paths[0]};
  for (const OptimizerVariable& variable : expected.subspan(1)) {
    const std::string_view name = LegacyName(kind, variable.slot);
    const auto found = slots.find(name);
    if (found == slots.end() || variable.variable >= found->second.size()) {
      return InvalidArgument(stored.file->name(), ": its optimizer has no ", name,
                             " of trained variable ", variable.variable + 1, ", unlike ",
                             optimizer::Name(kind), " for this model");
    }
    paths.push_back(found->second[variable.variable]);
  }
  return paths;
}

// Returns which variables the file should contain, and sets `stored.paths` to the paths of these
// variables. Returns InvalidArgument if the file contains others.
StatusOr<std::vector<OptimizerVariable>> MatchVariables(const optimizer::Optimizer& optimizer,
                                                        size_t trained, StoredOptimizer& stored) {
  auto expected = OptimizerVariables(optimizer, trained);
  size_t unused = 0;
  if (stored.generation != Generation::kKeras3) {
    // tf.keras 2 does not save the learning rate as a variable.
    std::erase_if(expected,
                  [](const auto& variable) { return variable.kind == Kind::kLearningRate; });
    // Without momentum, SGD of tf.keras 2.11 and newer saves a slot that it does not use.
    if (stored.generation == Generation::kKeras2 && optimizer.kind == optimizer::Kind::kSgd &&
        optimizer.momentum == 0 && stored.paths.size() == expected.size() + trained)
      unused = trained;
  }
  if (stored.paths.size() != expected.size() + unused) {
    return InvalidArgument(stored.file->name(), ": its optimizer has ", stored.paths.size(),
                           " variables, but ", optimizer::Name(optimizer.kind), " has ",
                           expected.size(), " for this model");
  }
  if (stored.generation == Generation::kLegacy) {
    ASSIGN_OR_RETURN(stored.paths, LegacyPaths(stored, optimizer.kind, expected));
  }
  return expected;
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
                                            const optimizer::Optimizer& optimizer,
                                            const std::set<std::string>& streamed) {
  ASSIGN_OR_RETURN(StoredOptimizer stored, OpenOptimizer(path));
  const std::vector<std::string> trained = TrainedVariables(model, variables);
  OptimizerState state;
  if (stored.paths.empty()) return state;
  ASSIGN_OR_RETURN(state.loss_scale, TakeLossScale(stored));
  ASSIGN_OR_RETURN(state.iterations, ReadSteps(stored, stored.paths[0]));
  // A model that was compiled but never trained has no slots.
  if (state.iterations == 0 && stored.paths.size() <= 2) return state;
  ASSIGN_OR_RETURN(const auto expected, MatchVariables(optimizer, trained.size(), stored));
  for (size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].kind != Kind::kSlot) continue;
    const std::string& name = trained[expected[i].variable];
    const auto variable = std::ranges::find(variables, name, &model::VariableSpec::name);
    const std::string& path_of_slot = stored.paths[i];
    RETURN_IF_ERROR(CheckSlot(stored, path_of_slot, *variable, expected[i].slot));
    if (streamed.contains(name)) {
      const auto read = [file = stored.file, path_of_slot](int64_t offset,
                                                           std::span<std::byte> to) {
        return file->ReadPiece(path_of_slot, offset, to);
      };
      state.streamed[name].emplace(expected[i].slot,
                                   StreamedSlot{variable->dtype, variable->shape, read});
    } else {
      ASSIGN_OR_RETURN(Tensor slot, stored.file->Read(path_of_slot));
      state.slots[name].emplace(expected[i].slot, std::move(slot));
    }
  }
  return state;
}

std::vector<Tensor> LossScaleValues(const StoredLossScale& loss_scale) {
  return {Tensor::Scalar<int64_t>(0), Tensor::Scalar<float>(0),
          Tensor::Scalar<int64_t>(loss_scale.good_steps),
          Tensor::Scalar<float>(static_cast<float>(loss_scale.scale))};
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
