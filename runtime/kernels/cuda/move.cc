// Implements the ops that copy tensors of any dtype, with the kernel of cast.cu.
#include "runtime/kernels/cuda/families.h"

namespace tfjob::kernels::cuda {
namespace {

// Copies one of its inputs.
class CopyOfInput final : public Kernel {
 public:
  CopyOfInput(std::unique_ptr<Kernel> copy, size_t input) : copy_(std::move(copy)), input_(input) {}

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    copy_->Run(inputs + input_, outputs, workspace, stream);
  }

 private:
  const std::unique_ptr<Kernel> copy_;
  const size_t input_;
};

Prepared PrepareCopyOf(const Launcher& launcher, const KernelRequest& request, size_t input,
                       Writes writes) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, input + 1, 1));
  const Operand &in = request.inputs[input], &out = request.outputs[0];
  if (in.dtype != out.dtype || in.shape.num_elements() != out.shape.num_elements())
    return InvalidArgument("a copy of ", in.ToString(), " as ", out.ToString());
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> copy, PrepareCopy(launcher, in, out, writes));
  return std::make_unique<CopyOfInput>(std::move(copy), input);
}

}  // namespace

KernelTable::Entries MoveKernels(const Launcher& launcher) {
  const auto copy_of = [&launcher](size_t input, Writes writes) {
    return [launcher, input, writes](const KernelRequest& request) {
      return PrepareCopyOf(launcher, request, input, writes);
    };
  };
  return {{"Identity", {copy_of(0, Writes::kValue), {{0, 0}}}},
          {"Reshape", {copy_of(0, Writes::kValue), {{0, 0}}}},
          {"Assign", {copy_of(1, Writes::kVariable), {{0, 0, InPlace::kAlways}}}}};
}

}  // namespace tfjob::kernels::cuda
