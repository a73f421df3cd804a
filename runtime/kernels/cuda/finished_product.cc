#include "runtime/kernels/cuda/finished_product.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/kernels/cuda/families.h"

namespace tfjob::kernels::cuda {
namespace {

bool IsAligned(const ProductOperands& operands) {
  uintptr_t addresses = 0;
  for (const void* address :
       {operands.a, operands.b, operands.bias, static_cast<const void*>(operands.d)})
    addresses |= reinterpret_cast<uintptr_t>(address);
  return addresses % 16 == 0;
}

// Returns the epilogue that the library can compute if the addresses are aligned.
ProductEpilogue LibraryPart(const Finish& finish) {
  const bool relu = finish.activation == "Relu";
  if (finish.bias) return relu ? ProductEpilogue::kReluBias : ProductEpilogue::kBias;
  return relu ? ProductEpilogue::kRelu : ProductEpilogue::kNone;
}

// Returns the elementwise program "Add i0 i1; Relu t0", or a part of it.
std::string ProgramOf(const Finish& finish) {
  if (finish.activation.empty()) return finish.bias ? "Add i0 i1" : "";
  return StrCat(finish.bias ? "Add i0 i1; " : "", finish.activation, finish.bias ? " t0" : " i0");
}

}  // namespace

ProductDescription DescriptionOf(const cpu::ProductLayout& layout, Arithmetic arithmetic) {
  return {.m = layout.n,
          .n = layout.m,
          .k = layout.k,
          .a = {.transposed = layout.transpose_b, .ld = layout.b_stride},
          .b = {.transposed = layout.transpose_a, .ld = layout.a_stride},
          .ldd = layout.c_stride,
          .arithmetic = arithmetic};
}

StatusOr<FinishedProduct::Variant> FinishedProduct::PrepareVariant(
    const GpuAccess& gpu, const ProductDescription& product, const Finish& rest,
    const Operand& out) {
  Variant variant;
  ASSIGN_OR_RETURN(variant.product, gpu.products->Prepare(product));
  const std::string program = ProgramOf(rest);
  if (program.empty()) return variant;
  std::vector<Operand> inputs = {out};
  if (rest.bias) inputs.push_back(Operand::Dense(out.dtype, Shape({out.cols()})));
  ASSIGN_OR_RETURN(variant.program, PrepareProgram(gpu.launcher, inputs, out, program));
  return variant;
}

StatusOr<std::unique_ptr<FinishedProduct>> FinishedProduct::Prepare(
    const GpuAccess& gpu, const ProductDescription& product, const Finish& finish,
    const Operand& out) {
  ProductDescription aligned = product, unaligned = product;
  unaligned.alignment = sizeof(float);
  Finish rest = finish;
  if (product.batch == 1) {  // otherwise, the library would add the same bias to every product
    aligned.epilogue = LibraryPart(finish);
    rest = {.activation = finish.activation == "Relu" ? "" : finish.activation};
  }
  ASSIGN_OR_RETURN(Variant fast, PrepareVariant(gpu, aligned, rest, out));
  ASSIGN_OR_RETURN(Variant any, PrepareVariant(gpu, unaligned, finish, out));
  return std::unique_ptr<FinishedProduct>(new FinishedProduct(std::move(fast), std::move(any)));
}

size_t FinishedProduct::workspace_bytes() const {
  const size_t bytes =
      std::max(aligned_.product->workspace_bytes(), unaligned_.product->workspace_bytes());
  return bytes == 0 ? 0 : bytes + device::cuda::kBlasWorkspaceAlignment;
}

void FinishedProduct::Run(ProductOperands operands, Stream& stream) const {
  constexpr uintptr_t kAlignment = device::cuda::kBlasWorkspaceAlignment;
  const auto workspace = reinterpret_cast<uintptr_t>(operands.workspace);
  operands.workspace =
      reinterpret_cast<void*>((workspace + kAlignment - 1) / kAlignment * kAlignment);
  const Variant& variant = IsAligned(operands) ? aligned_ : unaligned_;
  variant.product->Run(operands, stream);
  if (variant.program == nullptr) return;
  const void* const inputs[] = {operands.d, operands.bias};
  variant.program->Run(inputs, &operands.d, nullptr, stream);
}

}  // namespace tfjob::kernels::cuda
