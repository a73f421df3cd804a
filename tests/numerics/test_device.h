// Declares the device on which the tests of this folder run. Each test is linked twice: with
// cpu_device.cc, and with fake_device.cc.
#pragma once

#include "runtime/exec/device.h"
#include "runtime/variables/variable_store.h"

namespace tfjob {

// Returns the same device every time.
const exec::Device& TestDevice();

// Returns an empty store on that device, for variables whose rows have no padding.
inline variables::VariableStore TestStore() {
  return variables::VariableStore(variables::DenseRowStride, TestDevice().runtime);
}

}  // namespace tfjob
