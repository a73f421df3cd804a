// The C++ API: models, training, evaluation and prediction. docs/guides/cpp-api.md explains it.
#pragma once

#include "arguments.h"
#include "batch.h"
#include "callback.h"
#include "dataset.h"
#include "estimator.h"
#include "function.h"
#include "layer.h"
#include "layers.h"
#include "losses.h"
#include "metrics.h"
#include "model.h"
#include "ops.h"
#include "optimizer.h"
#include "optimizers.h"
#include "session.h"
#include "status.h"
#include "strategy.h"
#include "tensor.h"

// The library's own code uses other types of the same names in the namespace tfjob, so the API has
// a namespace of its own, whose names users find here.
namespace tfjob {
using namespace api;  // NOLINT
}  // namespace tfjob
