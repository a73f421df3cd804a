// Turns a kernel launch on the fake driver into an operation of the fake device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/device/cuda/fake_driver.h"
#include "runtime/device/fake_runtime.h"

namespace tfjob::device::cuda {

// Returns whether the launch respects the limits of all CUDA GPUs.
bool FitsGpu(const FakeLaunch& launch);

// Returns the operation that runs the kernel. Copies the parameter; the kernel must outlive the
// operation. Each word of the parameter for which `is_address` returns true is treated as an
// address. The fake driver cannot know which bytes a kernel accesses, so it assumes that the kernel
// writes one byte at each address.
Operation OperationOfLaunch(const std::string& name, const FakeKernel& kernel,
                            const FakeLaunch& launch, const std::byte* parameter,
                            const std::function<bool(uint64_t)>& is_address);

}  // namespace tfjob::device::cuda
