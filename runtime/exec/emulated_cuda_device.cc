#include "runtime/exec/emulated_cuda_device.h"

#include <span>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/exec/cuda_device.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"

namespace tfjob::exec {
namespace {

Device EmulatedDevice(const device::cuda::DriverApi& driver, const device::cuda::BlasApi& blas,
                      int number) {
  static constexpr std::byte kImage[4] = {};  // the fake driver does not read it
  static constexpr std::span<const std::byte> kImages[] = {kImage};
  StatusOr<Device> device = MakeCudaDevice({driver, blas, kImages}, {.process = number});
  ENFORCE(device.ok(), Message(device.status()));
  device->for_tests = true;
  return *std::move(device);
}

}  // namespace

Device EmulatedCudaDevice(uint64_t seed,
                          const std::function<void(device::cuda::FakeMachine&)>& change) {
  device::cuda::FakeMachine machine = kernels::cuda::EmulatedMachine(seed);
  if (change) change(machine);
  const device::cuda::DriverApi& driver = device::cuda::FakeDriver(std::move(machine));
  return EmulatedDevice(driver, device::cuda::FakeBlas(kernels::cuda::EmulatedBlas()), 0);
}

std::vector<Device> EmulatedCudaDevices(uint64_t seed, int count) {
  device::cuda::FakeMachine machine = kernels::cuda::EmulatedMachine(seed);
  machine.gpus.resize(static_cast<size_t>(count));
  machine.threads_are_processes = true;
  const device::cuda::DriverApi& driver = device::cuda::FakeDriver(std::move(machine));
  const device::cuda::BlasApi& blas = device::cuda::FakeBlas(kernels::cuda::EmulatedBlas());
  std::vector<Device> devices;
  for (int number = 0; number < count; ++number)
    devices.push_back(EmulatedDevice(driver, blas, number));
  return devices;
}

}  // namespace tfjob::exec
