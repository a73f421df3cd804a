// Places a plan's constants in memory that a device's kernels can read.
#pragma once

#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/device_runtime.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::exec {

// Returns the memory of each constant: the constant's own memory if the device is immediate,
// otherwise a copy.
StatusOr<std::vector<device::Memory>> PlaceConstants(const std::vector<Tensor>& constants,
                                                     device::DeviceRuntime& runtime);

}  // namespace tfjob::exec
