// Declares the families of kernels, from which table.cc makes the table, and the functions that the
// families share.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/kernels/cpu/prepare.h"
#include "runtime/kernels/cuda/parameters.h"
#include "runtime/kernels/cuda/table.h"
#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cuda {

KernelTable::Entries ElementwiseKernels(const Launcher& launcher);
KernelTable::Entries MoveKernels(const Launcher& launcher);
KernelTable::Entries ReduceKernels(const Launcher& launcher);
KernelTable::Entries SoftmaxKernels(const Launcher& launcher);
KernelTable::Entries AttentionKernels(const Launcher& launcher);
KernelTable::Entries NormalizationKernels(const Launcher& launcher);
KernelTable::Entries RandomKernels(const Launcher& launcher);
KernelTable::Entries GatherKernels(const Launcher& launcher);
KernelTable::Entries LayoutKernels(const Launcher& launcher);
KernelTable::Entries SelectKernels(const Launcher& launcher);
KernelTable::Entries CastKernels(const Launcher& launcher);
KernelTable::Entries NumberKernels(const Launcher& launcher);
KernelTable::Entries UpdateKernels(const Launcher& launcher);
KernelTable::Entries PoolingKernels(const Launcher& launcher);
KernelTable::Entries ImageTransformKernels(const Launcher& launcher);
KernelTable::Entries BatchNormKernels(const Launcher& launcher);
KernelTable::Entries MatMulKernels(const GpuAccess& gpu);
KernelTable::Entries MatMulBiasGradKernels(const GpuAccess& gpu);
KernelTable::Entries MatMulGeluKernels(const GpuAccess& gpu);
KernelTable::Entries ConvolutionKernels(const GpuAccess& gpu);

using cpu::Prepared;

// Submits a launch of a kernel with this parameter.
template <typename Parameter>
void Submit(const Launcher& launcher, const char* kernel, Grid grid, Grid block,
            const Parameter& parameter, Stream& stream) {
  static_assert(sizeof(Parameter) <= 4096, "CUDA's limit for parameters");
  launcher({kernel, grid, block, &parameter, sizeof parameter}, stream);
}

// Returns the stream's Refusal as an array of numbers, which kernels can access.
inline int64_t* RefusalOf(const Stream& stream) {
  static_assert(sizeof(Refusal) == 3 * sizeof(int64_t));
  return reinterpret_cast<int64_t*>(stream.refusal());
}

// Returns the number of blocks of `size` elements that cover `count` elements.
inline unsigned Blocks(int64_t count, int64_t size) {
  return static_cast<unsigned>((count + size - 1) / size);
}

// Returns Unimplemented if the tensor has too many elements for the 32-bit indices that kernels
// use.
Status CheckCount(const Operand& operand);
// Returns Unimplemented unless all operands are float32.
Status ExpectFloat32(const KernelRequest& request);
// Returns Unimplemented for dtypes other than float32 and the half types.
StatusOr<FloatType> FloatTypeOf(DType dtype);
// Returns the type that all operands have, or Unimplemented if their types differ.
StatusOr<FloatType> FloatTypeOf(const KernelRequest& request);
// Like FloatTypeOf(request), but for the given operands.
StatusOr<FloatType> FloatTypeOf(std::initializer_list<const Operand*> operands);

// Returns Unimplemented for dtypes other than those of CastType.
StatusOr<CastType> CastTypeOf(DType dtype);

// Returns whether elementwise kernels can read the input, which is broadcast to `out`, in place.
bool HasElementLayout(const Operand& input, const Operand& out);
// Specifies whether a kernel updates a variable. A variable must keep its value if any kernel of
// the program has refused its inputs.
enum class Writes : uint8_t { kValue, kVariable };

// Prepares an elementwise program (ops.md, "FusedElementwise"), in which Copy is an additional op.
// The operands may have different types, as long as each is a FloatType.
Prepared PrepareProgram(const Launcher& launcher, const std::vector<Operand>& inputs,
                        const Operand& out, const std::string& program,
                        Writes writes = Writes::kValue);
// Prepares a copy of all elements in row-major order. The shapes may differ. If the dtypes differ,
// each element is converted.
Prepared PrepareCopy(const Launcher& launcher, const Operand& in, const Operand& out,
                     Writes writes = Writes::kValue);
// Prepares an AssignAdd of float32 values to a float64 variable.
Prepared PrepareAddToDoubles(const Launcher& launcher, const KernelRequest& request);
// Prepares the op Transpose.
Prepared PrepareTranspose(const Launcher& launcher, const KernelRequest& request);
// Prepares a kernel that sets every element to `value`.
Prepared PrepareFill(const Launcher& launcher, const Operand& out, double value);
// Returns a kernel that sums the rows of a dense float32 matrix, which must have at least one row.
std::unique_ptr<Kernel> MakeColumnSums(const Launcher& launcher, int64_t rows, int64_t cols);

}  // namespace tfjob::kernels::cuda
