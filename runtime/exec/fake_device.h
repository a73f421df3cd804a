// Defines the fake device (device/fake_runtime.h). It runs the kernels for CPUs, but late, and on
// memory that the host cannot access. It computes the same numbers as the CPU, but more slowly.
#pragma once

#include <cstdint>

#include "runtime/exec/device.h"

namespace tfjob::exec {

// Returns a new device with its own memory. `seed` determines the order of its operations.
Device FakeDevice(uint64_t seed, ThreadPool* pool = nullptr);

}  // namespace tfjob::exec
