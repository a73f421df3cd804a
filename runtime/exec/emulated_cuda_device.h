// Provides a CUDA device for tests. NVIDIA's driver and cuBLASLt are replaced by fakes, and the
// kernels run on the emulator (kernels/cuda/emulated/emulated_gpu.h). The process aborts with a
// message if a program breaks a rule of the device.
#pragma once

#include <cstdint>

#include "runtime/exec/device.h"

namespace tfjob::exec {

// Returns a new device. `seed` determines the order in which it runs operations and the threads of
// kernels. No object of an earlier device may still be in use.
Device EmulatedCudaDevice(uint64_t seed);

}  // namespace tfjob::exec
