#include "runtime/optimizer/apply_rows_kernel.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "runtime/kernels/stream.h"
#include "runtime/optimizer/constraint.h"
#include "runtime/optimizer/update.h"

namespace tfjob::optimizer {
namespace {

using kernels::Kernel;
using kernels::KernelRequest;
using kernels::Operand;
using kernels::Stream;

constexpr size_t kStepOfRows = 0, kIndices = 1, kValues = 2, kTable = kVariableOfRows;

template <typename T>
class ApplyRowsKernel : public Kernel {
 public:
  ApplyRowsKernel(const Optimizer& optimizer, Projection projection, const KernelRequest& request)
      : optimizer_(optimizer),
        part_(PartOf(request.attributes)),
        projection_(std::move(projection)),
        inputs_(request.inputs) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const std::span<const int64_t> indices = IndicesOf(inputs[kIndices]);
    const int64_t rows = inputs_[kTable].shape.dim(0);
    if (!indices.empty() && indices.back() >= rows) {
      return stream.Fail(
          InvalidArgument("the gradient has a row ", indices.back(), ": expected 0 to ", rows - 1));
    }
    const int64_t step = *static_cast<const int64_t*>(inputs[kStepOfRows]);
    internal::RowsToUpdate<T> r{.rows = rows,
                                .cols = inputs_[kTable].cols(),
                                .variable = static_cast<T*>(outputs[0]),
                                .stride = inputs_[kTable].row_stride,
                                .indices = indices,
                                .values = static_cast<const T*>(inputs[kValues]),
                                .value_stride = inputs_[kValues].row_stride};
    for (size_t i = kTable + 1; i < inputs_.size(); ++i) {
      r.slots[i - kTable - 1] = static_cast<T*>(outputs[i - kTable]);
      r.slot_strides[i - kTable - 1] = inputs_[i].row_stride;
    }
    internal::UpdateRows(optimizer_, internal::MakeUpdate<T>(optimizer_, step, T{1}, part_), r,
                         stream);
    // As in Keras, project all rows, even those without a gradient.
    projection_.Run(r.variable, r.stride);
  }

 private:
  // Returns the indices, without any -1 at the end.
  std::span<const int64_t> IndicesOf(const void* input) const {
    const std::span<const int64_t> all(static_cast<const int64_t*>(input),
                                       static_cast<size_t>(inputs_[kIndices].shape.dim(0)));
    const auto end = std::ranges::find(all, -1);
    return all.first(static_cast<size_t>(end - all.begin()));
  }

  const Optimizer optimizer_;
  const Part part_;
  Projection projection_;
  const std::vector<Operand> inputs_;
};

Status CheckRowOperands(const Optimizer& optimizer, const KernelRequest& request) {
  const auto slots = static_cast<size_t>(SlotCount(optimizer));
  if (request.inputs.size() != kTable + 1 + slots || request.outputs.size() != 1 + slots) {
    return InvalidArgument(Name(optimizer.kind), " takes step, indices, values, variable and ",
                           slots, " slots, and returns variable and slots");
  }
  const Operand &step = request.inputs[kStepOfRows], &indices = request.inputs[kIndices];
  const Operand &values = request.inputs[kValues], &variable = request.inputs[kTable];
  if (step.dtype != DType::kInt64 || step.shape.num_elements() != 1)
    return InvalidArgument("the step must be one int64");
  if (variable.shape.rank() != 2 || values.shape.rank() != 2 || values.cols() != variable.cols() ||
      values.dtype != variable.dtype || indices.dtype != DType::kInt64 ||
      indices.shape != Shape{values.shape.dim(0)}) {
    return InvalidArgument("rows ", values.ToString(), " with indices ", indices.ToString(),
                           " do not fit the variable ", variable.ToString());
  }
  for (size_t i = kTable; i < request.inputs.size(); ++i) {
    const Operand& input = request.inputs[i];
    if (input.dtype != variable.dtype || input.shape != variable.shape)
      return InvalidArgument("slot ", i - kTable, " is ", input.ToString(), ", the variable ",
                             variable.ToString());
    if (request.outputs[i - kTable] != input)
      return InvalidArgument("output ", i - kTable, " must be input ", i, " itself");
  }
  return OkStatus();
}

}  // namespace

StatusOr<std::unique_ptr<Kernel>> PrepareApplyRows(const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Optimizer optimizer, FromAttributes(request.attributes));
  RETURN_IF_ERROR(CheckRowOperands(optimizer, request));
  const Shape& shape = request.inputs[kTable].shape;
  ASSIGN_OR_RETURN(const Constraint constraint, ConstraintOf(request.attributes, shape));
  Projection projection(constraint, shape);
  switch (request.inputs[kTable].dtype) {
    case DType::kFloat32:
      return std::make_unique<ApplyRowsKernel<float>>(optimizer, std::move(projection), request);
    case DType::kFloat64:
      return std::make_unique<ApplyRowsKernel<double>>(optimizer, std::move(projection), request);
    default:
      return Unimplemented("a variable must be float32 or float64 to be trained");
  }
}

}  // namespace tfjob::optimizer
