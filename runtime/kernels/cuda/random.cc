// Implements the host's side of random.cu.
#include <cmath>

#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/launch_kernel.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

RandomWords WordsOf(const Attributes& attributes) {
  return {.step = nullptr,
          .seed = nullptr,
          .op_id = static_cast<uint32_t>(attributes.Get<int64_t>("op_id", 0)),
          .replica = static_cast<uint16_t>(attributes.Get<int64_t>("replica", 0))};
}

Grid GridOf(uint32_t count) {
  return {Blocks((static_cast<int64_t>(count) + 3) / 4, kRandomThreads)};
}

// Returns a kernel whose only inputs are the step and the seed.
template <typename Parameter>
Prepared MakeRandom(const Launcher& launcher, const char* name, const Parameter& parameter) {
  return MakeLaunch(launcher, name, GridOf(parameter.count), {kRandomThreads}, parameter,
                    [](Parameter& p, const void* const* inputs, void* const* outputs) {
                      p.words.step = static_cast<const int64_t*>(inputs[0]);
                      p.words.seed = static_cast<const int64_t*>(inputs[1]);
                      p.y = static_cast<float*>(outputs[0]);
                    });
}

Prepared PrepareDropout(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 3, 1));
  RETURN_IF_ERROR(cpu::ExpectAlike(request, 0, 1));
  RETURN_IF_ERROR(cpu::ExpectInt64Scalar(request.inputs[1]));
  RETURN_IF_ERROR(cpu::ExpectInt64Scalar(request.inputs[2]));
  const Operand &x = request.inputs[0], &y = request.outputs[0];
  ASSIGN_OR_RETURN(const FloatType type, FloatTypeOf(x.dtype));
  RETURN_IF_ERROR(CheckCount(x));
  const double rate = cpu::NumberOf(request.attributes, "rate", 0);
  if (!(rate >= 0 && rate < 1)) return InvalidArgument("the rate must be in [0, 1), not ", rate);
  const DropoutParameter parameter{
      .words = WordsOf(request.attributes),
      .x = nullptr,
      .y = nullptr,
      .x_stride = x.row_stride,
      .y_stride = y.row_stride,
      .count = static_cast<uint32_t>(x.shape.num_elements()),
      .cols = static_cast<uint32_t>(x.cols()),
      .threshold = static_cast<uint32_t>(rate * 4294967296.0),  // 2³², the number of words
      .scale = static_cast<float>(1 / (1 - rate)),
      .type = type};
  return MakeLaunch(launcher, "Dropout", GridOf(parameter.count), {kRandomThreads}, parameter,
                    [](DropoutParameter& p, const void* const* inputs, void* const* outputs) {
                      p.x = inputs[0];
                      p.words.step = static_cast<const int64_t*>(inputs[1]);
                      p.words.seed = static_cast<const int64_t*>(inputs[2]);
                      p.y = outputs[0];
                    });
}

// Checks an op whose inputs are a step and a seed.
Status CheckRandom(const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::ExpectOperands(request, 2, 1));
  RETURN_IF_ERROR(cpu::ExpectInt64Scalar(request.inputs[0]));
  RETURN_IF_ERROR(cpu::ExpectInt64Scalar(request.inputs[1]));
  if (request.outputs[0].dtype != DType::kFloat32)
    return cpu::NoKernelFor(request.outputs[0].dtype);
  return CheckCount(request.outputs[0]);
}

Prepared PrepareNormal(const Launcher& launcher, const KernelRequest& request, bool truncated) {
  RETURN_IF_ERROR(CheckRandom(request));
  const Operand& y = request.outputs[0];
  const double stddev = cpu::NumberOf(request.attributes, "stddev", 1);
  if (!(stddev >= 0)) return InvalidArgument("stddev ", stddev, " must be 0 or more");
  const RandomNormalParameter parameter{
      .words = WordsOf(request.attributes),
      .y = nullptr,
      .y_stride = y.row_stride,
      .count = static_cast<uint32_t>(y.shape.num_elements()),
      .cols = static_cast<uint32_t>(y.cols()),
      .mean = static_cast<float>(cpu::NumberOf(request.attributes, "mean", 0)),
      .stddev = static_cast<float>(stddev),
      .truncated = truncated ? 1 : 0};
  return MakeRandom(launcher, "RandomNormal", parameter);
}

Prepared PrepareUniform(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(CheckRandom(request));
  const Operand& y = request.outputs[0];
  const auto low = static_cast<float>(cpu::NumberOf(request.attributes, "minval", 0));
  const auto high = static_cast<float>(cpu::NumberOf(request.attributes, "maxval", 1));
  if (!(low < high)) return InvalidArgument("minval ", low, " must be below maxval ", high);
  const RandomUniformParameter parameter{.words = WordsOf(request.attributes),
                                         .y = nullptr,
                                         .y_stride = y.row_stride,
                                         .count = static_cast<uint32_t>(y.shape.num_elements()),
                                         .cols = static_cast<uint32_t>(y.cols()),
                                         .low = low,
                                         .high = high,
                                         .last = std::nextafter(high, low)};
  return MakeRandom(launcher, "RandomUniform", parameter);
}

}  // namespace

KernelTable::Entries RandomKernels(const Launcher& launcher) {
  const auto dropout = [launcher](const KernelRequest& r) { return PrepareDropout(launcher, r); };
  const auto uniform = [launcher](const KernelRequest& r) { return PrepareUniform(launcher, r); };
  const auto normal = [&launcher](bool truncated) -> KernelEntry {
    return {[launcher, truncated](const KernelRequest& r) {
              return PrepareNormal(launcher, r, truncated);
            },
            {}};
  };
  return {{"Dropout", {dropout, {{0, 0}}}},
          {"DropoutGrad", {dropout, {{0, 0}}}},
          {"RandomNormal", normal(false)},
          {"TruncatedNormal", normal(true)},
          {"RandomUniform", {uniform, {}}}};
}

}  // namespace tfjob::kernels::cuda
