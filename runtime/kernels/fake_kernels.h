// Creates kernels for the fake device (device/fake_runtime.h) from kernels for CPUs.
#pragma once

#include <memory>

#include "runtime/device/fake_runtime.h"
#include "runtime/kernels/kernel.h"

namespace tfjob::kernels {

// Returns a table with the same ops as `table`. The new kernels submit the kernels of `table` to
// `runtime` as operations, and access only device memory. After a kernel has failed, kernels that
// were submitted to the same stream later do not run.
KernelTable FakeKernels(const KernelTable& table, std::shared_ptr<device::FakeRuntime> runtime);

}  // namespace tfjob::kernels
