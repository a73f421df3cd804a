// Lists the tensors that take the most memory in a program, for error messages.
#pragma once

#include <string>

#include "runtime/exec/plan.h"

namespace tfjob::exec {

// Returns the five largest tensors that the plan keeps in the arena, largest first: "dense/MatMul
// float32[32,512] (65536 bytes), …". These tensors are not necessarily in use at the same time.
std::string LargestTensors(const Plan& plan);

}  // namespace tfjob::exec
