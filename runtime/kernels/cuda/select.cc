// Implements the host's side of select.cu.
#include <algorithm>

#include "runtime/kernels/cpu/requests.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/launch_kernel.h"
#include "runtime/kernels/cuda/loops_of.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// Returns a kernel that computes the output in blocks of `elements` elements. `fill` sets the
// pointers in the parameter.
template <typename Parameter, typename Fill>
Prepared MakeElements(const Launcher& launcher, const char* name, const Parameter& parameter,
                      int elements, Fill fill) {
  return MakeLaunch(launcher, name, {Blocks(parameter.loops.count, elements)}, {kSelectThreads},
                    parameter, fill);
}

// Returns the loops over the output, which is operand 0. The inputs, which are operands 1, 2, …,
// are broadcast.
StatusOr<cpu::StridedLoop> BroadcastLoop(const KernelRequest& request) {
  const Operand& out = request.outputs[0];
  RETURN_IF_ERROR(CheckCount(out));
  std::vector<cpu::Strides> strides = {cpu::StridesOf(out)};
  for (const Operand& input : request.inputs) {
    ASSIGN_OR_RETURN(strides.emplace_back(), cpu::BroadcastStrides(input, out.shape));
  }
  return cpu::StridedLoop::Create(out.shape, strides);
}

Prepared PrepareCompare(const Launcher& launcher, const KernelRequest& request, CompareOp op) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 2, 1));
  const DType dtype = request.inputs[0].dtype;
  if (request.inputs[1].dtype != dtype) return InvalidArgument("the operands differ in dtype");
  if (request.outputs[0].dtype != DType::kBool) return InvalidArgument("the output must be bool");
  CompareParameter p{.op = op};
  ASSIGN_OR_RETURN(p.type, CastTypeOf(dtype));
  ASSIGN_OR_RETURN(const cpu::StridedLoop loop, BroadcastLoop(request));
  p.loops = LoopsOf(loop);
  CopyStrides(loop, 0, p.out_stride);
  CopyStrides(loop, 1, p.a_stride);
  CopyStrides(loop, 2, p.b_stride);
  return MakeElements(launcher, "Compare", p, kSelectThreads,
                      [](CompareParameter& to, const void* const* inputs, void* const* outputs) {
                        to.a = inputs[0];
                        to.b = inputs[1];
                        to.out = static_cast<bool*>(outputs[0]);
                      });
}

Prepared PrepareSelect(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 3, 1));
  const DType dtype = request.outputs[0].dtype;
  if (request.inputs[0].dtype != DType::kBool) return InvalidArgument("the condition must be bool");
  if (request.inputs[1].dtype != dtype || request.inputs[2].dtype != dtype)
    return InvalidArgument("both values must have the output's dtype ", Name(dtype));
  ASSIGN_OR_RETURN(const cpu::StridedLoop loop, BroadcastLoop(request));
  SelectParameter p{.loops = LoopsOf(loop), .bytes = MovedBytes(dtype)};
  CopyStrides(loop, 0, p.out_stride);
  CopyStrides(loop, 1, p.condition_stride);
  CopyStrides(loop, 2, p.a_stride);
  CopyStrides(loop, 3, p.b_stride);
  return MakeElements(launcher, "Select", p, kSelectThreads,
                      [](SelectParameter& to, const void* const* inputs, void* const* outputs) {
                        to.condition = static_cast<const bool*>(inputs[0]);
                        to.a = inputs[1];
                        to.b = inputs[2];
                        to.out = outputs[0];
                      });
}

Prepared PrepareArgMax(const Launcher& launcher, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const cpu::ArgMaxForm form, cpu::ArgMaxFormOf(request));
  const Operand& in = request.inputs[0];
  RETURN_IF_ERROR(CheckCount(in));
  const cpu::StridedLoop& loop = form.loop;
  ArgMaxParameter p{.loops = LoopsOf(loop), .count = form.count, .step = form.step};
  CopyStrides(loop, 0, p.out_stride);
  CopyStrides(loop, 1, p.in_stride);
  ASSIGN_OR_RETURN(p.type, FloatTypeOf(in.dtype));
  const bool contiguous = p.step == 1 && p.count > 1;
  return MakeElements(launcher, contiguous ? "ArgMaxRows" : "ArgMax", p,
                      contiguous ? kArgMaxThreads / 32 : kArgMaxThreads,
                      [](ArgMaxParameter& to, const void* const* inputs, void* const* outputs) {
                        to.in = inputs[0];
                        to.out = static_cast<int64_t*>(outputs[0]);
                      });
}

}  // namespace

KernelTable::Entries SelectKernels(const Launcher& launcher) {
  static_assert(kArgMaxThreads == kSelectThreads, "the size of a block");
  const auto compare = [&launcher](CompareOp op) -> KernelEntry {
    return {[launcher, op](const KernelRequest& r) { return PrepareCompare(launcher, r, op); }, {}};
  };
  return {
      {"Equal", compare(CompareOp::kEqual)},
      {"Greater", compare(CompareOp::kGreater)},
      {"GreaterEqual", compare(CompareOp::kGreaterEqual)},
      {"Less", compare(CompareOp::kLess)},
      {"Select", {[launcher](const KernelRequest& r) { return PrepareSelect(launcher, r); }, {}}},
      {"ArgMax", {[launcher](const KernelRequest& r) { return PrepareArgMax(launcher, r); }, {}}}};
}

}  // namespace tfjob::kernels::cuda
