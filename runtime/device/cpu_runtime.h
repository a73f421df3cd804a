// Makes the host's processors available as a device. All kinds of memory are host memory, and every
// operation runs immediately, on the thread that submits it.
#pragma once

#include <memory>

#include "runtime/device/device_runtime.h"

namespace tfjob::device {

// Returns the runtime. Every call returns the same object, which exists until the process exits.
std::shared_ptr<DeviceRuntime> CpuRuntime();

}  // namespace tfjob::device
