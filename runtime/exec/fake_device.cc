#include "runtime/exec/fake_device.h"

#include "runtime/device/fake_runtime.h"
#include "runtime/kernels/fake_kernels.h"

namespace tfjob::exec {

Device FakeDevice(uint64_t seed, ThreadPool* pool) {
  Device device = CpuDevice(pool);
  const auto runtime = device::FakeRuntime::Create({.seed = seed});
  device.name = "/device:FAKE:0";
  device.kernels =
      std::make_shared<const kernels::KernelTable>(kernels::FakeKernels(*device.kernels, runtime));
  device.runtime = runtime;
  device.for_tests = true;
  return device;
}

}  // namespace tfjob::exec
