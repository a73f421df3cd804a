// Includes the whole C++ API: models, training, evaluation and prediction. docs/guides/cpp-api.md
// is the guide.
#pragma once

#include "arguments.h"
#include "batch.h"
#include "callback.h"
#include "custom_layer.h"
#include "custom_loss.h"
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

// The API is declared in tfjob::api, because the library's internal types in tfjob have the same
// names. This using-directive lets programs write tfjob::Model nevertheless.
namespace tfjob {
using namespace api;  // NOLINT
}  // namespace tfjob
