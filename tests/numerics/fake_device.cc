#include "runtime/exec/fake_device.h"

#include "tests/numerics/test_device.h"

namespace tfjob {

const exec::Device& TestDevice() {
  static const auto* const kDevice = new exec::Device(exec::FakeDevice(/*seed=*/5));
  return *kDevice;
}

}  // namespace tfjob
