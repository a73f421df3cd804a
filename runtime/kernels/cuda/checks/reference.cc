#include "runtime/kernels/cuda/checks/reference.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/optimizer/apply_kernel.h"

namespace tfjob::kernels::cuda {
namespace {

// Computes MatMulBiasGrad with MatMul and BiasAddGrad.
class SeparateBiasGrad final : public Kernel {
 public:
  SeparateBiasGrad(std::unique_ptr<Kernel> product, std::unique_ptr<Kernel> sums, size_t summed)
      : product_(std::move(product)), sums_(std::move(sums)), summed_(summed) {}

  size_t workspace_bytes() const override {
    return std::max(product_->workspace_bytes(), sums_->workspace_bytes());
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    product_->Run(inputs, outputs, workspace, stream);
    sums_->Run(inputs + summed_, outputs + 1, workspace, stream);
  }

 private:
  const std::unique_ptr<Kernel> product_, sums_;
  const size_t summed_;
};

StatusOr<std::unique_ptr<Kernel>> PrepareBiasGrad(const KernelRequest& request) {
  const auto summed = static_cast<size_t>(request.attributes.Get("summed", int64_t{1}));
  ASSIGN_OR_RETURN(
      auto product,
      CpuKernels().Prepare({"MatMul", request.attributes, request.inputs, {request.outputs[0]}}));
  ASSIGN_OR_RETURN(
      auto sums,
      CpuKernels().Prepare({"BiasAddGrad", {}, {request.inputs[summed]}, {request.outputs[1]}}));
  return std::make_unique<SeparateBiasGrad>(std::move(product), std::move(sums), summed);
}

}  // namespace

const KernelTable& ReferenceKernels() {
  static const auto* const kTable =
      new KernelTable(CpuKernels()
                          .With(optimizer::CpuKernels())
                          .With(KernelTable("CPU", {{"MatMulBiasGrad", {PrepareBiasGrad, {}}}})));
  return *kTable;
}

}  // namespace tfjob::kernels::cuda
