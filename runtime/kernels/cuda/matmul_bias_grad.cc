// Implements MatMulBiasGrad, which computes the gradients of a layer's weights and bias. A single
// product computes both: its epilogue sums the rows of a factor.
#include <algorithm>

#include "runtime/kernels/cpu/products.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/finished_product.h"

namespace tfjob::kernels::cuda {
namespace {

// Computes the product and the sums with separate kernels.
struct SeparateKernels {
  std::unique_ptr<Kernel> product;  // MatMul, with the same operands
  std::unique_ptr<Kernel> sums;     // BiasAddGrad of one factor
};

class MatMulBiasGrad final : public Kernel {
 public:
  // `fused` may be null; otherwise, it is used if all addresses are aligned. `summed` is the index
  // of the input whose rows are summed.
  MatMulBiasGrad(std::unique_ptr<Product> fused, SeparateKernels separate, size_t summed)
      : fused_(std::move(fused)), separate_(std::move(separate)), summed_(summed) {}

  size_t workspace_bytes() const override {
    const size_t fused =
        fused_ == nullptr ? 0 : fused_->workspace_bytes() + device::cuda::kBlasWorkspaceAlignment;
    return std::max(
        {fused, separate_.product->workspace_bytes(), separate_.sums->workspace_bytes()});
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    const ProductOperands operands{.a = inputs[1],
                                   .b = inputs[0],
                                   .d = outputs[0],
                                   .sums = outputs[1],
                                   .workspace = AlignedWorkspace(workspace)};
    if (fused_ != nullptr && IsAligned(operands)) return fused_->Run(operands, stream);
    separate_.product->Run(inputs, outputs, workspace, stream);
    separate_.sums->Run(inputs + summed_, outputs + 1, workspace, stream);
  }

 private:
  const std::unique_ptr<Product> fused_;
  const SeparateKernels separate_;
  const size_t summed_;
};

StatusOr<SeparateKernels> PrepareSeparate(const GpuAccess& gpu, const KernelRequest& request,
                                          size_t summed) {
  SeparateKernels kernels;
  ASSIGN_OR_RETURN(kernels.product,
                   MatMulKernels(gpu).at("MatMul").prepare(
                       {"MatMul", request.attributes, request.inputs, {request.outputs[0]}}));
  ASSIGN_OR_RETURN(
      kernels.sums,
      ReduceKernels(gpu.launcher)
          .at("BiasAddGrad")
          .prepare({"BiasAddGrad", {}, {request.inputs[summed]}, {request.outputs[1]}}));
  return kernels;
}

// Returns null if the product has no elements, or if the library has no algorithm for the epilogue.
StatusOr<std::unique_ptr<Product>> PrepareFused(const GpuAccess& gpu, const KernelRequest& request,
                                                size_t summed) {
  ASSIGN_OR_RETURN(const FloatType type, FloatTypeOf(request));
  ASSIGN_OR_RETURN(const cpu::ProductLayout layout, cpu::ProductLayoutOf(request));
  if (layout.m * layout.n * layout.k == 0) return nullptr;
  ProductDescription product = DescriptionOf(layout, type, gpu.arithmetic);
  // The library's first factor is the request's second one.
  product.epilogue = summed == 1 ? ProductEpilogue::kSumA : ProductEpilogue::kSumB;
  StatusOr<std::unique_ptr<Product>> prepared = gpu.products->Prepare(product);
  if (absl::IsUnimplemented(prepared.status())) return nullptr;
  return prepared;
}

Prepared PrepareMatMulBiasGrad(const GpuAccess& gpu, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 2, 2));
  const int64_t summed = request.attributes.Get("summed", int64_t{1});
  if (summed != 0 && summed != 1)
    return InvalidArgument("attribute summed is ", summed, ": expected 0 or 1");
  const bool rows = summed == 0 ? request.attributes.Get("transpose_a", false)
                                : !request.attributes.Get("transpose_b", false);
  if (!rows) return InvalidArgument("the product does not sum over the rows of input ", summed);
  const auto input = static_cast<size_t>(summed);
  ASSIGN_OR_RETURN(SeparateKernels separate, PrepareSeparate(gpu, request, input));
  ASSIGN_OR_RETURN(auto fused, PrepareFused(gpu, request, input));
  return std::make_unique<MatMulBiasGrad>(std::move(fused), std::move(separate), input);
}

}  // namespace

KernelTable::Entries MatMulBiasGradKernels(const GpuAccess& gpu) {
  const auto prepare = [gpu](const KernelRequest& r) { return PrepareMatMulBiasGrad(gpu, r); };
  return {{"MatMulBiasGrad", {prepare, {}}}};
}

}  // namespace tfjob::kernels::cuda
