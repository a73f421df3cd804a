// Provides GPUs for tests. Their kernels run on the emulator, and the fake library
// (device/cuda/fake_blas.h) computes their matrix products. The shadow (emulator/shadow.h) checks
// every access to device memory by kernels, copies and products. Only one of these GPUs may be in
// use at a time.
#pragma once

#include <cstdint>
#include <functional>

#include "runtime/device/cuda/fake_blas.h"
#include "runtime/device/cuda/fake_driver.h"
#include "runtime/kernels/cuda/table.h"

namespace tfjob::kernels::cuda {

// Returns a launcher that runs kernels immediately, on EmulatedMemory. The seed determines the
// order of their threads.
Launcher EmulatorLauncher(uint64_t seed);

// Returns a GPU that computes immediately, on EmulatedMemory, and needs no device stream. `change`,
// if set, may replace functions of the library.
GpuAccess EmulatedGpu(uint64_t seed,
                      const std::function<void(device::cuda::BlasApi&)>& change = {});

// Describe a machine with all kernels of emulated_kernels.cc. The machine's driver and library run
// operations late, in an order that the seed determines. The process aborts with a message if the
// emulator reports a defect.
device::cuda::FakeMachine EmulatedMachine(uint64_t seed);
device::cuda::FakeBlasOptions EmulatedBlas();

}  // namespace tfjob::kernels::cuda
