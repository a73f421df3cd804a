// Implements MatMulGelu and MatMulGeluGrad, which compute a product, and its approximate GELU
// (graph/gelu.h) or its product with the derivative of GELU.
#include <algorithm>
#include <string>

#include "runtime/kernels/cpu/products.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/finished_product.h"

namespace tfjob::kernels::cuda {
namespace {

// t5 = tanh(√(2/π)·(x + 0.044715·x³))
constexpr char kGelu[] =
    "Mul i0 i0; Mul t0 i0; Mul t1 0.044715; Add t2 i0; Mul t3 0.7978845608028654; Tanh t4; "
    "Add t5 1; Mul t6 i0; Mul t7 0.5";
// The inputs are the gradient of GELU(x), and x. With u = √(2/π)·(x + 0.044715·x³), the derivative
// is (1 + tanh u)/2 + x/2·(1 - tanh² u)·u', where x·u' = t8.
constexpr char kGeluGradient[] =
    "Mul i1 i1; Mul t0 0.044715; Add t1 1; Mul t2 i1; Mul t3 0.7978845608028654; "
    "Mul t0 0.134145; Add t5 1; Mul t6 i1; Mul t7 0.7978845608028654; Tanh t4; Mul t9 t9; "
    "Sub 1 t10; Mul t11 t8; Add t12 t9; Add t13 1; Mul t14 0.5; Mul t15 i0";

// Computes the product and what follows it with separate kernels.
struct SeparateGelu {
  std::unique_ptr<Kernel> product;  // MatMul or FusedMatMul
  std::unique_ptr<Kernel> program;  // of the product and, for the gradient, x
};

class MatMulGelu final : public Kernel {
 public:
  // `fused` may be null; otherwise, it is used if all addresses are aligned. `inputs` is the number
  // of inputs of the product.
  MatMulGelu(std::unique_ptr<Product> fused, SeparateGelu separate, size_t inputs, bool gradient)
      : fused_(std::move(fused)),
        separate_(std::move(separate)),
        inputs_(inputs),
        gradient_(gradient) {}

  size_t workspace_bytes() const override {
    const size_t fused =
        fused_ == nullptr ? 0 : fused_->workspace_bytes() + device::cuda::kBlasWorkspaceAlignment;
    return std::max(fused, separate_.product->workspace_bytes());
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    const ProductOperands operands{.a = inputs[1],
                                   .b = inputs[0],
                                   .bias = inputs_ == 3 ? inputs[2] : nullptr,
                                   .d = outputs[0],
                                   .before = gradient_ ? const_cast<void*>(inputs[2]) : outputs[1],
                                   .workspace = AlignedWorkspace(workspace)};
    if (fused_ != nullptr && IsAligned(operands)) return fused_->Run(operands, stream);
    // The product of the gradient is stored where its multiple will be.
    void* const product = gradient_ ? outputs[0] : outputs[1];
    separate_.product->Run(inputs, &product, workspace, stream);
    if (separate_.program == nullptr) return;
    const void* const read[] = {product, operands.before};
    separate_.program->Run(read, outputs, nullptr, stream);
  }

 private:
  const std::unique_ptr<Product> fused_;
  const SeparateGelu separate_;
  const size_t inputs_;
  const bool gradient_;
};

// The parts of a request.
struct GeluRequest {
  bool gradient = false, bias = false;
  Operand product;  // the product, as it is stored if separate kernels compute GELU
  Operand before;   // the value before GELU
};

StatusOr<GeluRequest> PartsOf(const KernelRequest& request) {
  GeluRequest parts{.gradient = request.op == "MatMulGeluGrad", .product = {}, .before = {}};
  parts.bias = !parts.gradient && request.attributes.Get("bias", false);
  RETURN_IF_ERROR(
      cpu::ExpectOperands(request, parts.gradient || parts.bias ? 3 : 2, parts.gradient ? 1 : 2));
  const Operand& out = request.outputs[0];
  parts.before = parts.gradient ? request.inputs[2] : request.outputs[1];
  parts.product = parts.gradient ? out : parts.before;
  RETURN_IF_ERROR(cpu::ExpectShape(parts.before, out.shape));
  return parts;
}

StatusOr<SeparateGelu> PrepareSeparateGelu(const GpuAccess& gpu, const KernelRequest& request,
                                           const GeluRequest& parts) {
  SeparateGelu kernels;
  const std::string op = parts.bias ? "FusedMatMul" : "MatMul";
  KernelRequest product{op, request.attributes, request.inputs, {parts.product}};
  product.inputs.resize(parts.bias ? 3 : 2);
  ASSIGN_OR_RETURN(kernels.product, MatMulKernels(gpu).at(op).prepare(product));
  const Operand& out = request.outputs[0];
  if (out.shape.num_elements() == 0) return kernels;
  std::vector<Operand> inputs = {parts.product};
  if (parts.gradient) inputs.push_back(parts.before);
  ASSIGN_OR_RETURN(kernels.program, PrepareProgram(gpu.launcher, inputs, out,
                                                   parts.gradient ? kGeluGradient : kGelu));
  return kernels;
}

// Returns null if the product has no elements or is float32, or if the library cannot store the
// value before GELU or has no algorithm for the epilogue.
StatusOr<std::unique_ptr<Product>> PrepareFusedGelu(const GpuAccess& gpu,
                                                    const KernelRequest& request,
                                                    const GeluRequest& parts) {
  ASSIGN_OR_RETURN(const FloatType type, FloatTypeOf(request));
  KernelRequest product{"MatMul", request.attributes, request.inputs, {request.outputs[0]}};
  product.inputs.resize(2);
  ASSIGN_OR_RETURN(const cpu::ProductLayout layout, cpu::ProductLayoutOf(product));
  const bool stored = type != FloatType::kFloat32 && parts.before.row_stride % 8 == 0;
  if (!stored || layout.m * layout.n * layout.k == 0) return nullptr;
  ProductDescription description = DescriptionOf(layout, type, gpu.arithmetic);
  description.ld_before = parts.before.row_stride;
  description.epilogue = parts.gradient ? ProductEpilogue::kGeluGradient
                         : parts.bias   ? ProductEpilogue::kGeluBias
                                        : ProductEpilogue::kGelu;
  StatusOr<std::unique_ptr<Product>> prepared = gpu.products->Prepare(description);
  if (absl::IsUnimplemented(prepared.status())) return nullptr;
  return prepared;
}

Prepared PrepareMatMulGelu(const GpuAccess& gpu, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const GeluRequest parts, PartsOf(request));
  ASSIGN_OR_RETURN(SeparateGelu separate, PrepareSeparateGelu(gpu, request, parts));
  ASSIGN_OR_RETURN(auto fused, PrepareFusedGelu(gpu, request, parts));
  return std::make_unique<MatMulGelu>(std::move(fused), std::move(separate), parts.bias ? 3 : 2,
                                      parts.gradient);
}

}  // namespace

KernelTable::Entries MatMulGeluKernels(const GpuAccess& gpu) {
  const auto prepare = [gpu](const KernelRequest& r) { return PrepareMatMulGelu(gpu, r); };
  return {{"MatMulGelu", {prepare, {}}}, {"MatMulGeluGrad", {prepare, {}}}};
}

}  // namespace tfjob::kernels::cuda
