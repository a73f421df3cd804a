#include "runtime/train/job/compiled_model.h"

#include <sys/stat.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "runtime/config/keys.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/model/apply_layer.h"
#include "runtime/model/keras/compile_config.h"
#include "runtime/model/keras/model_file.h"
#include "runtime/state/snapshot.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/job/batch_columns.h"
#include "runtime/train/job/make_optimizer.h"
#include "runtime/train/model_dir/checkpoint.h"

namespace tfjob::train {
namespace {

class FileValue : public state::StreamedValue {
 public:
  explicit FileValue(keras::PieceReader read) : read_(std::move(read)) {}
  Status Read(int64_t offset, std::span<std::byte> to) const override { return read_(offset, to); }

 private:
  const keras::PieceReader read_;
};

Status TakeObjective(Json compiled, config::TrainingConfig& config) {
  if (!JsonField(compiled)["loss"].present()) return OkStatus();
  if (config.metrics != nullptr) compiled.erase("metrics");
  if (config.weighted_metrics != nullptr) compiled.erase("weighted_metrics");
  ASSIGN_OR_RETURN(const model::Model model, keras::ReadModelFile(config.model.file));
  ASSIGN_OR_RETURN(const Json keys, keras::ObjectiveKeys(compiled, model::OutputNames(model)));
  return config::SetOpenKeys(config, keys);
}

// Returns the optimizer's keys. Adds `instead` to errors: what to change.
StatusOr<Json> OptimizerKeysOr(const Json& compiled, std::string_view instead) {
  StatusOr<Json> keys = keras::OptimizerKeys(compiled);
  if (keys.ok()) return keys;
  return Status(keys.status().code(), StrCat(Message(keys.status()), "; ", instead));
}

Status TakeOptimizer(const Json& compiled, config::TrainingConfig& config) {
  ASSIGN_OR_RETURN(
      Json keys,
      OptimizerKeysOr(compiled, "set optimizer.name and its settings in the training file"));
  const config::OptimizerConfig& given = config.optimizer;
  // A learning rate in the training file also replaces the schedule in model.file.
  if (given.learning_rate || !given.learning_rate_schedule.name.empty())
    keys.erase("learning_rate_schedule");
  // Drop the learning rate, because this schedule specifies all rates itself.
  if (given.learning_rate_schedule.name == "piecewise_constant_decay") keys.erase("learning_rate");
  if (given.clipvalue || given.clipnorm || given.global_clipnorm) {
    for (const char* clipping : {"clipvalue", "clipnorm", "global_clipnorm"}) keys.erase(clipping);
  }
  const Json section = {{"optimizer", std::move(keys)}};
  RETURN_IF_ERROR(config::SetOpenKeys(config, section));
  if (config.model.weights == config.model.file && config.model.optimizer_state.empty())
    config.model.optimizer_state = config.model.file;
  return OkStatus();
}

// Returns the optimizer whose state a file contains: the one that the file names, or else
// `otherwise`.
StatusOr<optimizer::Optimizer> OptimizerIn(const std::optional<Json>& compiled,
                                           const optimizer::Optimizer& otherwise) {
  if (!compiled) return otherwise;
  ASSIGN_OR_RETURN(Json keys, OptimizerKeysOr(*compiled,
                                              "so its state cannot be continued; remove "
                                              "model.optimizer_state"));
  const Json section = {{"optimizer", std::move(keys)}};
  config::TrainingConfig config;
  RETURN_IF_ERROR(config::SetOpenKeys(config, section));
  ASSIGN_OR_RETURN(optimizer::Optimizer made, MakeOptimizer(config.optimizer));
  if (made.kind == otherwise.kind) return made;
  return InvalidArgument("its optimizer is ", optimizer::Name(made.kind),
                         ", but optimizer.name is ", optimizer::Name(otherwise.kind));
}

// The slots of the variables whose names are in `streamed` are streamed.
StatusOr<keras::OptimizerState> ReadState(const std::string& path,
                                          const strategy::ModelDefinition& definition,
                                          const std::set<std::string>& streamed) {
  ASSIGN_OR_RETURN(const std::optional<Json> compiled, keras::ReadCompileConfig(path));
  const auto optimizer = OptimizerIn(compiled, definition.state.optimizer);
  RETURN_IF_ERROR(Annotate(optimizer.status(), path));
  if (!compiled)
    return keras::ReadOptimizerState(path, definition.model, definition.variables, *optimizer,
                                     streamed);
  // The model in the file determines which variables were trained.
  ASSIGN_OR_RETURN(const model::Model model, keras::ReadModelFile(path));
  ASSIGN_OR_RETURN(const auto variables, model::Variables(model, definition.build.features));
  return keras::ReadOptimizerState(path, model, variables, *optimizer, streamed);
}

Status CheckSlot(const state::Variable& variable, const optimizer::Slot& slot, DType dtype,
                 const Shape& shape) {
  if (shape == variable.shape && dtype == variable.dtype) return OkStatus();
  return InvalidArgument("the ", slot.name, " of ", variable.name, " is ", Name(dtype),
                         shape.ToString(), " there, but the variable is ", Name(variable.dtype),
                         variable.shape.ToString());
}

Status TakeSlots(const std::map<std::string, Tensor>& stored, const state::Variable& variable,
                 const std::vector<optimizer::Slot>& slots, state::VariableState& state) {
  for (size_t s = 0; s < slots.size(); ++s) {
    const auto slot = stored.find(slots[s].name);
    if (slot == stored.end()) continue;
    RETURN_IF_ERROR(CheckSlot(variable, slots[s], slot->second.dtype(), slot->second.shape()));
    state.slots[s] = slot->second;
  }
  return OkStatus();
}

Status TakeStreamedSlots(const std::map<std::string, keras::StreamedSlot>& stored,
                         const state::Variable& variable, const std::vector<optimizer::Slot>& slots,
                         state::VariableState& state) {
  for (size_t s = 0; s < slots.size(); ++s) {
    const auto slot = stored.find(slots[s].name);
    if (slot == stored.end()) continue;
    RETURN_IF_ERROR(CheckSlot(variable, slots[s], slot->second.dtype, slot->second.shape));
    state.streamed[1 + s] = StreamedFromFile(slot->second.read);
  }
  return OkStatus();
}

// Returns whether the run scales the loss, as Keras' LossScaleOptimizer does.
bool ScalesLoss(const model::Model& model) {
  return model::HasPolicy(model, model::DTypePolicy::kMixedFloat16);
}

Status TakeLossScale(const keras::OptimizerState& read, const strategy::ModelDefinition& definition,
                     state::Snapshot& snapshot) {
  if (!read.loss_scale || !ScalesLoss(definition.model)) return OkStatus();
  const state::LossScale scale{.scale = read.loss_scale->scale,
                               .good_steps = read.loss_scale->good_steps};
  if (!scale.IsValid()) {
    return InvalidArgument("its LossScaleOptimizer has the scale ", scale.scale, " after ",
                           scale.good_steps, " steps; expected a scale above 0 and at most 2^126, ",
                           "and fewer than ", state::kGoodStepsToGrow, " steps");
  }
  snapshot.loss_scale = scale;
  return OkStatus();
}

// Returns the prefix of the checkpoint if `weights` is a checkpoint that a run has written, and
// otherwise "".
StatusOr<std::string> OwnCheckpoint(const std::string& weights) {
  struct stat info{};
  std::string prefix = weights;
  if (weights.empty()) return prefix;
  if (stat(weights.c_str(), &info) == 0) {
    if (!S_ISDIR(info.st_mode)) return std::string();
    ASSIGN_OR_RETURN(const std::optional<io::Checkpoint> latest, io::LatestCheckpoint(weights));
    if (!latest) return std::string();
    prefix = latest->prefix;
  }
  ASSIGN_OR_RETURN(const auto reader, io::BundleReader::Open(prefix));
  return reader->Has("tfjob/optimizer") ? prefix : std::string();
}

// Returns the state of a variable as Keras continues with it. Keras' files cannot freeze single
// variables, so Keras trains a variable that is frozen by its name, from initial slots.
state::VariableState StateInKeras(const model::VariableSpec& spec, state::Variable variable,
                                  const optimizer::Optimizer& optimizer,
                                  const state::VariableState& state) {
  if (!spec.trainable || spec.trained()) return state;
  variable.update = state::Update::kGradient;
  return state::VariableState::Initial(variable, optimizer, state.value);
}

keras::OptimizerState StateOf(const strategy::ModelDefinition& definition,
                              const state::Snapshot& snapshot) {
  const state::TrainingState& training = definition.state;
  keras::OptimizerState state{.iterations = snapshot.global_step};
  if (ScalesLoss(definition.model)) {
    const state::LossScale scale = snapshot.loss_scale.value_or(state::LossScale());
    state.loss_scale = {.scale = scale.scale, .good_steps = scale.good_steps};
  }
  for (size_t v = 0; v < training.variables.size(); ++v) {
    const state::VariableState own = StateInKeras(definition.variables[v], training.variables[v],
                                                  training.optimizer, snapshot.variables[v]);
    const auto slots = optimizer::Slots(training.optimizer);
    for (size_t s = 0; s < own.slots.size(); ++s)
      state.slots[training.variables[v].name].emplace(slots[s].name, own.slots[s]);
  }
  return state;
}

// Returns the settings of the run, without its state.
StatusOr<std::optional<CompiledRun>> SettingsForKeras(const config::TrainingConfig& config,
                                                      const model::Model& model,
                                                      const optimizer::Optimizer& optimizer) {
  ASSIGN_OR_RETURN(const auto outputs, OutputConfigs(config, model));
  std::vector<Json> keys;
  for (const config::TrainingConfig& output : outputs)
    keys.push_back(config::TrainingConfigToJson(output));
  std::optional<Json> compiled = keras::MakeCompileConfig(keys, optimizer, ScalesLoss(model));
  if (!compiled) return std::nullopt;
  return std::optional<CompiledRun>(
      CompiledRun{std::make_shared<const Json>(*std::move(compiled)), optimizer, std::nullopt});
}

}  // namespace

std::shared_ptr<const state::StreamedValue> StreamedFromFile(keras::PieceReader read) {
  return std::make_shared<FileValue>(std::move(read));
}

StatusOr<config::TrainingConfig> WithCompiledSettings(config::TrainingConfig config) {
  const bool loss = config.loss.name.empty() && config.outputs == nullptr;
  const bool optimizer = config.optimizer.name.empty();
  std::optional<Json> compiled;
  if (!config.model.file.empty() && (loss || optimizer)) {
    ASSIGN_OR_RETURN(compiled, keras::ReadCompileConfig(config.model.file));
  }
  if (compiled && loss)
    RETURN_IF_ERROR(Annotate(TakeObjective(*compiled, config), config.model.file));
  if (compiled && optimizer)
    RETURN_IF_ERROR(Annotate(TakeOptimizer(*compiled, config), config.model.file));
  if (config.optimizer.name.empty()) config.optimizer.name = "sgd";
  return config;
}

Status TakeOptimizerState(const std::string& path, const strategy::ModelDefinition& definition,
                          std::span<const size_t> given, state::Snapshot& snapshot) {
  std::set<std::string> tables;
  for (const size_t v : given) {
    if (!snapshot.variables[v].streamed.empty()) tables.insert(definition.state.variables[v].name);
  }
  ASSIGN_OR_RETURN(const keras::OptimizerState read, ReadState(path, definition, tables));
  snapshot.global_step = read.iterations;
  RETURN_IF_ERROR(Annotate(TakeLossScale(read, definition, snapshot), path));
  if (read.slots.empty() && read.streamed.empty()) return OkStatus();
  for (const size_t v : given) {
    const state::Variable& variable = definition.state.variables[v];
    const auto slots = state::SlotsOf(variable, definition.state.optimizer);
    const auto stored = read.slots.find(variable.name);
    if (slots.empty()) continue;
    if (const auto table = read.streamed.find(variable.name); table != read.streamed.end()) {
      RETURN_IF_ERROR(
          Annotate(TakeStreamedSlots(table->second, variable, slots, snapshot.variables[v]), path));
      continue;
    }
    if (stored == read.slots.end()) {
      return InvalidArgument(path, " has no state of the optimizer for ", variable.name,
                             "; to let the optimizer start afresh, set optimizer.name, but not "
                             "model.optimizer_state");
    }
    RETURN_IF_ERROR(
        Annotate(TakeSlots(stored->second, variable, slots, snapshot.variables[v]), path));
  }
  return OkStatus();
}

StatusOr<std::optional<CompiledRun>> CompileForKeras(const config::TrainingConfig& config,
                                                     const model::Model& model,
                                                     std::span<const model::TensorType> features,
                                                     const std::string& weights) {
  strategy::ModelDefinition definition{.model = model};
  definition.build.features.assign(features.begin(), features.end());
  ASSIGN_OR_RETURN(definition.state.optimizer, MakeOptimizer(config.optimizer));
  RETURN_IF_ERROR(strategy::DefineVariables(definition));
  ASSIGN_OR_RETURN(const std::string checkpoint, OwnCheckpoint(weights));
  if (checkpoint.empty()) return SettingsForKeras(config, model, definition.state.optimizer);
  ASSIGN_OR_RETURN(const state::Snapshot snapshot, LoadCheckpoint(checkpoint, definition.state));
  return CompileForKeras(config, definition, snapshot);
}

StatusOr<std::optional<CompiledRun>> CompileForKeras(const config::TrainingConfig& config,
                                                     const strategy::ModelDefinition& definition,
                                                     const state::Snapshot& snapshot) {
  ASSIGN_OR_RETURN(std::optional<CompiledRun> run,
                   SettingsForKeras(config, definition.model, definition.state.optimizer));
  if (run) run->state = StateOf(definition, snapshot);
  return run;
}

}  // namespace tfjob::train
