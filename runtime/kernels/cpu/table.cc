#include <utility>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/half.h"
#include "runtime/kernels/kernel.h"

namespace tfjob::kernels {
namespace {

KernelTable::Entries AllEntries() {
  KernelTable::Entries all;
  for (auto family :
       {cpu::UnaryKernels, cpu::BroadcastKernels, cpu::BiasKernels, cpu::MatMulKernels,
        cpu::BatchMatMulKernels, cpu::SoftmaxKernels, cpu::ReduceKernels, cpu::MoveKernels,
        cpu::SliceKernels, cpu::GatherKernels, cpu::ConvolutionKernels, cpu::PoolingKernels,
        cpu::ImageTransformKernels, cpu::BatchNormKernels, cpu::CastKernels, cpu::RandomKernels,
        cpu::FusedElementwiseKernels, cpu::NumberKernels}) {
    all.merge(family());
  }
  return cpu::WithHalfTypes(std::move(all));
}

}  // namespace

const KernelTable& CpuKernels() {
  static const KernelTable table("CPU", AllEntries());
  return table;
}

}  // namespace tfjob::kernels
