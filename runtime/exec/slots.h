// An optimizer's slots in the store of variables.
#pragma once

#include <vector>

#include "runtime/base/status.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::exec {

// The slots "<variable>/<suffix>" in the order of optimizer::Slots, each created with its initial
// value unless it is there. InvalidArgument when something else has the name.
StatusOr<std::vector<variables::Variable*>> FindOrCreateSlots(const optimizer::Optimizer& optimizer,
                                                              const variables::Variable& variable,
                                                              variables::VariableStore& store);

}  // namespace tfjob::exec
