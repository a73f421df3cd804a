// Implements ApplyOptimizer (optimizer/apply_kernel.h) with the kernels of update.cu.
#include <cmath>

#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/parameters.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/optimizer/part.h"

namespace tfjob::kernels::cuda {
namespace {

using optimizer::Kind;
using optimizer::Optimizer;

constexpr size_t kStep = 0, kGradient = 1, kVariable = 2, kFirstSlot = 3;

// Updates one variable. `Parameter` is complete except for the pointers.
template <typename Parameter>
class UpdateKernel final : public Kernel {
 public:
  UpdateKernel(Launcher launcher, const char* name, const Parameter& parameter, int slots)
      : launcher_(std::move(launcher)), name_(name), parameter_(parameter), slots_(slots) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    Parameter p = parameter_;
    if constexpr (std::is_same_v<Parameter, AdamParameter>)
      p.step = static_cast<const int64_t*>(inputs[kStep]);
    UpdateTensor& tensor = p.update.tensor[0];
    tensor.variable = static_cast<float*>(outputs[0]);
    tensor.gradient = static_cast<const float*>(inputs[kGradient]);
    tensor.first = slots_ > 0 ? static_cast<float*>(outputs[1]) : nullptr;
    tensor.second = slots_ > 1 ? static_cast<float*>(outputs[2]) : nullptr;
    Submit(launcher_, name_, {static_cast<unsigned>(p.update.first_block[1])}, {kUpdateThreads}, p,
           stream);
  }

 private:
  const Launcher launcher_;
  const char* const name_;
  const Parameter parameter_;
  const int slots_;
};

// Returns Unimplemented for options that the kernels lack.
Status CheckOptions(const Optimizer& o, const Attributes& attributes) {
  const auto lacks = [&o](const char* option) {
    return Unimplemented("no CUDA kernel for ", Name(o.kind), option);
  };
  if (o.kind != Kind::kSgd && o.kind != Kind::kAdam) return lacks("");
  if (o.schedule.decay != optimizer::Decay::kNone) return lacks(" with a learning-rate schedule");
  if (o.weight_decay != 0) return lacks(" with weight_decay");
  if (o.use_ema) return lacks(" with use_ema");
  if (o.gradient_accumulation_steps != 0 ||
      optimizer::PartOf(attributes) != optimizer::Part::kWhole)
    return lacks(" with gradient_accumulation_steps");
  if (o.kind == Kind::kAdam && o.amsgrad) return lacks(" with amsgrad");
  if (attributes.Find<std::string>("constraint") != nullptr) return lacks(" with a constraint");
  return OkStatus();
}

Status CheckUpdate(const Optimizer& o, const KernelRequest& request) {
  const auto slots = static_cast<size_t>(optimizer::SlotCount(o));
  RETURN_IF_ERROR(cpu::ExpectOperands(request, kFirstSlot + slots, 1 + slots));
  RETURN_IF_ERROR(cpu::ExpectInt64Scalar(request.inputs[kStep]));
  const Operand& variable = request.inputs[kVariable];
  for (size_t i = kGradient; i < request.inputs.size(); ++i) {
    const Operand& input = request.inputs[i];
    if (input.dtype != DType::kFloat32) return cpu::NoKernelFor(input.dtype);
    if (input.shape != variable.shape)
      return InvalidArgument("input ", i, " is ", input.ToString(), ", the variable ",
                             variable.ToString());
    // The device's variables and gradients have no padding.
    if (!input.dense()) return Unimplemented("an update of padded rows");
    if (i >= kVariable && request.outputs[i - kVariable] != input)
      return InvalidArgument("output ", i - kVariable, " must be input ", i, " itself");
  }
  return CheckCount(variable);
}

Prepared PrepareUpdate(const Launcher& launcher, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Optimizer o, optimizer::FromAttributes(request.attributes));
  RETURN_IF_ERROR(CheckOptions(o, request.attributes));
  RETURN_IF_ERROR(CheckUpdate(o, request));
  UpdateTensors update{};
  update.tensors = 1;
  update.tensor[0].count = request.inputs[kVariable].shape.num_elements();
  update.first_block[1] = static_cast<int32_t>(Blocks(update.tensor[0].count, kUpdateChunk));
  const auto rate = static_cast<float>(o.learning_rate);
  if (o.kind == Kind::kSgd) {
    const SgdParameter sgd{update, rate, static_cast<float>(o.momentum), o.nesterov ? 1 : 0};
    return std::make_unique<UpdateKernel<SgdParameter>>(launcher, "ApplySgd", sgd,
                                                        optimizer::SlotCount(o));
  }
  const AdamParameter adam{.update = update,
                           .step = nullptr,
                           .learning_rate = rate,
                           .epsilon = static_cast<float>(o.epsilon),
                           .take_1 = static_cast<float>(1 - o.beta_1),
                           .take_2 = static_cast<float>(1 - o.beta_2),
                           .log_beta_1 = static_cast<float>(std::log(o.beta_1)),
                           .log_beta_2 = static_cast<float>(std::log(o.beta_2))};
  return std::make_unique<UpdateKernel<AdamParameter>>(launcher, "ApplyAdam", adam,
                                                       optimizer::SlotCount(o));
}

}  // namespace

KernelTable::Entries UpdateKernels(const Launcher& launcher) {
  std::vector<InPlace> in_place;
  for (int i = 0; i <= optimizer::kMaxSlots; ++i)
    in_place.push_back({i, static_cast<int>(kVariable) + i, InPlace::kAlways});
  return {{"ApplyOptimizer",
           {[launcher](const KernelRequest& r) { return PrepareUpdate(launcher, r); },
            std::move(in_place)}}};
}

}  // namespace tfjob::kernels::cuda
