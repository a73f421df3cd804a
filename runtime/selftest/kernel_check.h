// Compares the kernels of a device with those of the CPU.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/exec/device.h"
#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/selftest/finding.h"

namespace tfjob::selftest {

// Runs the op twice on the device, whose memory the host cannot access. Returns Internal if a
// result differs from the CPU's by more than the comparison allows, if the results of the two runs
// are not bit-identical, if only one of the devices refuses the inputs, or if the op has written
// outside its operands. If the kernel cannot be prepared, or if the device fails, returns that
// error. In two of four successive seeds, the addresses of the operands are not aligned.
Status CheckKernel(const kernels::cuda::Comparison& comparison, uint64_t seed,
                   const exec::Device& device);

// Checks all kernels of a family with each seed below `seeds`. Returns one finding, which contains
// the first error, if any.
Finding CheckFamily(const kernels::cuda::CaseFamily& family, uint64_t seeds,
                    const exec::Device& device);

}  // namespace tfjob::selftest
