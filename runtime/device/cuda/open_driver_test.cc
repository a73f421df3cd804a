#include <gtest/gtest.h>

#include "runtime/device/cuda/blas_api.h"
#include "runtime/device/cuda/driver_api.h"
#include "runtime/device/cuda/fake_driver.h"

namespace tfjob::device::cuda {
namespace {

TEST(OpenDriver, AMachineWithoutADriverIsToldWhatToInstall) {
  const Status status = OpenDriver("libcuda-that-does-not-exist.so.1", nullptr).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(status),
            "no NVIDIA driver: libcuda-that-does-not-exist.so.1: cannot open shared object file: "
            "No such file or directory; install driver 580 or newer, and in a container request a "
            "GPU (resource nvidia.com/gpu)");
}

TEST(OpenDriver, ALibraryWithoutTheFunctionsIsTooOld) {
  EXPECT_EQ(Message(OpenDriver("libm.so.6", nullptr).status()),
            "the NVIDIA driver (libm.so.6) lacks cuGetErrorName, which this program needs: install "
            "driver 580 or newer");
}

// The old driver also lacks functions, but the message must name its version.
TEST(OpenDriver, AnOldDriverIsNamedWithBothVersions) {
  EXPECT_EQ(Message(OpenDriver("runtime/device/cuda/libold_driver.so", nullptr).status()),
            "the NVIDIA driver supports CUDA 11.4, but this program needs 13.0: install driver 580 "
            "or newer");
}

TEST(OpenBlas, AMachineWithoutTheLibraryIsToldWhatToInstall) {
  EXPECT_EQ(OpenBlas("libcublasLt-that-does-not-exist.so.13").status(),
            FailedPrecondition("no cuBLASLt, which computes matrix products on a GPU: "
                               "libcublasLt-that-does-not-exist.so.13: cannot open shared object "
                               "file: No such file or directory; install cuBLAS of CUDA 13, and "
                               "name its folder in LD_LIBRARY_PATH"));
  EXPECT_EQ(OpenBlas("libm.so.6").status(),
            FailedPrecondition("cuBLASLt (libm.so.6) lacks cublasLtGetVersion, which this program "
                               "needs: install cuBLAS of CUDA 13"));
}

// The old library also lacks functions, but the message must name its version.
TEST(OpenBlas, AnotherMajorVersionIsNamedWithBothVersions) {
  constexpr char kOld[] = "runtime/device/cuda/libold_blas.so";
  const Status expected = FailedPrecondition(
      "cuBLASLt (runtime/device/cuda/libold_blas.so) is version 12.3, but this program needs "
      "13: "
      "install cuBLAS of CUDA 13, and name its folder in LD_LIBRARY_PATH");
  EXPECT_EQ(OpenBlas(kOld).status(), expected);
  const char* const others[] = {"libcublasLt-that-does-not-exist.so.14", kOld};
  EXPECT_EQ(OpenBlas("libcublasLt-that-does-not-exist.so.13", others).status(), expected);
}

TEST(FindDriver, LooksOnlyForTheLibrary) {
  EXPECT_EQ(FindDriver("libm.so.6"), OkStatus());
  EXPECT_EQ(FindDriver("libcuda-that-does-not-exist.so.1").code(), StatusCode::kFailedPrecondition);
}

TEST(CheckDriver, ADriverThatIsTooOldIsNamedWithBothVersions) {
  const DriverApi& driver = FakeDriver({.driver_version = 12040});
  EXPECT_EQ(Message(CheckDriver(driver, nullptr)),
            "the NVIDIA driver supports CUDA 12.4, but this program needs 13.0: install driver 580 "
            "or newer");
}

TEST(CheckDriver, NoGpuIsExplainedByTheVariableThatHidesThem) {
  const DriverApi& driver = FakeDriver({.gpus = {}});
  for (const std::string hidden : {"", "-1"}) {
    EXPECT_EQ(Message(CheckDriver(driver, &hidden)),
              StrCat("CUDA_VISIBLE_DEVICES is \"", hidden,
                     "\", which leaves no GPU: unset it, or name a GPU such as 0"));
  }
  // These values do not hide all GPUs on every machine, but name GPUs that this machine does not
  // have.
  for (const std::string named : {"0", "0,1", "GPU-5e3f"}) {
    EXPECT_EQ(Message(CheckDriver(driver, &named)),
              StrCat("the NVIDIA driver finds no GPU (CUDA_VISIBLE_DEVICES is \"", named,
                     "\"): in a container, request one (resource nvidia.com/gpu); on the host, see "
                     "what nvidia-smi says"));
  }
  EXPECT_EQ(Message(CheckDriver(driver, nullptr)),
            "the NVIDIA driver finds no GPU: in a container, request one (resource "
            "nvidia.com/gpu); on the host, see what nvidia-smi says");
}

TEST(CheckDriver, ADriverThatCannotStartSaysWhy) {
  const DriverApi& driver = FakeDriver({.failures = {{"cuInit", 999}}});
  EXPECT_EQ(Message(CheckDriver(driver, nullptr)),
            "the NVIDIA driver cannot start: cuInit: unknown error (no description)");
}

TEST(CheckDriver, AcceptsADriverWithAGpu) {
  EXPECT_EQ(CheckDriver(FakeDriver({}), nullptr), OkStatus());
}

}  // namespace
}  // namespace tfjob::device::cuda
