// Converts the settings of Keras' compile() to keys of a training file, and back.
//
// A .keras file stores these settings as `compile_config` in config.json, and an .h5 file stores
// them in the attribute training_config. Sources: keras/src/trainers/trainer.py
// (get_compile_config), keras/src/legacy/saving/saving_utils.py.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::keras {

// Returns the compile() settings of the model in a .keras or .h5 file, in the form of
// compile_config, with the additional member `keras_version`: the functions below also understand
// the settings of tf.keras 2. Returns nullopt if the model was not compiled.
StatusOr<std::optional<Json>> ReadCompileConfig(const std::string& path);

// The defaults of Keras' LossScaleOptimizer.
inline constexpr double kInitialLossScale = 32768;
inline constexpr int64_t kLossScaleGrowthSteps = 2000;

// Returns the `optimizer` section of a training file. For a LossScaleOptimizer, which must have the
// defaults, returns the section of the optimizer inside it. Returns InvalidArgument, with the path
// of the setting, if a setting is not supported, or if an optimizer of tf.keras 2 computes
// something that ours cannot. Does not check values; they are checked when the training file is
// read.
StatusOr<Json> OptimizerKeys(const Json& compile_config);

// Returns the keys `loss`, `loss_weight`, `metrics` and `weighted_metrics` or, if the model has
// several outputs, the key `outputs`. The parameter `outputs` contains the names of the model's
// outputs. The metrics get the names under which Keras reports them. Returns the same errors as
// OptimizerKeys.
StatusOr<Json> ObjectiveKeys(const Json& compile_config, std::span<const std::string> outputs);

// Returns compile_config, or nullopt if Keras has no equivalent of the loss (clipped_crossentropy).
// `keys` contains one element per output: the keys of a training file, with complete `optimizer`
// and `loss` sections. Omits:
//   - metrics that Keras lacks, such as perplexity;
//   - the name that the user chose for the `accuracy` metric, unless it is "acc", because Keras
//     cannot store any other name;
//   - optimizer options that Keras does not save (exclude_from_weight_decay) or does not have
//     (lazy).
// If `scales_loss` is set, the optimizer is inside a LossScaleOptimizer.
std::optional<Json> MakeCompileConfig(std::span<const Json> keys,
                                      const optimizer::Optimizer& optimizer, bool scales_loss);

// Converts compile_config to training_config, the form of the same settings in .h5 files.
Json OlderCompileConfig(const Json& compile_config);

}  // namespace tfjob::keras
