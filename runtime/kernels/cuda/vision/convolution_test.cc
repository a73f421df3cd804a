// Compares convolutions with those of the CPU, on random shapes.
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "runtime/kernels/cuda/checks/draw.h"
#include "runtime/kernels/cuda/checks/vision_cases.h"
#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"

namespace tfjob::kernels::cuda {
namespace {

// Compares convolutions whose windows are copied in pieces of up to `window_bytes`. If
// `window_bytes` is small, each piece is a single window.
void CompareInPieces(const ConvolutionCase& c, uint64_t seed, size_t window_bytes) {
  GpuAccess gpu = EmulatedGpu(seed);
  gpu.window_bytes = window_bytes;
  for (const Comparison& comparison : ConvolutionsOf(c)) {
    for (const Comparison& each : WithHalfType(comparison, seed)) {
      EXPECT_EQ(FirstReport(each, seed, gpu), "")
          << each.op << ", seed " << seed << ", " << window_bytes << " bytes";
    }
  }
}

TEST(Convolutions, EqualTheCpus) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    PhiloxStream random(seed);
    const int64_t depth = Draw(random, {1, 3, 4, 8}), outputs = Draw(random, {1, 3, 4});
    CompareInPieces(DrawConvolution(random, 1, depth, outputs), seed, size_t{32} << 20);
  }
}

TEST(Convolutions, OfGroupsEqualTheCpus) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    PhiloxStream random(seed);
    const int64_t groups = Draw(random, {2, 3}), depth = Draw(random, {2, 4});
    CompareInPieces(DrawConvolution(random, groups, depth, Draw(random, {1, 2, 4})), seed,
                    size_t{32} << 20);
  }
}

// There is one channel per group, and one or more outputs.
TEST(Convolutions, ByDepthEqualTheCpus) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    PhiloxStream random(seed);
    const int64_t channels = Draw(random, {2, 5, 33});
    CompareInPieces(DrawConvolution(random, channels, 1, Draw(random, {1, 1, 2, 3})), seed, 0);
  }
  // The filter's gradient is added in several parts.
  const WindowAxis axis{.size = 3, .before = 1, .after = 1};
  CompareInPieces({.image = {2, 17, 16, 3}, .window = {axis, axis}, .outputs = 6, .groups = 3}, 0,
                  0);
}

// Depending on the limit, a piece is a single window, several windows, or several images.
TEST(Convolutions, ByPiecesEqualTheCpus) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    PhiloxStream random(seed + 100);
    const int64_t groups = Draw(random, {1, 1, 2});
    const ConvolutionCase c =
        DrawConvolution(random, groups, Draw(random, {2, 4}), Draw(random, {1, 3}));
    CompareInPieces(c, seed, static_cast<size_t>(Draw(random, {1, 100, 700, 3000})));
  }
}

// The library reads the image itself, so no copy is needed.
TEST(Convolutions, OfPixelsNeedNoCopy) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    for (const int64_t groups : {1, 3}) {
      const ConvolutionCase c{
          .image = {3, 4, 5, 4 * groups}, .outputs = 2 * groups, .groups = groups};
      CompareInPieces(c, seed, 1);
      const auto dense = [](const Shape& shape) { return Operand::Dense(DType::kFloat32, shape); };
      const auto kernel = MakeTable(EmulatedGpu(seed))
                              .Prepare({"Conv2D",
                                        c.attributes(),
                                        {dense(c.image), dense(c.filter())},
                                        {dense(c.output())}});
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      EXPECT_LT((*kernel)->workspace_bytes(), 3 * 4 * 5 * 4 * sizeof(float));
    }
  }
}

