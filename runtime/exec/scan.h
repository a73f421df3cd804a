// Prepares kernels for a program's ops, including Scan, whose kernel runs the kernels of its body.
#pragma once

#include <memory>

#include "runtime/base/status.h"
#include "runtime/exec/device.h"
#include "runtime/kernels/kernel.h"

namespace tfjob::exec {

// Prepares the kernel for the request: the kernel of this package for a Scan (graph/scan.h), or the
// device's kernel for any other op.
//
// The body of a Scan is planned and prepared once. The workspace of the Scan's kernel contains the
// body's memory. Only addresses change from step to step: sequences are read in place, outputs are
// written in place, and a new state is stored separately from the old one.
StatusOr<std::unique_ptr<kernels::Kernel>> PrepareKernel(const kernels::KernelRequest& request,
                                                         const Device& device);

}  // namespace tfjob::exec
