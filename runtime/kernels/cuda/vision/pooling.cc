// Implements the host's side of pooling.cu.
#include <memory>
#include <utility>

#include "runtime/kernels/cpu/image_requests.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/launch_kernel.h"
#include "runtime/kernels/cuda/vision/parameters.h"
#include "runtime/kernels/cuda/vision/spans.h"

namespace tfjob::kernels::cuda {
namespace {

using cpu::Pooling;

// Returns the parameter for images that are stored as `image`.
PoolParameter PoolParameterOf(const Pooling& pooling, const Operand& image, FloatType type) {
  return {.image = nullptr,
          .pooled = nullptr,
          .out = nullptr,
          .found = nullptr,
          .image_stride = image.row_stride,
          .pooled_stride = pooling.pooled.row_stride,
          .spans = SpansOf(pooling.window, image.shape),
          .channels = static_cast<uint32_t>(pooling.channels()),
          .count = static_cast<uint32_t>(pooling.pooled.shape.num_elements()),
          .type = type};
}

// Returns the parameter for gradients that are stored as `pooled`.
PoolGradParameter GradParameterOf(const Pooling& pooling, const Operand& pooled, FloatType type) {
  return {.found = nullptr,
          .pooled = nullptr,
          .image = nullptr,
          .image_stride = pooling.image.row_stride,
          .pooled_stride = pooled.row_stride,
          .spans = SpansOf(pooling.window, pooling.image.shape),
          .channels = static_cast<uint32_t>(pooling.channels()),
          .count = static_cast<uint32_t>(pooling.image.shape.num_elements()),
          .type = type};
}

// Returns the type of all operands.
StatusOr<FloatType> CheckPooling(const KernelRequest& request, const Pooling& pooling) {
  RETURN_IF_ERROR(CheckCount(pooling.image));
  RETURN_IF_ERROR(CheckCount(pooling.pooled));
  return FloatTypeOf(request);
}

Prepared PreparePool(const Launcher& launcher, const char* name, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Pooling pooling, cpu::PoolOf(request));
  ASSIGN_OR_RETURN(const FloatType type, CheckPooling(request, pooling));
  const PoolParameter parameter = PoolParameterOf(pooling, pooling.image, type);
  return MakeLaunch(launcher, name, {Blocks(parameter.count, kWindowThreads)}, {kWindowThreads},
                    parameter,
                    [](PoolParameter& p, const void* const* inputs, void* const* outputs) {
                      p.image = inputs[0];
                      p.out = outputs[0];
                    });
}

Prepared PrepareAvgPoolGrad(const Launcher& launcher, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Pooling pooling, cpu::AvgPoolGradOf(request));
  ASSIGN_OR_RETURN(const FloatType type, CheckPooling(request, pooling));
  const PoolGradParameter parameter = GradParameterOf(pooling, pooling.pooled, type);
  return MakeLaunch(launcher, "AvgPoolGrad", {Blocks(parameter.count, kWindowThreads)},
                    {kWindowThreads}, parameter,
                    [](PoolGradParameter& p, const void* const* inputs, void* const* outputs) {
                      p.pooled = inputs[0];
                      p.image = outputs[0];
                    });
}

// Finds the maxima of all windows first. Then sums their gradients per pixel, because several
// windows may have their maximum in the same pixel.
class MaxPoolGradKernel final : public Kernel {
 public:
  MaxPoolGradKernel(Launcher launcher, const PoolParameter& find, const PoolGradParameter& grad)
      : launcher_(std::move(launcher)), find_(find), grad_(grad) {}

  size_t workspace_bytes() const override { return size_t{find_.count} * sizeof(uint32_t); }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    PoolParameter find = find_;
    find.image = inputs[0];
    find.pooled = inputs[1];
    find.found = static_cast<uint32_t*>(workspace);
    Submit(launcher_, "FindMaxima", {Blocks(find.count, kWindowThreads)}, {kWindowThreads}, find,
           stream);
    PoolGradParameter grad = grad_;
    grad.found = find.found;
    grad.pooled = inputs[2];
    grad.image = outputs[0];
    Submit(launcher_, "MaxPoolGrad", {Blocks(grad.count, kWindowThreads)}, {kWindowThreads}, grad,
           stream);
  }

 private:
  const Launcher launcher_;
  const PoolParameter find_;
  const PoolGradParameter grad_;
};

Prepared PrepareMaxPoolGrad(const Launcher& launcher, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Pooling pooling, cpu::MaxPoolGradOf(request));
  ASSIGN_OR_RETURN(const FloatType type, CheckPooling(request, pooling));
  return std::make_unique<MaxPoolGradKernel>(launcher,
                                             PoolParameterOf(pooling, request.inputs[0], type),
                                             GradParameterOf(pooling, request.inputs[2], type));
}

}  // namespace

KernelTable::Entries PoolingKernels(const Launcher& launcher) {
  const auto pool = [&launcher](const char* name) -> KernelEntry {
    return {[launcher, name](const KernelRequest& r) { return PreparePool(launcher, name, r); },
            {}};
  };
  const auto with = [&launcher](auto prepare) -> KernelEntry {
    return {[launcher, prepare](const KernelRequest& r) { return prepare(launcher, r); }, {}};
  };
  return {{"MaxPool", pool("MaxPool")},
          {"MaxPoolGrad", with(PrepareMaxPoolGrad)},
          {"AvgPool", pool("AvgPool")},
          {"AvgPoolGrad", with(PrepareAvgPoolGrad)}};
}

}  // namespace tfjob::kernels::cuda
