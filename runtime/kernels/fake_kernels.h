// Makes kernels for the fake device (device/fake_runtime.h) out of kernels for CPUs.
#pragma once

#include <memory>

#include "runtime/device/fake_runtime.h"
#include "runtime/kernels/kernel.h"

namespace tfjob::kernels {

// Returns a table with the ops of `table`. Its kernels submit those of `table` to `runtime` as
// operations, and access only device memory. After a kernel fails, kernels that were submitted
// later to the same stream do not run.
KernelTable FakeKernels(const KernelTable& table, std::shared_ptr<device::FakeRuntime> runtime);

}  // namespace tfjob::kernels
