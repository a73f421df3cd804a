// Provides GPUs for tests: their kernels run on the emulator, and their matrix products in the fake
// library (device/cuda/fake_blas.h). In both forms, the shadow checks every access by kernels,
// copies and products to device memory. Only one of the GPUs may be in use at a time.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/device/cuda/fake_blas.h"
#include "runtime/device/cuda/fake_driver.h"
#include "runtime/kernels/cuda/table.h"

namespace tfjob::kernels::cuda {

// Returns a launcher that runs kernels at once, on EmulatedMemory. The seed chooses the order of
// their threads.
Launcher EmulatorLauncher(uint64_t seed);

// Returns a GPU that computes at once, on EmulatedMemory. It needs no stream of a device. `change`
// may replace functions of the library; an empty one replaces none.
GpuAccess EmulatedGpu(uint64_t seed,
                      const std::function<void(device::cuda::BlasApi&)>& change = {});

// Describe a machine with all kernels of emulated_kernels.cc, whose driver and library compute
// late, in an order that the seed chooses. The process ends with a message if the emulator reports
// something.
device::cuda::FakeMachine EmulatedMachine(uint64_t seed);
device::cuda::FakeBlasOptions EmulatedBlas();

}  // namespace tfjob::kernels::cuda
