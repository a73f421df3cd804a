// Declares the device that the tests in this folder run on. Each test is linked twice, with
// cpu_device.cc and with fake_device.cc.
#pragma once

#include "runtime/exec/device.h"
#include "runtime/variables/variable_store.h"

namespace tfjob {

// Returns the same device on every call.
const exec::Device& TestDevice();

// Returns an empty store on this device. The rows of its variables have no padding.
inline variables::VariableStore TestStore() {
  return variables::VariableStore(variables::DenseRowStride, TestDevice().runtime);
}

}  // namespace tfjob
