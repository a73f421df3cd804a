#include "runtime/kernels/cuda/finished_product.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/kernels/cuda/families.h"

namespace tfjob::kernels::cuda {
namespace {

// Returns the part of the operations that the library can perform as an epilogue if the addresses
// are aligned.
ProductEpilogue LibraryPart(const Finish& finish) {
  const bool relu = finish.activation == "Relu";
  if (finish.bias) return relu ? ProductEpilogue::kReluBias : ProductEpilogue::kBias;
  return relu ? ProductEpilogue::kRelu : ProductEpilogue::kNone;
}

// Returns the elementwise program for the operations: "Add i0 i1; Relu t0", or only one of its
// steps.
std::string ProgramOf(const Finish& finish) {
  if (finish.activation.empty()) return finish.bias ? "Add i0 i1" : "";
  return StrCat(finish.bias ? "Add i0 i1; " : "", finish.activation, finish.bias ? " t0" : " i0");
}

// Returns whether the activation must be computed from the product before rounding. This is not
// necessary for Relu, which returns either its input or 0.
bool NeedsExactProduct(const Finish& finish) {
  return finish.activation == "Sigmoid" || finish.activation == "Tanh";
}

}  // namespace

bool IsAligned(const ProductOperands& operands) {
  uintptr_t addresses = 0;
  for (const void* address :
       {operands.a, operands.b, operands.bias, static_cast<const void*>(operands.d),
        static_cast<const void*>(operands.sums), static_cast<const void*>(operands.before)})
    addresses |= reinterpret_cast<uintptr_t>(address);
  return addresses % 16 == 0;
}

void* AlignedWorkspace(void* workspace) {
  constexpr uintptr_t kAlignment = device::cuda::kBlasWorkspaceAlignment;
  const auto address = reinterpret_cast<uintptr_t>(workspace);
  return reinterpret_cast<void*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

ProductDescription DescriptionOf(const cpu::ProductLayout& layout, FloatType type,
                                 Arithmetic arithmetic) {
  return {.m = layout.n,
          .n = layout.m,
          .k = layout.k,
          .a = {.transposed = layout.transpose_b, .ld = layout.b_stride},
          .b = {.transposed = layout.transpose_a, .ld = layout.a_stride},
          .ldd = layout.c_stride,
          .factors = type,
          .result = type,
          .arithmetic = type == FloatType::kFloat32 ? arithmetic : Arithmetic::kFloat32};
}

StatusOr<FinishedProduct::Variant> FinishedProduct::PrepareVariant(const GpuAccess& gpu,
                                                                   ProductDescription product,
                                                                   Finish rest,
                                                                   const Operand& stored,
                                                                   const Operand& out) {
  Variant variant;
  const Operand bias = Operand::Dense(out.dtype, Shape({out.cols()}));
  if (rest.bias && product.result != FloatType::kFloat32) {
    ASSIGN_OR_RETURN(variant.before, PrepareProgram(gpu.launcher, {bias}, out, "Copy i0"));
    product.beta = 1;
    rest.bias = false;
  }
  ASSIGN_OR_RETURN(variant.product, gpu.products->Prepare(product));
  const std::string program = ProgramOf(rest);
  if (program.empty()) return variant;
  std::vector<Operand> inputs = {stored};
  if (rest.bias) inputs.push_back(bias);
  ASSIGN_OR_RETURN(variant.after, PrepareProgram(gpu.launcher, inputs, out, program));
  return variant;
}

StatusOr<std::unique_ptr<FinishedProduct>> FinishedProduct::Prepare(
    const GpuAccess& gpu, const ProductDescription& product, const Finish& finish,
    const Operand& out) {
  ProductDescription aligned = product, unaligned = product;
  unaligned.alignment = static_cast<uint32_t>(ElementBytes(product.factors));
  Operand stored = out;
  Finish rest = finish;
  const bool wide = product.result != FloatType::kFloat32 && NeedsExactProduct(finish);
  if (wide) {
    aligned.result = unaligned.result = FloatType::kFloat32;
    stored.dtype = DType::kFloat32;
  } else if (product.batch ==
             1) {  // otherwise, the library would add the same bias to all products
    aligned.epilogue = LibraryPart(finish);
    rest = {.activation = finish.activation == "Relu" ? "" : finish.activation};
  }
  StatusOr<Variant> fast = PrepareVariant(gpu, aligned, rest, stored, out);
  if (absl::IsUnimplemented(fast.status()) && aligned.epilogue != ProductEpilogue::kNone) {
    // The library has no algorithm for the epilogue, so kernels compute all that follows.
    aligned.epilogue = ProductEpilogue::kNone;
    fast = PrepareVariant(gpu, aligned, finish, stored, out);
  }
  RETURN_IF_ERROR(fast.status());
  ASSIGN_OR_RETURN(Variant any, PrepareVariant(gpu, unaligned, finish, stored, out));
  return std::unique_ptr<FinishedProduct>(
      new FinishedProduct(*std::move(fast), std::move(any), wide ? stored.bytes() : 0));
}

size_t FinishedProduct::library_bytes() const {
  const size_t bytes =
      std::max(aligned_.product->workspace_bytes(), unaligned_.product->workspace_bytes());
  return (bytes + 63) / 64 * 64;
}

size_t FinishedProduct::workspace_bytes() const {
  const size_t bytes = library_bytes() + stored_bytes_;
  return bytes == 0 ? 0 : bytes + device::cuda::kBlasWorkspaceAlignment;
}

void FinishedProduct::Run(ProductOperands operands, Stream& stream) const {
  operands.workspace = AlignedWorkspace(operands.workspace);
  void* const out = operands.d;
  if (stored_bytes_ > 0) operands.d = static_cast<std::byte*>(operands.workspace) + library_bytes();
  const Variant& variant = IsAligned(operands) ? aligned_ : unaligned_;
  if (variant.before != nullptr) variant.before->Run(&operands.bias, &operands.d, nullptr, stream);
  variant.product->Run(operands, stream);
  if (variant.after == nullptr) return;
  const void* const inputs[] = {operands.d, operands.bias};
  variant.after->Run(inputs, &out, nullptr, stream);
}

}  // namespace tfjob::kernels::cuda
