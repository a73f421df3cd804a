// Implements ApplyOptimizer and ApplyOptimizerRows (optimizer/apply_kernel.h) and ApplyOptimizers
// (ops.md) with the kernels of update.cu and learning_rate.cu.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>

#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/general_update.h"
#include "runtime/kernels/cuda/parameters.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/optimizer/part.h"

namespace tfjob::kernels::cuda {
namespace {

using optimizer::Kind;
using optimizer::Optimizer;

constexpr size_t kStep = 0, kGradient = 1, kVariable = 2, kFirstSlot = 3;
// The inputs of ApplyOptimizerRows.
constexpr size_t kRows = 1, kValues = 2, kTable = 3, kFirstSlotOfRows = 4;

// The largest number of variables and slots that ApplyOptimizers is expected to update.
constexpr int kMostGroupedOperands = 256;

// Computes the learning rate of a step, if there is a schedule.
class ScheduledRate {
 public:
  explicit ScheduledRate(const LearningRateParameter& parameter) : parameter_(parameter) {}

  size_t workspace_bytes() const { return changes() ? kBytes : 0; }
  // The number of bytes at the start of the workspace that are reserved for the rate.
  static constexpr size_t kBytes = 64;

  UpdateRate Submit(const Launcher& launcher, const void* step, void* workspace,
                    Stream& stream) const {
    const auto constant = static_cast<float>(parameter_.initial);
    if (!changes()) return {nullptr, constant};
    LearningRateParameter p = parameter_;
    p.step = static_cast<const int64_t*>(step);
    p.rate = static_cast<float*>(workspace);
    cuda::Submit(launcher, "LearningRate", {1}, {1}, p, stream);
    return {p.rate, constant};
  }

 private:
  bool changes() const { return parameter_.decay != RateDecay::kNone; }

  const LearningRateParameter parameter_;
};

AdamCoefficients CoefficientsOf(const Optimizer& o, AdamCoefficients) {
  return {.step = nullptr,
          .refusal = nullptr,
          .rate = {},
          .epsilon = static_cast<float>(o.epsilon),
          .take_1 = static_cast<float>(1 - o.beta_1),
          .take_2 = static_cast<float>(1 - o.beta_2),
          .log_beta_1 = static_cast<float>(std::log(o.beta_1)),
          .log_beta_2 = static_cast<float>(std::log(o.beta_2)),
          .weight_decay = static_cast<float>(o.weight_decay)};
}

SgdCoefficients CoefficientsOf(const Optimizer& o, SgdCoefficients) {
  return {.refusal = nullptr,
          .rate = {},
          .momentum = static_cast<float>(o.momentum),
          .weight_decay = static_cast<float>(o.weight_decay),
          .nesterov = o.nesterov ? 1 : 0};
}

// Return the coefficients in a kernel's parameter.
AdamCoefficients& CoefficientsIn(AdamParameter& p) {
  return p.adam;
}
AdamCoefficients& CoefficientsIn(AdamRowsParameter& p) {
  return p.adam;
}
SgdCoefficients& CoefficientsIn(SgdParameter& p) {
  return p.sgd;
}
SgdCoefficients& CoefficientsIn(SgdRowsParameter& p) {
  return p.sgd;
}

// Sets the members that are known only when the kernel runs.
template <typename Parameter>
void Complete(Parameter& p, const UpdateRate& rate, const void* step, Stream& stream) {
  auto& coefficients = CoefficientsIn(p);
  coefficients.rate = rate;
  coefficients.refusal = RefusalOf(stream);
  if constexpr (requires { coefficients.step; })
    coefficients.step = static_cast<const int64_t*>(step);
}

float* SlotAt(void* const* outputs, int slot, int slots) {
  return slot < slots ? static_cast<float*>(outputs[1 + slot]) : nullptr;
}

// A variable to update: its number of elements, and the type of its gradient.
struct UpdatedVariable {
  int64_t count = 0;
  FloatType gradient = FloatType::kFloat32;
};

// Updates variables that have the same optimizer, up to kUpdateTensors of them in one launch. Its
// parameter is complete except for the tensors and the rate.
template <typename Parameter>
class UpdateKernel final : public Kernel {
 public:
  // The gradients follow the step, which is the input at index `step`.
  UpdateKernel(Launcher launcher, const char* name, const Parameter& parameter,
               const ScheduledRate& rate, int slots, std::vector<UpdatedVariable> variables,
               size_t step)
      : launcher_(std::move(launcher)),
        name_(name),
        parameter_(parameter),
        rate_(rate),
        slots_(slots),
        variables_(std::move(variables)),
        step_(step) {}

