// Provides a CUDA device for tests. NVIDIA's driver and cuBLASLt are replaced by fakes, and the
// kernels run on the emulator (kernels/cuda/emulated/emulated_gpu.h). The process aborts with a
// message if a program breaks a rule of the device.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/device/cuda/fake_driver.h"
#include "runtime/exec/device.h"

namespace tfjob::exec {

// Returns a new device. `seed` determines the order in which it runs operations and the threads of
// kernels. `change`, if set, may change the machine that is simulated. No object of an earlier
// device may still be in use.
Device EmulatedCudaDevice(uint64_t seed,
                          const std::function<void(device::cuda::FakeMachine&)>& change = {});

// Returns the GPUs of a new machine that has this number of them, for tests in which every thread
// stands for a process that uses one of them.
std::vector<Device> EmulatedCudaDevices(uint64_t seed, int count);

}  // namespace tfjob::exec
