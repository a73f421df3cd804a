// Implements the host's side of softmax.cu.
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/launch_kernel.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// Returns a kernel that runs one block per row. `fill` sets the pointers in the parameter.
template <typename Parameter, typename Fill>
Prepared MakeRows(const Launcher& launcher, const char* name, const Operand& rows,
                  const Parameter& parameter, Fill fill) {
  // The first axis of the grid has one block per row. Threads count the elements of a row with 32
  // bits, and may count up to kSoftmaxThreads beyond its end.
  if (rows.rows() > INT32_MAX || rows.cols() > INT32_MAX - kSoftmaxThreads)
    return Unimplemented("a tensor of ", rows.rows(), " rows of ", rows.cols(), " elements");
  // Rows without elements are processed, too, because each has a loss (NaN).
  return MakeLaunch(launcher, name, {static_cast<unsigned>(rows.rows())}, {kSoftmaxThreads},
                    parameter, fill);
}

Prepared PrepareSoftmax(const Launcher& launcher, const KernelRequest& request, bool logarithm) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 1, 1));
  RETURN_IF_ERROR(cpu::ExpectAlike(request, 0, 1));
  ASSIGN_OR_RETURN(const FloatType type, FloatTypeOf(request));
  const Operand &x = request.inputs[0], &y = request.outputs[0];
  const SoftmaxParameter parameter{.x = nullptr,
                                   .y = nullptr,
                                   .x_stride = x.row_stride,
                                   .y_stride = y.row_stride,
                                   .cols = static_cast<int32_t>(x.cols()),
                                   .logarithm = logarithm ? 1 : 0,
                                   .type = type};
  return MakeRows(launcher, "Softmax", x, parameter,
                  [](SoftmaxParameter& p, const void* const* inputs, void* const* outputs) {
                    p.x = inputs[0];
                    p.y = outputs[0];
                  });
}

Prepared PrepareSoftmaxGrad(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 2, 1));
  RETURN_IF_ERROR(cpu::ExpectAlike(request, 0, 2));
  ASSIGN_OR_RETURN(const FloatType type, FloatTypeOf(request));
  const Operand &y = request.inputs[0], &dy = request.inputs[1];
  const SoftmaxGradParameter parameter{.y = nullptr,
                                       .dy = nullptr,
                                       .dx = nullptr,
                                       .y_stride = y.row_stride,
                                       .dy_stride = dy.row_stride,
                                       .dx_stride = request.outputs[0].row_stride,
                                       .cols = static_cast<int32_t>(y.cols()),
                                       .type = type};
  return MakeRows(launcher, "SoftmaxGrad", y, parameter,
                  [](SoftmaxGradParameter& p, const void* const* inputs, void* const* outputs) {
                    p.y = inputs[0];
                    p.dy = inputs[1];
                    p.dx = outputs[0];
                  });
}

Prepared PrepareSparse(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 2, 2));
  const Operand &logits = request.inputs[0], &labels = request.inputs[1];
  const Operand &loss = request.outputs[0], &backprop = request.outputs[1];
  ASSIGN_OR_RETURN(const FloatType type, FloatTypeOf({&logits, &loss, &backprop}));
  if (logits.shape.rank() != 2) return InvalidArgument("the logits must be a matrix");
  if (labels.dtype != DType::kInt64 && labels.dtype != DType::kInt32 &&
      labels.dtype != DType::kUInt8)
    return cpu::NoKernelFor(labels.dtype);
  RETURN_IF_ERROR(cpu::ExpectShape(labels, Shape({logits.rows()})));
  RETURN_IF_ERROR(cpu::ExpectShape(loss, Shape({logits.rows()})));
  RETURN_IF_ERROR(cpu::ExpectShape(backprop, logits.shape));
  const SparseCrossEntropyParameter parameter{
      .logits = nullptr,
      .labels = nullptr,
      .loss = nullptr,
      .backprop = nullptr,
      .logits_stride = logits.row_stride,
      .backprop_stride = backprop.row_stride,
      .cols = static_cast<int32_t>(logits.cols()),
      .label_bytes = static_cast<int32_t>(SizeOf(labels.dtype)),
      .type = type};
  return MakeRows(
      launcher, "SparseCrossEntropy", logits, parameter,
      [](SparseCrossEntropyParameter& p, const void* const* inputs, void* const* outputs) {
        p.logits = inputs[0];
        p.labels = inputs[1];
        p.loss = outputs[0];
        p.backprop = outputs[1];
      });
}

Prepared PrepareDense(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 2, 2));
  ASSIGN_OR_RETURN(const FloatType type, FloatTypeOf(request));
  const Operand &logits = request.inputs[0], &labels = request.inputs[1];
  const Operand& backprop = request.outputs[1];
  if (logits.shape.rank() != 2) return InvalidArgument("the logits must be a matrix");
  RETURN_IF_ERROR(cpu::ExpectShape(labels, logits.shape));
  RETURN_IF_ERROR(cpu::ExpectShape(request.outputs[0], Shape({logits.rows()})));
  RETURN_IF_ERROR(cpu::ExpectShape(backprop, logits.shape));
  const DenseCrossEntropyParameter parameter{.logits = nullptr,
                                             .labels = nullptr,
                                             .loss = nullptr,
                                             .backprop = nullptr,
                                             .logits_stride = logits.row_stride,
                                             .labels_stride = labels.row_stride,
                                             .backprop_stride = backprop.row_stride,
                                             .cols = static_cast<int32_t>(logits.cols()),
                                             .type = type};
  return MakeRows(
      launcher, "DenseCrossEntropy", logits, parameter,
      [](DenseCrossEntropyParameter& p, const void* const* inputs, void* const* outputs) {
        p.logits = inputs[0];
        p.labels = inputs[1];
        p.loss = outputs[0];
        p.backprop = outputs[1];
      });
}

}  // namespace

KernelTable::Entries SoftmaxKernels(const Launcher& launcher) {
  const auto softmax = [launcher](bool logarithm) {
    return [launcher, logarithm](const KernelRequest& request) {
      return PrepareSoftmax(launcher, request, logarithm);
    };
  };
  const auto grad = [launcher](const KernelRequest& r) { return PrepareSoftmaxGrad(launcher, r); };
  const auto sparse = [launcher](const KernelRequest& r) { return PrepareSparse(launcher, r); };
  const auto dense = [launcher](const KernelRequest& r) { return PrepareDense(launcher, r); };
  return {{"Softmax", {softmax(false), {{0, 0}}}},
          {"LogSoftmax", {softmax(true), {{0, 0}}}},
          {"SoftmaxGrad", {grad, {{0, 0}, {0, 1}}}},
          {"SoftmaxCrossEntropyWithLogits", {dense, {{1, 0}, {1, 1}}}},
          {"SparseSoftmaxCrossEntropyWithLogits", {sparse, {{1, 0}}}}};
}

}  // namespace tfjob::kernels::cuda
