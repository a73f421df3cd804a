#include "runtime/exec/cuda_device.h"

#include <gtest/gtest.h>

#include "runtime/device/cuda/fake_driver.h"
#include "runtime/kernels/cuda/images.h"

namespace tfjob::exec {
namespace {

// A build without kernels does not use the GPU.
TEST(CudaDevice, SaysWhatIsMissing) {
  const auto& driver = device::cuda::FakeDriver({.gpus = {{.name = "H100"}}});
  const Status status = CudaDevice(driver, nullptr).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  const bool touched = device::cuda::FakeDriverCalls()["cuDevicePrimaryCtxRetain"] > 0;
  EXPECT_EQ(touched, !kernels::cuda::Images().empty());
  EXPECT_EQ(Message(status),
            touched ? "H100 (GPU 0, compute capability 9.0) works, but this version has no CUDA "
                      "kernels for matrix products, so it cannot train on a GPU (docs/gpu.md)"
                    : "this machine has a GPU, but this program was built without CUDA kernels, "
                      "which --config=cuda adds");
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
