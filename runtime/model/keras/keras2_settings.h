// Converts the settings of compile() in files of tf.keras 2. Private to this package.
//
// tf.keras 2 has two generations of optimizers. Those of tf.keras.optimizers (since 2.11) compute
// what Keras 3 computes, except Nadam. Those of tf.keras.optimizers.legacy, which are also the only
// ones of older versions, have the setting `decay`, and some of them compute something else.
#pragma once

#include <string>

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::keras {

// Returns whether a version of Keras is 2.x.
bool IsKeras2(const StatusOr<std::string>& version);

// Returns the `optimizer` of compile_config in the form of Keras 3. Returns InvalidArgument, with
// the path of the setting, if Keras 3 lacks a setting or computes it differently. Does not check
// other values.
StatusOr<Json> OptimizerOfKeras2(const JsonField& optimizer);

// Returns the metrics of compile_config (one, a list, or a map) in the form of Keras 3.
StatusOr<Json> MetricsOfKeras2(const JsonField& metrics);

}  // namespace tfjob::keras