  size_t workspace_bytes() const override { return rate_.workspace_bytes(); }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    Parameter p = parameter_;
    const void* const step = inputs[step_];
    Complete(p, rate_.Submit(launcher_, step, workspace, stream), step, stream);
    for (size_t first = 0; first < variables_.size(); first += kUpdateTensors) {
      SetTensors(p.update, first, inputs + step_ + 1, outputs);
      const auto blocks = static_cast<unsigned>(p.update.first_block[p.update.tensors]);
      Submit(launcher_, name_, {blocks}, {kUpdateThreads}, p, stream);
    }
  }

 private:
  // Sets the tensors to the variables from `first` on, as many as fit.
  void SetTensors(UpdateTensors& update, size_t first, const void* const* gradients,
                  void* const* outputs) const {
    update.tensors = 0;
    for (size_t i = first; i < variables_.size() && update.tensors < kUpdateTensors; ++i) {
      void* const* const written = outputs + i * static_cast<size_t>(1 + slots_);
      const int at = update.tensors++;
      update.tensor[at] = {.variable = static_cast<float*>(written[0]),
                           .gradient = gradients[i],
                           .first = SlotAt(written, 0, slots_),
                           .second = SlotAt(written, 1, slots_),
                           .count = variables_[i].count,
                           .gradient_type = variables_[i].gradient};
      update.first_block[at + 1] =
          update.first_block[at] + static_cast<int32_t>(Blocks(variables_[i].count, kUpdateChunk));
    }
  }

  const Launcher launcher_;
  const char* const name_;
  const Parameter parameter_;
  const ScheduledRate rate_;
  const int slots_;
  const std::vector<UpdatedVariable> variables_;
  const size_t step_;
};

// Updates several variables, one after another, each with its own kernel.
class SeparateUpdates final : public Kernel {
 public:
  // `operands` is the number of outputs of each kernel: a variable and its slots.
  SeparateUpdates(std::vector<std::unique_ptr<Kernel>> kernels, size_t operands)
      : kernels_(std::move(kernels)), operands_(operands) {}

  size_t workspace_bytes() const override {
    size_t bytes = 0;
    for (const auto& kernel : kernels_) bytes = std::max(bytes, kernel->workspace_bytes());
    return bytes;
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    const void* const* const step = inputs + kernels_.size() * operands_;
    for (size_t i = 0; i < kernels_.size(); ++i) {
      void* const* const written = outputs + i * operands_;
      std::vector<const void*> own = {step[0], step[1 + i]};
      own.insert(own.end(), written, written + operands_);
      kernels_[i]->Run(own.data(), written, workspace, stream);
    }
  }

 private:
  const std::vector<std::unique_ptr<Kernel>> kernels_;
  const size_t operands_;
};

// Updates a variable with a gradient that is given by rows.
template <typename Parameter>
class UpdateRowsKernel final : public Kernel {
 public:
  UpdateRowsKernel(Launcher launcher, const char* name, const Parameter& parameter,
                   const ScheduledRate& rate, int slots, std::optional<RowIndex> index)
      : launcher_(std::move(launcher)),
        name_(name),
        parameter_(parameter),
        rate_(rate),
        slots_(slots),
        index_(std::move(index)) {}

