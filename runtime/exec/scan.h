// Prepares kernels. Implements Scan, whose kernel runs the kernels of its body.
#pragma once

#include <memory>

#include "runtime/base/status.h"
#include "runtime/exec/device.h"
#include "runtime/kernels/kernel.h"

namespace tfjob::exec {

// Prepares the kernel for the request: for a Scan (graph/scan.h) the kernel of this package, and
// for any other op the device's kernel.
//
// The body of a Scan is planned and prepared once. The workspace of the Scan's kernel contains the
// body's memory. From step to step, only addresses change: a sequence is read in place, an output
// is written in place, and a new state is written next to the old state.
StatusOr<std::unique_ptr<kernels::Kernel>> PrepareKernel(const kernels::KernelRequest& request,
                                                         const Device& device);

}  // namespace tfjob::exec
