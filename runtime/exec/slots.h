// Finds or creates an optimizer's slots in the variable store.
#pragma once

#include <vector>

#include "runtime/base/status.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/variables/variable_store.h"

namespace tfjob::exec {

// Returns the slots "<variable>/<suffix>" in the order of optimizer::Slots. Creates each missing
// slot with its initial value. Returns InvalidArgument if the name of a slot belongs to a variable
// of a different kind, dtype or shape, or if `variable` is neither float32 nor float64.
StatusOr<std::vector<variables::Variable*>> FindOrCreateSlots(const optimizer::Optimizer& optimizer,
                                                              const variables::Variable& variable,
                                                              variables::VariableStore& store);

}  // namespace tfjob::exec