  size_t workspace_bytes() const override {
    return ScheduledRate::kBytes + (index_ ? index_->bytes() : 0);
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    Parameter p = parameter_;
    Complete(p, rate_.Submit(launcher_, inputs[kStep], workspace, stream), inputs[kStep], stream);
    RowUpdate& update = p.update;
    update.variable = static_cast<float*>(outputs[0]);
    update.first = SlotAt(outputs, 0, slots_);
    update.second = SlotAt(outputs, 1, slots_);
    update.values = inputs[kValues];
    update.rows = static_cast<const int64_t*>(inputs[kRows]);
    if (index_) {
      void* const space = static_cast<std::byte*>(workspace) + ScheduledRate::kBytes;
      update.index = index_->Submit(update.rows, space, stream);
    }
    Submit(launcher_, name_, {Blocks(update.count, kUpdateThreads)}, {kUpdateThreads}, p, stream);
  }

 private:
  const Launcher launcher_;
  const char* const name_;
  const Parameter parameter_;
  const ScheduledRate rate_;
  const int slots_;
  const std::optional<RowIndex> index_;  // set if rows without a gradient change, too
};

bool IsAdam(const Optimizer& o) {
  return o.kind == Kind::kAdam || o.kind == Kind::kAdamW;
}

// Returns Unimplemented for options that the kernels do not support.
Status CheckOptions(const Optimizer& o, const Attributes& attributes) {
  if (attributes.Find<std::string>("constraint") == nullptr) return OkStatus();
  return Unimplemented("no CUDA kernel for ", Name(o.kind), " with a constraint");
}

// Checks the variable and its slots, which are the inputs starting at index `variable`.
Status CheckVariable(const KernelRequest& request, size_t variable) {
  RETURN_IF_ERROR(cpu::ExpectInt64Scalar(request.inputs[kStep]));
  for (size_t i = variable; i < request.inputs.size(); ++i) {
    const Operand& input = request.inputs[i];
    if (input.dtype != DType::kFloat32) return cpu::NoKernelFor(input.dtype);
    RETURN_IF_ERROR(cpu::ExpectShape(input, request.inputs[variable].shape));
    if (request.outputs[i - variable] != input)
      return InvalidArgument("output ", i - variable, " must be input ", i, " itself");
  }
  return CheckCount(request.inputs[variable]);
}

Status CheckUpdate(const Optimizer& o, const KernelRequest& request) {
  const auto slots = static_cast<size_t>(optimizer::SlotCount(o));
  RETURN_IF_ERROR(cpu::ExpectOperands(request, kFirstSlot + slots, 1 + slots));
  RETURN_IF_ERROR(CheckVariable(request, kVariable));
  const Operand& gradient = request.inputs[kGradient];
  RETURN_IF_ERROR(FloatTypeOf(gradient.dtype).status());
  RETURN_IF_ERROR(cpu::ExpectShape(gradient, request.inputs[kVariable].shape));
  return OkStatus();
}

// Returns whether only GeneralUpdate implements the optimizer.
bool NeedsGeneralUpdate(const Optimizer& o, const Attributes& attributes) {
  const bool whole = optimizer::PartOf(attributes) == optimizer::Part::kWhole;
  return (o.kind != Kind::kSgd && !IsAdam(o)) || o.use_ema || o.gradient_accumulation_steps != 0 ||
         !whole || (IsAdam(o) && o.amsgrad);
}

// Returns whether the fast kernels implement the update of one variable.
bool HasFastKernel(const Optimizer& o, const KernelRequest& request) {
  return std::ranges::all_of(request.inputs, &Operand::dense) &&
         !NeedsGeneralUpdate(o, request.attributes);
}

StatusOr<UpdatedVariable> VariableOf(const KernelRequest& request) {
  ASSIGN_OR_RETURN(const FloatType gradient, FloatTypeOf(request.inputs[kGradient].dtype));
  return UpdatedVariable{request.inputs[kVariable].shape.num_elements(), gradient};
}

// Prepares the fast update of these variables.
Prepared PrepareFastUpdate(const Launcher& launcher, const Optimizer& o,
                           std::vector<UpdatedVariable> variables, size_t step) {
  ASSIGN_OR_RETURN(const LearningRateParameter schedule, ScheduleOf(o));
  const ScheduledRate rate(schedule);
  const int slots = optimizer::SlotCount(o);
  if (IsAdam(o)) {
    const AdamParameter adam{{}, CoefficientsOf(o, AdamCoefficients())};
    return std::make_unique<UpdateKernel<AdamParameter>>(launcher, "ApplyAdam", adam, rate, slots,
                                                         std::move(variables), step);
  }
  const SgdParameter sgd{{}, CoefficientsOf(o, SgdCoefficients())};
  return std::make_unique<UpdateKernel<SgdParameter>>(launcher, "ApplySgd", sgd, rate, slots,
                                                      std::move(variables), step);
}

Prepared PrepareUpdate(const Launcher& launcher, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Optimizer o, optimizer::FromAttributes(request.attributes));
  RETURN_IF_ERROR(CheckOptions(o, request.attributes));
  RETURN_IF_ERROR(CheckUpdate(o, request));
  if (!HasFastKernel(o, request)) return PrepareGeneralUpdate(launcher, request, o);
  ASSIGN_OR_RETURN(const UpdatedVariable variable, VariableOf(request));
  return PrepareFastUpdate(launcher, o, {variable}, kStep);
}

