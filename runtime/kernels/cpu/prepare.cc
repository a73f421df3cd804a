#include "runtime/kernels/cpu/prepare.h"

#include <algorithm>
#include <numeric>

namespace tfjob::kernels::cpu {

Status ExpectOperands(const KernelRequest& request, size_t inputs, size_t outputs) {
  if (request.inputs.size() == inputs && request.outputs.size() == outputs) return OkStatus();
  return InvalidArgument("expected ", inputs, " inputs and ", outputs, " outputs");
}

Status ExpectAlike(const KernelRequest& request, size_t first, size_t last) {
  const Operand& output = request.outputs[0];
  for (size_t i = first; i < last; ++i) {
    const Operand& input = request.inputs[i];
    if (input.dtype != output.dtype || input.shape != output.shape) {
      return InvalidArgument("input ", i, " is ", input.ToString(), ", the output ",
                             output.ToString(), ": they must have one dtype and one shape");
    }
  }
  return OkStatus();
}

Status ExpectShape(const Operand& operand, const Shape& shape) {
  if (operand.shape == shape) return OkStatus();
  return InvalidArgument("expected shape ", shape.ToString(), ", got ", operand.ToString());
}

Status NoKernelFor(DType dtype) {
  return Unimplemented("no kernel for dtype ", Name(dtype));
}

Status ExpectInt64Scalar(const Operand& operand) {
  if (operand.dtype == DType::kInt64 && operand.shape.num_elements() == 1) return OkStatus();
  return InvalidArgument("expected one int64, got ", operand.ToString());
}

StatusOr<std::vector<int>> AxesOf(const Attributes& attributes, int rank) {
  std::vector<int> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  const auto* given = attributes.Find<std::vector<int64_t>>("axes");
  if (given == nullptr) return axes;
  axes.clear();
  for (int64_t axis : *given) {
    if (axis < -rank || axis >= rank) {
      return InvalidArgument("axis ", axis, " is out of range for rank ", rank);
    }
    axes.push_back(static_cast<int>(axis < 0 ? axis + rank : axis));
  }
  std::ranges::sort(axes);
  if (std::ranges::adjacent_find(axes) != axes.end()) return InvalidArgument("duplicate axis");
  return axes;
}

double NumberOf(const Attributes& attributes, const char* name, double fallback) {
  if (const auto* value = attributes.Find<int64_t>(name)) return static_cast<double>(*value);
  if (const auto* value = attributes.Find<bool>(name)) return *value ? 1 : 0;
  return attributes.Get(name, fallback);
}

}  // namespace tfjob::kernels::cpu
