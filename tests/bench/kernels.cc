// Measures, one by one, the kernels in a training step of two MLPs: the GFLOP/s of each matrix
// product with dense and with padded rows, and the GB/s of the memory-bound kernels. Shows which
// shapes and strides slow down a step.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/kernels/kernel.h"
#include "runtime/kernels/stream.h"
#include "runtime/optimizer/apply_kernel.h"
#include "runtime/optimizer/optimizer.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

using kernels::KernelRequest;
using kernels::Operand;

constexpr int kRounds = 5;
constexpr double kSecondsPerRound = 0.05;

int64_t Padded(int64_t cols) {
  return cols % 128 == 0 ? cols + 16 : cols;
}

Operand Matrix(int64_t rows, int64_t cols, bool padded) {
  return {DType::kFloat32, Shape({rows, cols}), padded ? Padded(cols) : cols};
}

// Returns the CPU seconds of one run of the kernel, averaged over the fastest round.
double Measure(const KernelRequest& request) {
  static const kernels::KernelTable table = kernels::CpuKernels().With(optimizer::CpuKernels());
  auto kernel = table.Prepare(request);
  ENFORCE(kernel.ok(), kernel.status().ToString());
  std::vector<std::unique_ptr<Buffer>> buffers;
  std::vector<const void*> inputs;
  std::vector<void*> outputs;
  for (const Operand& operand : request.inputs) {
    buffers.push_back(std::make_unique<Buffer>(operand.bytes()));
    auto* values = reinterpret_cast<float*>(buffers.back()->data());
    for (size_t i = 0; operand.dtype == DType::kFloat32 && i < operand.bytes() / 4; ++i) {
      values[i] = 0.001f * static_cast<float>(i % 997);
    }
    inputs.push_back(buffers.back()->data());
  }
  for (size_t i = 0; i < request.outputs.size(); ++i) {
    void* memory = nullptr;
    for (const kernels::InPlace& rule : table.Find(request.op)->in_place) {
      if (rule.rule == kernels::InPlace::kAlways && rule.output == static_cast<int>(i)) {
        memory = buffers[static_cast<size_t>(rule.input)]->data();
      }
    }
    if (memory == nullptr) {
      buffers.push_back(std::make_unique<Buffer>(request.outputs[i].bytes()));
      memory = buffers.back()->data();
    }
    outputs.push_back(memory);
  }
  Buffer workspace((*kernel)->workspace_bytes() + 64);
  kernels::Stream stream;
  auto run = [&] { (*kernel)->Run(inputs.data(), outputs.data(), workspace.data(), stream); };
  run();
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    const Stopwatch watch;
    int64_t runs = 0;
    do {
      for (int i = 0; i < 8; ++i) run();
      runs += 8;
    } while (watch.Elapsed().cpu_s < kSecondsPerRound);
    best = std::min(best, watch.Elapsed().cpu_s / static_cast<double>(runs));
  }
  return best;
}

void PrintLine(const KernelRequest& request, std::string_view part, bool padded, double flops,
               double bytes) {
  const Stopwatch watch;
  const double seconds = Measure(request);
  Report report("kernels");
  report.Add("kernel", request.op).Add("part", part).Add("rows", padded ? "padded" : "dense");
  report.Add("us", seconds * 1e6);
  if (flops > 0) report.Add("gflop_s", flops / seconds * 1e-9);
  if (bytes > 0) report.Add("gb_s", bytes / seconds * 1e-9);
  report.Print(watch.Elapsed());
}

struct Product {
  const char* part;
  int64_t m, k, n;
  bool transpose_a, transpose_b;
};

constexpr Product kProducts[] = {
    {"784-512-512-10 b128 forward 1", 128, 784, 512, false, false},
    {"784-512-512-10 b128 forward 2", 128, 512, 512, false, false},
    {"784-512-512-10 b128 forward 3", 128, 512, 10, false, false},
    {"784-512-512-10 b128 weights 1", 784, 128, 512, true, false},
    {"784-512-512-10 b128 weights 2", 512, 128, 512, true, false},
    {"784-512-512-10 b128 weights 3", 512, 128, 10, true, false},
    {"784-512-512-10 b128 input 2", 128, 512, 512, false, true},
    {"784-512-512-10 b128 input 3", 128, 10, 512, false, true},
    {"784-128-10 b32 forward 1", 32, 784, 128, false, false},
    {"784-128-10 b32 forward 2", 32, 128, 10, false, false},
    {"784-128-10 b32 weights 1", 784, 32, 128, true, false},
    {"784-128-10 b32 weights 2", 128, 32, 10, true, false},
    {"784-128-10 b32 input 2", 32, 10, 128, false, true},
};

