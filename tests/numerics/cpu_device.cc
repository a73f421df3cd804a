#include "tests/numerics/test_device.h"

namespace tfjob {

const exec::Device& TestDevice() {
  static const auto* const kDevice = new exec::Device(exec::CpuDevice());
  return *kDevice;
}

}  // namespace tfjob
