#include "runtime/optimizer/apply_kernel.h"

#include <array>
#include <utility>

#include "runtime/kernels/stream.h"
#include "runtime/optimizer/apply_rows_kernel.h"
#include "runtime/optimizer/constraint.h"
#include "runtime/optimizer/update.h"

namespace tfjob::optimizer {
namespace {

using kernels::Kernel;
using kernels::KernelRequest;
using kernels::Operand;
using kernels::Stream;

constexpr size_t kStep = 0, kGradient = 1, kVariable = 2, kFirstSlot = 3;

template <typename T>
class ApplyKernel : public Kernel {
 public:
  ApplyKernel(const Optimizer& optimizer, Projection projection, const KernelRequest& request)
      : optimizer_(optimizer),
        part_(PartOf(request.attributes)),
        projection_(std::move(projection)),
        inputs_(request.inputs),
        outputs_(request.outputs) {
    // If no input has row padding, treat the whole tensor as one row.
    bool dense = true;
    for (const Operand& input : inputs_) dense &= input.dense();
    const Operand& variable = inputs_[kVariable];
    rows_ = dense ? 1 : variable.rows();
    cols_ = dense ? variable.shape.num_elements() : variable.cols();
  }

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    UpdateAll(inputs, outputs, stream);
    projection_.Run(static_cast<T*>(outputs[0]), outputs_[0].row_stride);
  }

 private:
  void UpdateAll(const void* const* inputs, void* const* outputs, Stream& stream) const {
    const auto update = internal::MakeUpdate<T>(
        optimizer_, *static_cast<const int64_t*>(inputs[kStep]), T{1}, part_);
    if (rows_ == 1) {
      stream.ParallelFor(cols_, internal::kGrain, [&](int64_t begin, int64_t end) {
        Update(update, inputs, outputs, 0, begin, end);
      });
      return;
    }
    stream.ParallelFor(rows_, 1 + internal::kGrain / std::max<int64_t>(1, cols_),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t row = begin; row < end; ++row) {
                           Update(update, inputs, outputs, row, 0, cols_);
                         }
                       });
  }

  void Update(const internal::Update<T>& update, const void* const* inputs, void* const* outputs,
              int64_t row, int64_t begin, int64_t end) const {
    std::array<T*, kMaxSlots> slots{};
    for (size_t i = 1; i < outputs_.size(); ++i) {
      slots[i - 1] = static_cast<T*>(outputs[i]) + row * outputs_[i].row_stride + begin;
    }
    update(end - begin, static_cast<T*>(outputs[0]) + row * outputs_[0].row_stride + begin,
           static_cast<const T*>(inputs[kGradient]) + row * inputs_[kGradient].row_stride + begin,
           slots.data());
  }

  const Optimizer optimizer_;
  const Part part_;
  Projection projection_;
  std::vector<Operand> inputs_, outputs_;
  int64_t rows_ = 0, cols_ = 0;
};

Status CheckOperands(const Optimizer& optimizer, const KernelRequest& request) {
  const auto slots = static_cast<size_t>(SlotCount(optimizer));
  if (request.inputs.size() != kFirstSlot + slots || request.outputs.size() != 1 + slots) {
    return InvalidArgument(Name(optimizer.kind), " takes step, gradient, variable and ", slots,
                           " slots, and returns variable and slots");
  }
  const Operand& step = request.inputs[kStep];
  if (step.dtype != DType::kInt64 || step.shape.num_elements() != 1) {
    return InvalidArgument("the step must be one int64");
  }
  const Operand& variable = request.inputs[kVariable];
  for (size_t i = kGradient; i < request.inputs.size(); ++i) {
    const Operand& input = request.inputs[i];
    if (input.dtype != variable.dtype || input.shape != variable.shape) {
      return InvalidArgument("input ", i, " is ", input.ToString(), ", the variable ",
                             variable.ToString());
    }
    if (i >= kVariable && request.outputs[i - kVariable] != input) {
      return InvalidArgument("output ", i - kVariable, " must be input ", i, " itself");
    }
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<Kernel>> PrepareApply(const KernelRequest& request) {
  ASSIGN_OR_RETURN(Optimizer optimizer, FromAttributes(request.attributes));
  RETURN_IF_ERROR(CheckOperands(optimizer, request));
  const Shape& shape = request.inputs[kVariable].shape;
  ASSIGN_OR_RETURN(const Constraint constraint, ConstraintOf(request.attributes, shape));
  Projection projection(constraint, shape);
  switch (request.inputs[kVariable].dtype) {
    case DType::kFloat32:
      return std::make_unique<ApplyKernel<float>>(optimizer, std::move(projection), request);
    case DType::kFloat64:
      return std::make_unique<ApplyKernel<double>>(optimizer, std::move(projection), request);
    default:
      return Unimplemented("a variable must be float32 or float64 to be trained");
  }
}

}  // namespace

const kernels::KernelTable& CpuKernels() {
  using kernels::InPlace;
  const auto in_place = [](int variable) {
    std::vector<InPlace> rules;
    for (int i = 0; i <= kMaxSlots; ++i) rules.push_back({i, variable + i, InPlace::kAlways});
    return rules;
  };
  static const kernels::KernelTable table(
      "CPU", {{"ApplyOptimizer", {PrepareApply, in_place(kVariable)}},
              {"ApplyOptimizerRows", {PrepareApplyRows, in_place(kVariableOfRows)}}});
  return table;
}

}  // namespace tfjob::optimizer
