// Implements the host's side of layer_normalization.cu.
#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/launch_kernel.h"
#include "runtime/kernels/cuda/layers/normalization_parameters.h"

namespace tfjob::kernels::cuda {
namespace {

Status ExpectOperand(const Operand& operand, DType dtype, const Shape& shape) {
  if (operand.dtype == dtype && operand.shape == shape) return OkStatus();
  return InvalidArgument("expected ", Operand::Dense(dtype, shape).ToString(), ", got ",
                         operand.ToString());
}

StatusOr<NormalizationTensor> TensorOf(const Operand& operand) {
  ASSIGN_OR_RETURN(const FloatType type, FloatTypeOf(operand.dtype));
  RETURN_IF_ERROR(CheckCount(operand));
  return NormalizationTensor{.data = nullptr, .stride = operand.row_stride, .type = type};
}

// Returns the parameter with everything that both ops have in common. `rows` contains a row of
// statistics per row of x.
StatusOr<LayerNormalizationParameter> ParameterOf(const Operand& x, const Operand& y,
                                                  const Operand& gamma, const Operand& statistics) {
  if (x.shape.rank() < 2 || x.shape.num_elements() == 0)
    return Unimplemented("layer normalization of ", x.shape.ToString());
  RETURN_IF_ERROR(cpu::ExpectShape(y, x.shape));
  RETURN_IF_ERROR(ExpectOperand(gamma, DType::kFloat32, Shape({x.cols()})));
  RETURN_IF_ERROR(ExpectOperand(statistics, DType::kFloat32, Shape({2, x.rows()})));
  LayerNormalizationParameter p{};
  ASSIGN_OR_RETURN(p.x, TensorOf(x));
  ASSIGN_OR_RETURN(p.y, TensorOf(y));
  ASSIGN_OR_RETURN(p.gamma, TensorOf(gamma));
  p.statistics_stride = statistics.row_stride;
  p.rows = x.rows();
  p.cols = static_cast<int32_t>(x.cols());
  return p;
}

Grid RowGrid(const LayerNormalizationParameter& p) {
  return {Blocks(p.rows, kNormalizationWarps)};
}

Prepared PrepareNormalization(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 3, 2));
  ASSIGN_OR_RETURN(
      LayerNormalizationParameter p,
      ParameterOf(request.inputs[0], request.outputs[0], request.inputs[1], request.outputs[1]));
  RETURN_IF_ERROR(ExpectOperand(request.inputs[2], DType::kFloat32, request.inputs[1].shape));
  ASSIGN_OR_RETURN(p.beta, TensorOf(request.inputs[2]));
  p.epsilon = static_cast<float>(cpu::NumberOf(request.attributes, "epsilon", 0));
  return MakeLaunch(
      launcher, "LayerNormalization", RowGrid(p), {kNormalizationWarps * 32}, p,
      [](LayerNormalizationParameter& q, const void* const* inputs, void* const* outputs) {
        q.x.data = const_cast<void*>(inputs[0]);
        q.gamma.data = const_cast<void*>(inputs[1]);
        q.beta.data = const_cast<void*>(inputs[2]);
        q.y.data = outputs[0];
        q.statistics = static_cast<float*>(outputs[1]);
      });
}

// Computes the gradient of each row, and adds up those of gamma and beta in two steps.
class NormalizationGradient final : public Kernel {
 public:
  // If `adds` is set, there is an input to add to dx.
  NormalizationGradient(Launcher launcher, const LayerNormalizationParameter& parameter, bool adds)
      : launcher_(std::move(launcher)),
        parameter_(parameter),
        adds_(adds),
        sums_(MakeColumnSums(launcher_, parts(), parameter.cols)) {}

  // Contains the sums of the parts for gamma, the same for beta, and the workspace of the sums.
  size_t workspace_bytes() const override { return 2 * part_bytes() + sums_->workspace_bytes(); }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    LayerNormalizationParameter p = parameter_;
    p.x.data = const_cast<void*>(inputs[0]);
    p.gamma.data = const_cast<void*>(inputs[1]);
    p.statistics = static_cast<float*>(const_cast<void*>(inputs[2]));
    p.y.data = const_cast<void*>(inputs[3]);
    p.dx.data = outputs[0];
    if (adds_) p.added.data = const_cast<void*>(inputs[4]);
    auto* const memory = static_cast<std::byte*>(workspace);
    p.gamma_sums = reinterpret_cast<float*>(memory);
    p.beta_sums = reinterpret_cast<float*>(memory + part_bytes());
    Submit(launcher_, "LayerNormalizationSums", {static_cast<unsigned>(parts())},
           {kNormalizationColumns}, p, stream);
    Submit(launcher_, "LayerNormalizationGrad", RowGrid(p), {kNormalizationWarps * 32}, p, stream);
    const void* const gamma = p.gamma_sums;
    const void* const beta = p.beta_sums;
    sums_->Run(&gamma, outputs + 1, memory + 2 * part_bytes(), stream);
    sums_->Run(&beta, outputs + 2, memory + 2 * part_bytes(), stream);
  }

 private:
  int64_t parts() const { return Blocks(parameter_.rows, kNormalizationRows); }
  size_t part_bytes() const {
    const auto bytes = static_cast<size_t>(parts() * parameter_.cols) * sizeof(float);
    return (bytes + 63) / 64 * 64;
  }

  const Launcher launcher_;
  const LayerNormalizationParameter parameter_;
  const bool adds_;
  const std::unique_ptr<Kernel> sums_;
};

Prepared PrepareNormalizationGrad(const Launcher& launcher, const KernelRequest& request) {
  const bool adds = request.inputs.size() == 5;
  RETURN_IF_ERROR(cpu::ExpectOperands(request, adds ? 5 : 4, 3));
  const Operand &x = request.inputs[0], &gamma = request.inputs[1];
  ASSIGN_OR_RETURN(LayerNormalizationParameter p,
                   ParameterOf(x, request.inputs[3], gamma, request.inputs[2]));
  RETURN_IF_ERROR(cpu::ExpectShape(request.outputs[0], x.shape));
  for (const size_t output : {size_t{1}, size_t{2}})
    RETURN_IF_ERROR(ExpectOperand(request.outputs[output], DType::kFloat32, gamma.shape));
  ASSIGN_OR_RETURN(p.dx, TensorOf(request.outputs[0]));
  if (adds) {
    RETURN_IF_ERROR(cpu::ExpectShape(request.inputs[4], x.shape));
    ASSIGN_OR_RETURN(p.added, TensorOf(request.inputs[4]));
  }
  return std::make_unique<NormalizationGradient>(launcher, p, adds);
}

}  // namespace

KernelTable::Entries NormalizationKernels(const Launcher& launcher) {
  const auto forward = [launcher](const KernelRequest& r) {
    return PrepareNormalization(launcher, r);
  };
  const auto gradient = [launcher](const KernelRequest& r) {
    return PrepareNormalizationGrad(launcher, r);
  };
  // The gradient reads x and dy several times, so dx must not replace them.
  return {{"LayerNormalization", {forward, {}}}, {"LayerNormalizationGrad", {gradient, {{0, 4}}}}};
}

}  // namespace tfjob::kernels::cuda