// Returns the updates of an ApplyOptimizers as requests for ApplyOptimizer.
StatusOr<std::vector<KernelRequest>> SeparateRequests(const Optimizer& o,
                                                      const KernelRequest& request) {
  const auto operands = 1 + static_cast<size_t>(optimizer::SlotCount(o));
  const size_t count = request.outputs.size() / operands, step = request.outputs.size();
  RETURN_IF_ERROR(cpu::ExpectOperands(request, step + 1 + count, count * operands));
  std::vector<KernelRequest> updates;
  for (size_t i = 0; i < count; ++i) {
    KernelRequest& update = updates.emplace_back();
    update = {"ApplyOptimizer", request.attributes, {}, {}};
    update.inputs = {request.inputs[step], request.inputs[step + 1 + i]};
    for (size_t j = i * operands; j < (i + 1) * operands; ++j) {
      update.inputs.push_back(request.inputs[j]);
      update.outputs.push_back(request.outputs[j]);
    }
  }
  return updates;
}

Prepared PrepareUpdates(const Launcher& launcher, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Optimizer o, optimizer::FromAttributes(request.attributes));
  RETURN_IF_ERROR(CheckOptions(o, request.attributes));
  ASSIGN_OR_RETURN(const std::vector<KernelRequest> updates, SeparateRequests(o, request));
  std::vector<UpdatedVariable> variables;
  for (const KernelRequest& update : updates) {
    RETURN_IF_ERROR(CheckUpdate(o, update));
    if (!HasFastKernel(o, update)) continue;
    ASSIGN_OR_RETURN(variables.emplace_back(), VariableOf(update));
  }
  if (variables.size() == updates.size())
    return PrepareFastUpdate(launcher, o, std::move(variables), request.outputs.size());
  std::vector<std::unique_ptr<Kernel>> kernels;
  for (const KernelRequest& update : updates) {
    ASSIGN_OR_RETURN(kernels.emplace_back(), PrepareUpdate(launcher, update));
  }
  return std::make_unique<SeparateUpdates>(std::move(kernels), updates[0].outputs.size());
}

