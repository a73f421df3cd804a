// Compares kernels of a device with those of the CPU.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/exec/device.h"
#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/selftest/finding.h"

namespace tfjob::selftest {

// Runs the op twice on the device, whose memory the host cannot access. Returns Internal if a
// result differs from the CPU's by more than the comparison allows, if the two runs do not have the
// same bits, or if the op has written outside its operands. Returns the error of a kernel that
// cannot be prepared, or of the device.
Status CheckKernel(const kernels::cuda::Comparison& comparison, uint64_t seed,
                   const exec::Device& device);

// Checks all kernels of a family with each seed below `seeds`. Returns one finding, which contains
// the first error.
Finding CheckFamily(const kernels::cuda::CaseFamily& family, uint64_t seeds,
                    const exec::Device& device);

}  // namespace tfjob::selftest
