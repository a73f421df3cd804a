// Implements the benchmark case half-kernels. Compares CPU kernels in bfloat16 and float16, which
// convert their operands to float32 and back, with the same kernels in float32.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/stream.h"
#include "runtime/tensor/half.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

using kernels::KernelRequest;
using kernels::Operand;

struct HalfOptions {
  int64_t rows = 128, cols = 512;
  double seconds = 0.25;  // duration of a measurement
};

template <typename T>
void FillWith(Buffer& buffer) {
  for (size_t i = 0; i < buffer.size() / sizeof(T); ++i) {
    const T value(0.001f * static_cast<float>(i % 997));
    std::memcpy(buffer.data() + i * sizeof(T), &value, sizeof(T));
  }
}

std::unique_ptr<Buffer> Operands(const Operand& operand) {
  auto buffer = std::make_unique<Buffer>(operand.bytes());
  if (operand.dtype == DType::kBFloat16) FillWith<BFloat16>(*buffer);
  if (operand.dtype == DType::kFloat16) FillWith<Float16>(*buffer);
  if (operand.dtype == DType::kFloat32) FillWith<float>(*buffer);
  return buffer;
}

void Measure(const KernelRequest& request, DType dtype, const HalfOptions& options) {
  auto kernel = kernels::CpuKernels().Prepare(request);
  ENFORCE(kernel.ok(), kernel.status().ToString());
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const Operand& operand : request.inputs)
    inputs.push_back(buffers.emplace_back(Operands(operand))->data());
  for (const Operand& operand : request.outputs)
    outputs.push_back(buffers.emplace_back(std::make_unique<Buffer>(operand.bytes()))->data());
  Buffer workspace((*kernel)->workspace_bytes() + 64);
  kernels::Stream stream;
  const auto run = [&] { (*kernel)->Run(inputs.data(), outputs.data(), workspace.data(), stream); };
  run();
  int64_t runs = 0;
  Stopwatch watch;
  for (; watch.Elapsed().wall_s < options.seconds; ++runs) run();
  const Times times = watch.Elapsed();
  Report("half-kernels")
      .Add("kernel", request.op)
      .Add("type", Name(dtype))
      .Add("us", times.wall_s * 1e6 / static_cast<double>(runs))
      .Print(times);
}

void MeasureAll(DType dtype, const HalfOptions& options) {
  const auto matrix = [&](int64_t rows, int64_t cols) {
    return Operand::Dense(dtype, Shape({rows, cols}));
  };
  const Operand x = matrix(options.rows, options.cols), square = matrix(options.cols, options.cols);
  for (const char* op : {"Relu", "Exp", "Softmax"}) Measure({op, {}, {x}, {x}}, dtype, options);
  Measure({"Add", {}, {x, x}, {x}}, dtype, options);
  Measure({"MatMul", {}, {x, square}, {x}}, dtype, options);
  const Operand other =
      Operand::Dense(dtype == DType::kFloat32 ? DType::kBFloat16 : DType::kFloat32, x.shape);
  Measure({"Cast", {}, {x}, {other}}, dtype, options);
}

int Main(int argc, char** argv) {
  HalfOptions options;
  CLI::App app("CPU kernels in float32, bfloat16 and float16", "half_kernels");
  app.add_option("--rows", options.rows, "Rows of the operands")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--cols", options.cols, "Columns of the operands")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option("--seconds", options.seconds, "Seconds per measurement")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16})
    MeasureAll(dtype, options);
  return 0;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
