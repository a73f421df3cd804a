// Implements the host's side of image_transform.cu.
#include "runtime/kernels/cpu/image_requests.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/launch_kernel.h"
#include "runtime/kernels/cuda/vision/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

using cpu::Transformation;

static_assert(static_cast<ImageBorder>(cpu::Border::kReflect) == ImageBorder::kReflect &&
              static_cast<ImageBorder>(cpu::Border::kWrap) == ImageBorder::kWrap &&
              static_cast<ImageBorder>(cpu::Border::kNearest) == ImageBorder::kNearest);

// Prepares the launch of a kernel. `in` and `out` are the operands that it reads and writes, and
// `count` is its number of threads.
Prepared PrepareLaunch(const Launcher& launcher, const char* name, const Transformation& how,
                       const Operand& in, const Operand& out, int64_t count) {
  const auto size = [](const Operand& operand, int axis) {
    return static_cast<uint32_t>(operand.shape.dim(axis));
  };
  const ImageTransformParameter parameter = {.in = nullptr,
                                             .transforms = nullptr,
                                             .out = nullptr,
                                             .in_stride = in.row_stride,
                                             .transform_stride = how.transforms.row_stride,
                                             .out_stride = out.row_stride,
                                             .height = size(how.images, 1),
                                             .width = size(how.images, 2),
                                             .rows = size(how.transformed, 1),
                                             .cols = size(how.transformed, 2),
                                             .channels = size(how.images, 3),
                                             .count = static_cast<uint32_t>(count),
                                             .border = static_cast<ImageBorder>(how.border),
                                             .bilinear = how.bilinear ? 1 : 0,
                                             .fill_value = static_cast<float>(how.fill_value)};
  return MakeLaunch(
      launcher, name, {Blocks(parameter.count, kWindowThreads)}, {kWindowThreads}, parameter,
      [](ImageTransformParameter& p, const void* const* inputs, void* const* outputs) {
        p.in = static_cast<const float*>(inputs[0]);
        p.transforms = static_cast<const float*>(inputs[1]);
        p.out = static_cast<float*>(outputs[0]);
      });
}

Status CheckTransformation(const KernelRequest& request, const Transformation& how) {
  RETURN_IF_ERROR(ExpectFloat32(request));
  RETURN_IF_ERROR(CheckCount(how.images));
  return CheckCount(how.transformed);
}

Prepared PrepareTransform(const Launcher& launcher, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Transformation how, cpu::TransformOf(request));
  RETURN_IF_ERROR(CheckTransformation(request, how));
  return PrepareLaunch(launcher, "ImageTransform", how, how.images, how.transformed,
                       how.transformed.shape.num_elements());
}

Prepared PrepareTransformGrad(const Launcher& launcher, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Transformation how, cpu::TransformGradOf(request));
  RETURN_IF_ERROR(CheckTransformation(request, how));
  return PrepareLaunch(launcher, "ImageTransformGrad", how, how.transformed, how.images,
                       how.batch() * how.channels());
}

}  // namespace

KernelTable::Entries ImageTransformKernels(const Launcher& launcher) {
  const auto with = [&launcher](auto prepare) -> KernelEntry {
    return {[launcher, prepare](const KernelRequest& r) { return prepare(launcher, r); }, {}};
  };
  return {{"ImageProjectiveTransformV3", with(PrepareTransform)},
          {"ImageProjectiveTransformV3Grad", with(PrepareTransformGrad)}};
}

}  // namespace tfjob::kernels::cuda
