// Prepares kernels, and Scan, which is a kernel that runs the kernels of its body.
#pragma once

#include <memory>

#include "runtime/base/status.h"
#include "runtime/exec/device.h"
#include "runtime/kernels/kernel.h"

namespace tfjob::exec {

// Prepares the device's kernel for the request, or a Scan (graph/scan.h).
//
// The body of a Scan is planned and prepared once. Its memory is the kernel's workspace. In each
// step, only addresses change: a sequence is read and an output is written in place, and a new
// state is written beside the old one.
StatusOr<std::unique_ptr<kernels::Kernel>> PrepareKernel(const kernels::KernelRequest& request,
                                                         const Device& device);

}  // namespace tfjob::exec