// Returns the workspace size of a convolution with windows of 3 x 3 pixels, over images of 64 x 64
// pixels and 16 channels.
size_t WorkspaceFor(int64_t images, size_t window_bytes) {
  const WindowAxis axis{.size = 3, .before = 1, .after = 1};
  const ConvolutionCase c{.image = {images, 64, 64, 16}, .window = {axis, axis}, .outputs = 8};
  GpuAccess gpu = EmulatedGpu(0);
  gpu.window_bytes = window_bytes;
  const auto dense = [](const Shape& shape) { return Operand::Dense(DType::kFloat32, shape); };
  const auto kernel = MakeTable(gpu).Prepare(
      {"Conv2D", c.attributes(), {dense(c.image), dense(c.filter())}, {dense(c.output())}});
  EXPECT_TRUE(kernel.ok()) << kernel.status();
  return kernel.ok() ? (*kernel)->workspace_bytes() : 0;
}

TEST(Convolutions, NeedABoundedWorkspace) {
  constexpr size_t kImage = 64 * 64 * 9 * 16 * sizeof(float);
  constexpr size_t kProduct = 4096;  // more than the fake library's products need
  const size_t one = WorkspaceFor(1, 2 * kImage + 5), two = WorkspaceFor(2, 2 * kImage + 5);
  EXPECT_GE(one, kImage);
  EXPECT_LE(one, kImage + kProduct);
  EXPECT_GE(two, 2 * kImage);
  EXPECT_LE(two, 2 * kImage + kProduct);
  EXPECT_LE(WorkspaceFor(7, 2 * kImage + 5), 2 * kImage + kProduct);
  EXPECT_LE(WorkspaceFor(7, kImage / 3), kImage / 3 + kProduct);
}

// The grid would have 2^32 blocks: 2^20 elements of the filter × 4,096 parts of the windows.
TEST(Convolutions, AGradientThatNeedsTooManyBlocksIsRefused) {
  const WindowAxis axis{.size = 1024};
  const ConvolutionCase c{
      .image = {1, 2047, 2047, 2}, .window = {axis, axis}, .outputs = 2, .groups = 2};
  const auto dense = [](Shape shape) { return Operand::Dense(DType::kFloat32, std::move(shape)); };
  const Status status = MakeTable(EmulatedGpu(0))
                            .Prepare({"Conv2DBackpropFilter",
                                      c.attributes(),
                                      {dense(c.image), dense(c.output())},
                                      {dense(c.filter())}})
                            .status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_TRUE(
      std::string(Message(status))
          .ends_with("no gradient of a filter with 1048576 elements per output over 1048576 "
                     "windows, which needs more than 2147483647 blocks"))
      << status;
}

TEST(Convolutions, AreRefusedLikeTheCpus) {
  const auto dense = [](Shape shape) { return Operand::Dense(DType::kFloat32, std::move(shape)); };
  const ConvolutionCase c{.image = {1, 4, 4, 2}, .outputs = 2};
  const std::pair<KernelRequest, const char*> cases[] = {
      {{"Conv2D", c.attributes(), {dense({0, 4, 4, 2}), dense(c.filter())}, {dense({0, 4, 4, 2})}},
       "expected images"},
      {{"Conv2D", c.attributes(), {dense(c.image), dense({1, 1, 3, 2})}, {dense(c.output())}},
       "equal groups"},
      {{"Conv2D", {}, {dense(c.image), dense(c.filter())}, {dense(c.output())}}, "height"}};
  const KernelTable table = MakeTable(EmulatedGpu(0));
  for (const auto& [request, message] : cases) {
    const Status expected = CpuKernels().Prepare(request).status();
    const Status actual = table.Prepare(request).status();
    EXPECT_EQ(actual.code(), expected.code()) << request.ToString();
    EXPECT_EQ(actual.code(), StatusCode::kInvalidArgument) << request.ToString();
    EXPECT_TRUE(
        std::string(Message(actual))
            .ends_with(std::string(Message(expected)).substr(std::string("device CPU").size())))
        << actual << "\n"
        << expected;
    EXPECT_NE(std::string(Message(actual)).find(message), std::string::npos) << actual;
  }
  Operand doubles = Operand::Dense(DType::kFloat64, c.image);
  Operand filter = Operand::Dense(DType::kFloat64, c.filter());
  EXPECT_EQ(table.Prepare({"Conv2D", c.attributes(), {doubles, filter}, {doubles}}).status().code(),
            StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace tfjob::kernels::cuda
