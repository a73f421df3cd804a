// Translates the settings of Keras' compile() into keys of a training file, and back.
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

// Returns the settings with which the model in a .keras or .h5 file is compiled, in the form of
// compile_config. Returns nullopt if the model is not compiled, or if tf.keras 2 wrote the file.
StatusOr<std::optional<Json>> ReadCompileConfig(const std::string& path);

// Returns the `optimizer` section of a training file. Returns InvalidArgument, with the path of the
// setting, if a setting is not supported. Does not check the values; the reader of training files
// does.
StatusOr<Json> OptimizerKeys(const Json& compile_config);

// Returns the keys `loss`, `loss_weight`, `metrics` and `weighted_metrics` or, if the model has
// several outputs, the key `outputs`. The parameter `outputs` contains the names of the model's
// outputs. Metrics have the names under which Keras reports them. Returns the same errors as
// OptimizerKeys.
StatusOr<Json> ObjectiveKeys(const Json& compile_config, std::span<const std::string> outputs);

// Returns compile_config, or nullopt if Keras lacks the loss (clipped_crossentropy). `keys`
// contains, for each output, the keys of a training file with complete sections `optimizer` and
// `loss`. Leaves out:
//   - metrics that Keras lacks, such as perplexity;
//   - the user's name for the `accuracy` metric, unless it is "acc": Keras cannot store other
//     names;
//   - options of the optimizer that Keras does not save (exclude_from_weight_decay) or lacks
//     (lazy).
std::optional<Json> MakeCompileConfig(std::span<const Json> keys,
                                      const optimizer::Optimizer& optimizer);

// Returns training_config, the form of .h5 files, with the same contents.
Json OlderCompileConfig(const Json& compile_config);

}  // namespace tfjob::keras
