// Groups the updates of small variables. On a GPU, launching a kernel takes longer than updating a
// small variable, so one launch updates many variables.
#pragma once

#include <cstddef>

#include "runtime/exec/plan.h"

namespace tfjob::exec {

// The updates of a group wait for the last of them, so their gradients must be kept until then.
// Larger gradients are applied immediately, and a group ends before its gradients exceed the total.
inline constexpr size_t kMostGroupedGradient = size_t{4} << 20;
inline constexpr size_t kMostGroupedGradients = size_t{32} << 20;

// Replaces ApplyOptimizer steps that have the same optimizer and the same step number with
// ApplyOptimizers steps (kernels/ops.md), which the device must have. An update moves towards the
// end of the program, but not past a step that accesses its variable or slots, or that overwrites
// its gradient.
void GroupUpdates(Plan& plan);

}  // namespace tfjob::exec
