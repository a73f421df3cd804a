#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/kernel.h"

namespace tfjob::kernels {
namespace {

KernelTable::Entries AllEntries() {
  KernelTable::Entries all;
  for (auto family : {cpu::UnaryKernels, cpu::BroadcastKernels, cpu::BiasKernels,
                      cpu::MatMulKernels, cpu::SoftmaxKernels, cpu::ReduceKernels, cpu::MoveKernels,
                      cpu::CastKernels, cpu::RandomKernels, cpu::FusedElementwiseKernels}) {
    all.merge(family());
  }
  return all;
}

// Measured on EPYC with oneDNN's sgemm (docs/performance.md): rows whose length in bytes is a
// multiple of 512 collide in the caches' sets when a column of them is walked.
int64_t PreferredRowStride(DType dtype, const Shape& shape) {
  const int64_t cols = Operand::Dense(dtype, shape).cols();
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  const bool collides = shape.rank() >= 2 && cols > 0 && cols * size % 512 == 0;
  return collides ? cols + 64 / size : cols;
}

}  // namespace

const KernelTable& CpuKernels() {
  static const KernelTable table("CPU", AllEntries(), PreferredRowStride);
  return table;
}

}  // namespace tfjob::kernels
