#include "runtime/exec/emulated_cuda_device.h"

#include <span>

#include "runtime/base/check.h"
#include "runtime/exec/cuda_device.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"

namespace tfjob::exec {

Device EmulatedCudaDevice(uint64_t seed) {
  static constexpr std::byte kImage[4] = {};  // the fake driver does not read it
  static constexpr std::span<const std::byte> kImages[] = {kImage};
  StatusOr<Device> device =
      MakeCudaDevice({device::cuda::FakeDriver(kernels::cuda::EmulatedMachine(seed)),
                      device::cuda::FakeBlas(kernels::cuda::EmulatedBlas()), kImages});
  ENFORCE(device.ok(), Message(device.status()));
  device->for_tests = true;
  return *std::move(device);
}

}  // namespace tfjob::exec
