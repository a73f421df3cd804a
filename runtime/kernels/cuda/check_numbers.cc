// Implements the host's side of check_numbers.cu.
#include <string>
#include <utility>

#include "runtime/kernels/cpu/requests.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

class CheckNumericsKernel final : public Kernel {
 public:
  CheckNumericsKernel(Launcher launcher, const CheckNumbersParameter& parameter,
                      std::unique_ptr<Kernel> copy, std::string message)
      : launcher_(std::move(launcher)),
        parameter_(parameter),
        copy_(std::move(copy)),
        message_(std::move(message)) {}

  size_t workspace_bytes() const override { return size_t{parameter_.blocks} * sizeof(uint32_t); }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    if (outputs[0] != inputs[0]) copy_->Run(inputs, outputs, nullptr, stream);
    if (stream.refusal() == nullptr || parameter_.count == 0) return;
    CheckNumbersParameter p = parameter_;
    p.in = inputs[0];
    p.found = static_cast<uint32_t*>(workspace);
    p.refusal = RefusalOf(stream);
    p.number =
        stream.OnRefusal([message = message_](const Refusal&) { return cpu::NotFinite(message); });
    Submit(launcher_, "FindNotFinite", {p.blocks}, {kNumberThreads}, p, stream);
    Submit(launcher_, "RefuseNotFinite", {1}, {kNumberThreads}, p, stream);
  }

 private:
  const Launcher launcher_;
  const CheckNumbersParameter parameter_;
  const std::unique_ptr<Kernel> copy_;
  const std::string message_;
};

Prepared PrepareCheckNumerics(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 1, 1));
  RETURN_IF_ERROR(cpu::ExpectAlike(request, 0, 1));
  const Operand &in = request.inputs[0], &out = request.outputs[0];
  RETURN_IF_ERROR(CheckCount(in));
  CheckNumbersParameter p{.in_stride = in.row_stride,
                          .count = static_cast<uint32_t>(in.shape.num_elements()),
                          .cols = static_cast<uint32_t>(in.cols())};
  ASSIGN_OR_RETURN(p.type, FloatTypeOf(in.dtype));
  p.blocks = Blocks(p.count, kNumberThreads * kNumbersPerThread);
  ASSIGN_OR_RETURN(auto copy, PrepareProgram(launcher, {in}, out, "Copy i0"));
  return std::make_unique<CheckNumericsKernel>(launcher, p, std::move(copy),
                                               request.attributes.Get("message", std::string()));
}

}  // namespace

KernelTable::Entries NumberKernels(const Launcher& launcher) {
  return {{"CheckNumerics",
           {[launcher](const KernelRequest& r) { return PrepareCheckNumerics(launcher, r); },
            {{0, 0}}}}};
}

}  // namespace tfjob::kernels::cuda
