#include "runtime/exec/cuda_device.h"

#include <gtest/gtest.h>

#include "runtime/device/cuda/fake_driver.h"

namespace tfjob::exec {
namespace {

// CudaDevice is called several times per task, so it must not create a context on the GPU.
TEST(CudaDevice, SaysWhatIsMissingWithoutAContext) {
  const auto& driver = device::cuda::FakeDriver({.gpus = {{.name = "H100"}}});
  const Status status = CudaDevice(driver, nullptr).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(Message(status),
            "H100 (GPU 0, compute capability 9.0) is supported, but this version has no CUDA "
            "kernels for matrix products, so it cannot train on a GPU (docs/gpu.md)");
  EXPECT_EQ(device::cuda::FakeDriverCalls()["cuDevicePrimaryCtxRetain"], 0);
}

TEST(CudaDevice, AGpuThatIsTooOldIsRefused) {
  const auto& driver = device::cuda::FakeDriver({.gpus = {{.name = "V100", .compute_major = 7}}});
  EXPECT_EQ(Message(CudaDevice(driver, nullptr).status()),
            "V100 (GPU 0, compute capability 7.0) is too old: this program needs compute "
            "capability 8.0 or newer");
}

// "cuda" and "auto" ask the real driver, so the test can only know that no GPU is used yet.
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
