// Implements the host's side of cast.cu.
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

class CastKernel final : public Kernel {
 public:
  CastKernel(Launcher launcher, const CastParameter& parameter, Writes writes)
      : launcher_(std::move(launcher)), parameter_(parameter), writes_(writes) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    CastParameter p = parameter_;
    p.in = inputs[0];
    p.out = outputs[0];
    if (writes_ == Writes::kVariable) p.refusal = RefusalOf(stream);
    Submit(launcher_, "Cast", {Blocks(p.count, kCastThreads)}, {kCastThreads}, p, stream);
  }

 private:
  const Launcher launcher_;
  const CastParameter parameter_;
  const Writes writes_;
};

// Adds its second input to a variable, its first input.
class AddToDoublesKernel final : public Kernel {
 public:
  AddToDoublesKernel(Launcher launcher, const CastParameter& parameter)
      : launcher_(std::move(launcher)), parameter_(parameter) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    CastParameter p = parameter_;
    p.in = inputs[1];
    p.out = outputs[0];
    p.refusal = RefusalOf(stream);
    Submit(launcher_, "AddToDoubles", {Blocks(p.count, kCastThreads)}, {kCastThreads}, p, stream);
  }

 private:
  const Launcher launcher_;
  const CastParameter parameter_;
};

// Returns the parameter without the pointers.
StatusOr<CastParameter> ParameterOf(const Operand& in, const Operand& out) {
  RETURN_IF_ERROR(CheckCount(in));
  ASSIGN_OR_RETURN(const CastType from, CastTypeOf(in.dtype));
  ASSIGN_OR_RETURN(const CastType to, CastTypeOf(out.dtype));
  return CastParameter{.in = nullptr,
                       .out = nullptr,
                       .in_stride = in.row_stride,
                       .out_stride = out.row_stride,
                       .count = static_cast<uint32_t>(in.shape.num_elements()),
                       .in_cols = static_cast<uint32_t>(in.cols()),
                       .out_cols = static_cast<uint32_t>(out.cols()),
                       .from = from,
                       .to = to,
                       .refusal = nullptr};
}

}  // namespace

StatusOr<CastType> CastTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return CastType::kFloat32;
    case DType::kFloat64:
      return CastType::kFloat64;
    case DType::kInt32:
      return CastType::kInt32;
    case DType::kInt64:
      return CastType::kInt64;
    case DType::kUInt8:
      return CastType::kUInt8;
    case DType::kBool:
      return CastType::kBool;
    case DType::kBFloat16:
      return CastType::kBFloat16;
    case DType::kFloat16:
      return CastType::kFloat16;
    default:
      return cpu::NoKernelFor(dtype);
  }
}

Prepared PrepareCopy(const Launcher& launcher, const Operand& in, const Operand& out,
                     Writes writes) {
  ASSIGN_OR_RETURN(const CastParameter parameter, ParameterOf(in, out));
  return std::make_unique<CastKernel>(launcher, parameter, writes);
}

Prepared PrepareAddToDoubles(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectShape(request.inputs[1], request.outputs[0].shape));
  ASSIGN_OR_RETURN(const CastParameter parameter,
                   ParameterOf(request.inputs[1], request.outputs[0]));
  return std::make_unique<AddToDoublesKernel>(launcher, parameter);
}

// Prepares the fast kernel for elementwise programs if it supports the types.
Prepared PrepareCast(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 1, 1));
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  RETURN_IF_ERROR(cpu::ExpectShape(out, in.shape));
  if (FloatTypeOf(in.dtype).ok() && FloatTypeOf(out.dtype).ok())
    return PrepareProgram(launcher, {in}, out, "Copy i0");
  return PrepareCopy(launcher, in, out);
}

KernelTable::Entries CastKernels(const Launcher& launcher) {
  return {{"Cast", {[launcher](const KernelRequest& r) { return PrepareCast(launcher, r); }, {}}}};
}

}  // namespace tfjob::kernels::cuda
