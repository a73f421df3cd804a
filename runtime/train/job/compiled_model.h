// Reads and writes the settings of compile() and the state of the optimizer in files of Keras.
// Training needs these in addition to the model and its weights.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/config/training_config.h"
#include "runtime/model/keras/optimizer_state.h"
#include "runtime/model/model.h"

namespace tfjob::state {
class StreamedValue;
struct Snapshot;
}  // namespace tfjob::state
namespace tfjob::strategy {
struct ModelDefinition;
}  // namespace tfjob::strategy

namespace tfjob::train {

// Returns the config, with missing settings taken from model.file:
//   loss         if the config names no loss: the loss and the loss weights, and also the metrics
//                if the config names none
//   optimizer    if the config names no optimizer: the optimizer with its hyperparameters, except
//                for those that the config sets. If model.weights is the same file, training also
//                continues with the optimizer's state (model.optimizer_state)
// If neither the config nor model.file names an optimizer, the optimizer is SGD. Reads model.file
// only if the config lacks one of these settings. Error messages name the file and the setting.
StatusOr<config::TrainingConfig> WithCompiledSettings(config::TrainingConfig config);

// Returns a value that is read from its file when it is needed.
std::shared_ptr<const state::StreamedValue> StreamedFromFile(keras::PieceReader read);

// Replaces the slots and the step of the snapshot with the slots and the step of the Keras
// optimizer in the file. `given` are the variables whose values come from a file. The slots of all
// other variables keep their initial values, and so do slots that the optimizer in the file does
// not have. Returns InvalidArgument if keras::ReadOptimizerState does, or if the state belongs to
// another kind of optimizer or to another model.
Status TakeOptimizerState(const std::string& path, const strategy::ModelDefinition& definition,
                          std::span<const size_t> given, state::Snapshot& snapshot);

// The settings and the state that Keras continues a run with.
struct CompiledRun {
  std::shared_ptr<const Json> compile_config;
  optimizer::Optimizer optimizer;
  std::optional<keras::OptimizerState> state;  // nullopt if the weights are not from a checkpoint
};

// Return nullopt if Keras does not have the loss. In the first form, `weights` is a folder with
// checkpoints, the prefix of a checkpoint, or another weights file; this form also returns errors
// from LoadCheckpoint. In the second form, the state is taken from `snapshot`.
StatusOr<std::optional<CompiledRun>> CompileForKeras(const config::TrainingConfig& config,
                                                     const model::Model& model,
                                                     std::span<const model::TensorType> features,
                                                     const std::string& weights);
StatusOr<std::optional<CompiledRun>> CompileForKeras(const config::TrainingConfig& config,
                                                     const strategy::ModelDefinition& definition,
                                                     const state::Snapshot& snapshot);

}  // namespace tfjob::train
