#include "runtime/exec/cuda_device.h"

#include <gmock/gmock.h>
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

TEST(CudaDevice, ProcessesTakeTurnsWithTheGpus) {
  const auto& driver = device::cuda::FakeDriver(
      {.gpus = {{.name = "first", .compute_major = 7}, {.name = "second", .compute_major = 7}}});
  const auto described = [&](int process) {
    return std::string(
        Message(MakeCudaDevice({driver, device::cuda::FakeBlas(), kImages}, {.process = process})
                    .status()));
  };
  EXPECT_THAT(described(0), testing::StartsWith("first (GPU 0,"));
  EXPECT_THAT(described(1), testing::StartsWith("second (GPU 1,"));
  EXPECT_THAT(described(2), testing::StartsWith("first (GPU 0,"));
  EXPECT_THAT(described(7), testing::StartsWith("second (GPU 1,"));
}

TEST(CudaDevice, ChecksTheMemoryFraction) {
  EXPECT_EQ(MakeCudaDevice({device::cuda::FakeDriver({}), device::cuda::FakeBlas(), kImages},
                           {.memory_fraction = 1.5})
                .status(),
            InvalidArgument("the fraction of the GPU's memory is 1.5: expected a number above 0 "
                            "and at most 1"));
}

// The error depends on the machine, because "cuda" and "auto" query the real driver.
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
