// Records in a checkpoint which optimizer wrote the slots, and what each slot means: "RMSprop
// velocity=RMSProp momentum=RMSProp_1". Without this record, some suffixes are ambiguous: RMSProp_1
// is the average gradient if RMSprop is centered, and otherwise the momentum. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/state/training_state.h"

namespace tfjob::train {

std::string RecordSlots(const optimizer::Optimizer& optimizer);

// Returns the suffix under which a checkpoint with this record stores the slot, or nullopt if the
// checkpoint has no slot with this meaning. If there is no record (""), as in checkpoints that
// TensorFlow has written, returns the slot's own suffix. A damaged record yields nullopt or an
// arbitrary suffix.
std::optional<std::string> RecordedSuffix(std::string_view record,
                                          const optimizer::Optimizer& optimizer,
                                          const optimizer::Slot& slot);

}  // namespace tfjob::train
