// Creates an optimizer from the `optimizer` section of a training file.
#pragma once

#include "runtime/base/status.h"
#include "runtime/config/training_config.h"
#include "runtime/optimizer/clipping.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::train {

// Creates the optimizer; the default is SGD. Returns InvalidArgument, with a message that names the
// key, for invalid hyperparameters.
StatusOr<optimizer::Optimizer> MakeOptimizer(const config::OptimizerConfig& config);
optimizer::Clipping ClippingOf(const config::OptimizerConfig& config);

}  // namespace tfjob::train