Status CheckRowUpdate(const Optimizer& o, const KernelRequest& request) {
  const auto slots = static_cast<size_t>(optimizer::SlotCount(o));
  RETURN_IF_ERROR(cpu::ExpectOperands(request, kFirstSlotOfRows + slots, 1 + slots));
  RETURN_IF_ERROR(CheckVariable(request, kTable));
  const Operand &rows = request.inputs[kRows], &values = request.inputs[kValues];
  const Operand& table = request.inputs[kTable];
  if (values.dtype != DType::kFloat32) return cpu::NoKernelFor(values.dtype);
  if (table.shape.rank() != 2 || values.shape.rank() != 2 || values.cols() != table.cols() ||
      rows.dtype != DType::kInt64 || rows.shape != Shape{values.shape.dim(0)}) {
    return InvalidArgument("rows ", values.ToString(), " with indices ", rows.ToString(),
                           " do not fit the variable ", table.ToString());
  }
  return CheckCount(values);
}

template <typename Parameter>
Prepared MakeRowUpdate(const Launcher& launcher, const KernelRequest& request, const Optimizer& o,
                       const char* name) {
  ASSIGN_OR_RETURN(const LearningRateParameter schedule, ScheduleOf(o));
  const ScheduledRate rate(schedule);
  const Operand &values = request.inputs[kValues], &table = request.inputs[kTable];
  const bool all = !optimizer::KeepsRows(o);
  const auto stride = [&request](size_t slot) {
    const size_t input = kFirstSlotOfRows + slot;
    return input < request.inputs.size() ? request.inputs[input].row_stride : 0;
  };
  Parameter p{};
  CoefficientsIn(p) = CoefficientsOf(o, CoefficientsIn(p));
  p.update.variable_stride = table.row_stride;
  p.update.first_stride = stride(0);
  p.update.second_stride = stride(1);
  p.update.values_stride = values.row_stride;
  p.update.variable_rows = table.shape.dim(0);
  p.update.count = static_cast<uint32_t>((all ? table : values).shape.num_elements());
  p.update.cols = static_cast<uint32_t>(table.cols());
  std::optional<RowIndex> index;
  if (all) {
    ASSIGN_OR_RETURN(index, RowIndex::Create(launcher, values.shape.dim(0), table.shape.dim(0)));
  }
  return std::make_unique<UpdateRowsKernel<Parameter>>(launcher, name, p, rate,
                                                       optimizer::SlotCount(o), std::move(index));
}

Prepared PrepareRowUpdate(const Launcher& launcher, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Optimizer o, optimizer::FromAttributes(request.attributes));
  RETURN_IF_ERROR(CheckOptions(o, request.attributes));
  RETURN_IF_ERROR(CheckRowUpdate(o, request));
  if (NeedsGeneralUpdate(o, request.attributes)) return PrepareGeneralUpdate(launcher, request, o);
  if (IsAdam(o)) return MakeRowUpdate<AdamRowsParameter>(launcher, request, o, "ApplyAdamRows");
  return MakeRowUpdate<SgdRowsParameter>(launcher, request, o, "ApplySgdRows");
}

// Returns rules by which each output uses the memory of an input, beginning with the input at index
// `variable`. An op has at most `outputs` outputs.
std::vector<InPlace> InPlaceFrom(size_t variable, int outputs = 1 + optimizer::kMaxSlots) {
  std::vector<InPlace> in_place;
  for (int i = 0; i < outputs; ++i)
    in_place.push_back({i, static_cast<int>(variable) + i, InPlace::kAlways});
  return in_place;
}

}  // namespace

KernelTable::Entries UpdateKernels(const Launcher& launcher) {
  return {{"ApplyOptimizer",
           {[launcher](const KernelRequest& r) { return PrepareUpdate(launcher, r); },
            InPlaceFrom(kVariable)}},
          {"ApplyOptimizers",
           {[launcher](const KernelRequest& r) { return PrepareUpdates(launcher, r); },
            InPlaceFrom(0, kMostGroupedOperands)}},
          {"ApplyOptimizerRows",
           {[launcher](const KernelRequest& r) { return PrepareRowUpdate(launcher, r); },
            InPlaceFrom(kTable)}}};
}

}  // namespace tfjob::kernels::cuda