void Products(bool padded) {
  for (const Product& p : kProducts) {
    const Operand a = p.transpose_a ? Matrix(p.k, p.m, padded) : Matrix(p.m, p.k, padded);
    const Operand b = p.transpose_b ? Matrix(p.n, p.k, padded) : Matrix(p.k, p.n, padded);
    const Attributes attributes{{"transpose_a", p.transpose_a}, {"transpose_b", p.transpose_b}};
    PrintLine({"MatMul", attributes, {a, b}, {Matrix(p.m, p.n, padded)}}, p.part, padded,
              2.0 * static_cast<double>(p.m * p.k * p.n), 0);
  }
}

void Updates(bool padded) {
  const Operand step = Operand::Dense(DType::kInt64, Shape());
  for (const auto& [kind, rows, cols] :
       {std::tuple(optimizer::Kind::kSgd, 784, 512), std::tuple(optimizer::Kind::kAdam, 784, 128),
        std::tuple(optimizer::Kind::kAdagrad, 784, 128),
        std::tuple(optimizer::Kind::kRmsprop, 784, 128)}) {
    const auto optimizer = optimizer::Optimizer::Default(kind);
    const size_t slots = optimizer::Slots(optimizer).size();
    const Operand variable = Matrix(rows, cols, padded);
    KernelRequest request{"ApplyOptimizer", optimizer::ToAttributes(optimizer), {step}, {}};
    request.inputs.resize(3 + slots, variable);
    request.outputs.resize(1 + slots, variable);
    const double traffic = static_cast<double>(3 + 2 * slots) * rows * cols * 4;
    PrintLine(request, StrCat(optimizer::Name(kind), " ", rows, "x", cols), padded, 0, traffic);
  }
}

void Others(bool padded) {
  const Operand wide = Matrix(128, 512, padded), logits = Matrix(128, 10, false);
  const Operand bias = Operand::Dense(DType::kFloat32, Shape({512}));
  const Operand labels = Operand::Dense(DType::kInt64, Shape({128}));
  const Operand loss = Operand::Dense(DType::kFloat32, Shape({128}));
  const Operand scalar = Operand::Dense(DType::kInt64, Shape());
  const double bytes = 128 * 512 * 4;
  PrintLine({"BiasAdd", {}, {wide, bias}, {wide}}, "128x512", padded, 0, 2 * bytes);
  PrintLine({"BiasAddGrad", {}, {wide}, {bias}}, "128x512", padded, 0, bytes);
  for (const char* op : {"Relu", "Sigmoid", "Tanh", "Exp", "Log", "Softmax"}) {
    PrintLine({op, {}, {wide}, {wide}}, "128x512", padded, 0, 2 * bytes);
  }
  PrintLine({"ReluGrad", {}, {wide, wide}, {wide}}, "128x512", padded, 0, 3 * bytes);
  PrintLine({"Dropout", {{"rate", 0.5}}, {wide, scalar, scalar}, {wide}}, "128x512", padded, 0,
            2 * bytes);
  PrintLine({"FusedElementwise",
             {{"program", std::string("Mul i0 0.5; Add t0 i1; Relu t1")}},
             {wide, wide},
             {wide}},
            "128x512 three steps", padded, 0, 3 * bytes);
  PrintLine({"SparseSoftmaxCrossEntropyWithLogits", {}, {logits, labels}, {loss, logits}}, "128x10",
            padded, 0, 0);
}

}  // namespace
}  // namespace tfjob::bench

int main() {
  for (bool padded : {false, true}) {
    tfjob::bench::Products(padded);
    tfjob::bench::Updates(padded);
    tfjob::bench::Others(padded);
  }
}
