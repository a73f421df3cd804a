#include "runtime/kernels/cuda/images.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

namespace tfjob::kernels::cuda {
namespace {

// TFJOB_CUDA_KERNELS is the number of .cu files that the build has compiled.
TEST(Images, AreFatBinariesOnePerFile) {
  EXPECT_EQ(Images().size(), size_t{TFJOB_CUDA_KERNELS});
  for (const std::span<const std::byte> image : Images()) {
    constexpr uint32_t kFatBinary = 0xBA55ED50;  // the first four bytes of nvcc's files
    uint32_t magic = 0;
    ASSERT_GT(image.size(), sizeof magic);
    std::memcpy(&magic, image.data(), sizeof magic);
    EXPECT_EQ(magic, kFatBinary);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(image.data()) % 64, 0U);
  }
}

}  // namespace
}  // namespace tfjob::kernels::cuda
