#include "runtime/exec/cuda_device.h"

#include <gtest/gtest.h>

#include "runtime/device/cuda/fake_blas.h"
#include "runtime/device/cuda/fake_driver.h"

namespace tfjob::exec {
namespace {

constexpr std::byte kImage[4] = {};
constexpr std::span<const std::byte> kImages[] = {kImage};

TEST(CudaDevice, AGpuThatIsTooOldIsRefused) {
  const auto& driver = device::cuda::FakeDriver({.gpus = {{.name = "V100", .compute_major = 7}}});
  EXPECT_EQ(Message(MakeCudaDevice({driver, device::cuda::FakeBlas(), kImages}).status()),
            "V100 (GPU 0, compute capability 7.0) is too old: this program needs compute "
            "capability 8.0 or newer");
}

TEST(CudaDevice, AnImageWithoutAKernelIsRefused) {
  const auto& driver = device::cuda::FakeDriver({});
  EXPECT_EQ(MakeCudaDevice({driver, device::cuda::FakeBlas(), kImages}).status(),
            NotFound("this program contains no CUDA kernel AddQuads"));
}

// The error depends on the machine, because "cuda" and "auto" ask the real driver.
TEST(DeviceByName, AutomaticallyTakesTheCpuAndTellsWhy) {
  const Status no_gpu = DeviceByName("cuda").status();
  EXPECT_FALSE(no_gpu.ok());
  const StatusOr<Device> device = DeviceByName("auto");
  ASSERT_TRUE(device.ok()) << device.status();
  EXPECT_EQ(device->name, "/device:CPU:0");
  EXPECT_EQ(device->reason, Message(no_gpu));
  EXPECT_EQ(DeviceByName("cpu")->reason, "");
}

}  // namespace
}  // namespace tfjob::exec
