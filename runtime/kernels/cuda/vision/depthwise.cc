// Implements the host's side of depthwise.cu.
#include "runtime/kernels/cuda/vision/depthwise.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/kernels/cuda/launch_kernel.h"
#include "runtime/kernels/cuda/vision/parameters.h"
#include "runtime/kernels/cuda/vision/spans.h"

namespace tfjob::kernels::cuda {
namespace {

using cpu::Convolution;
using cpu::ConvolutionPass;

DepthwiseParameter ParameterOf(const Convolution& c, const Operand& result) {
  return {.image = nullptr,
          .filter = nullptr,
          .bias = nullptr,
          .output = nullptr,
          .result = nullptr,
          .image_stride = c.image.row_stride,
          .filter_stride = c.filter.row_stride,
          .output_stride = c.output.row_stride,
          .spans = SpansOf(c.window, c.image.shape),
          .channels = static_cast<uint32_t>(c.channels()),
          .multiplier = static_cast<uint32_t>(c.outputs() / c.channels()),
          .count = static_cast<uint32_t>(result.shape.num_elements()),
          .relu = c.relu ? 1 : 0};
}

Prepared PrepareForward(const Launcher& launcher, const Convolution& c) {
  const DepthwiseParameter parameter = ParameterOf(c, c.output);
  return MakeLaunch(
      launcher, "Depthwise", {Blocks(parameter.count, kWindowThreads)}, {kWindowThreads}, parameter,
      [bias = c.bias](DepthwiseParameter& p, const void* const* inputs, void* const* outputs) {
        p.image = static_cast<const float*>(inputs[0]);
        p.filter = static_cast<const float*>(inputs[1]);
        p.bias = bias ? static_cast<const float*>(inputs[2]) : nullptr;
        p.result = static_cast<float*>(outputs[0]);
      });
}

Prepared PrepareInput(const Launcher& launcher, const Convolution& c) {
  const DepthwiseParameter parameter = ParameterOf(c, c.image);
  return MakeLaunch(launcher, "DepthwiseInput", {Blocks(parameter.count, kWindowThreads)},
                    {kWindowThreads}, parameter,
                    [](DepthwiseParameter& p, const void* const* inputs, void* const* outputs) {
                      p.filter = static_cast<const float*>(inputs[0]);
                      p.output = static_cast<const float*>(inputs[1]);
                      p.result = static_cast<float*>(outputs[0]);
                    });
}

int64_t TapsOf(const Convolution& c) {
  return c.window.height.size * c.window.width.size;
}
// Returns how many parts the windows are split into.
int64_t PartsOf(const Convolution& c) {
  return (c.output.rows() + kDepthwiseWindows - 1) / kDepthwiseWindows;
}

// Sums the products for each part of the windows, and then adds up the sums of the parts. If the
// filter's rows are padded, finally copies the result to the padded rows.
class DepthwiseFilterKernel final : public Kernel {
 public:
  DepthwiseFilterKernel(Launcher launcher, const Convolution& c, std::unique_ptr<Kernel> copy)
      : launcher_(std::move(launcher)),
        copy_(std::move(copy)),
        elements_(c.filter.shape.num_elements()),
        parts_(PartsOf(c)),
        taps_(TapsOf(c)),
        sum_(MakeColumnSums(launcher_, parts_, elements_)),
        parameter_{.image = nullptr,
                   .output = nullptr,
                   .sums = nullptr,
                   .image_stride = c.image.row_stride,
                   .output_stride = c.output.row_stride,
                   .spans = SpansOf(c.window, c.image.shape),
                   .outputs = static_cast<uint32_t>(c.outputs()),
                   .multiplier = static_cast<uint32_t>(c.outputs() / c.channels()),
                   .windows = static_cast<uint32_t>(c.output.rows())} {}

  size_t workspace_bytes() const override {
    return Aligned(parts_) + (copy_ == nullptr ? 0 : Aligned(1)) + sum_->workspace_bytes();
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    auto* const space = static_cast<std::byte*>(workspace);
    DepthwiseFilterParameter p = parameter_;
    p.image = static_cast<const float*>(inputs[0]);
    p.output = static_cast<const float*>(inputs[1]);
    p.sums = reinterpret_cast<float*>(space);
    Submit(launcher_, "DepthwiseFilter",
           {Blocks(p.outputs, 32) * static_cast<unsigned>(taps_ * parts_)}, {32, kDepthwiseWarps},
           p, stream);
    const void* const parts = space;
    void* const total = copy_ == nullptr ? outputs[0] : space + Aligned(parts_);
    sum_->Run(&parts, &total, space + workspace_bytes() - sum_->workspace_bytes(), stream);
    if (copy_ != nullptr) copy_->Run(&total, outputs, nullptr, stream);
  }

 private:
  // Returns the size of this many filters in bytes, rounded up so that an aligned address can
  // follow.
  size_t Aligned(int64_t filters) const {
    return (static_cast<size_t>(filters * elements_) * sizeof(float) + 63) / 64 * 64;
  }

  const Launcher launcher_;
  const std::unique_ptr<Kernel> copy_;
  const int64_t elements_, parts_, taps_;
  const std::unique_ptr<Kernel> sum_;
  const DepthwiseFilterParameter parameter_;
};

Prepared PrepareFilter(const Launcher& launcher, const Convolution& c) {
  const int64_t taps = TapsOf(c), most = std::numeric_limits<int32_t>::max();
  if (taps > most / ((c.outputs() + 31) / 32) / std::max<int64_t>(1, PartsOf(c))) {
    return Unimplemented("no gradient of a filter with ", taps, " elements per output over ",
                         c.output.rows(), " windows, which needs more than ", most, " blocks");
  }
  std::unique_ptr<Kernel> copy;
  if (!c.filter.dense()) {
    ASSIGN_OR_RETURN(
        copy, PrepareCopy(launcher, Operand::Dense(c.filter.dtype, c.filter.shape), c.filter));
  }
  return std::make_unique<DepthwiseFilterKernel>(launcher, c, std::move(copy));
}

}  // namespace

Prepared PrepareDepthwise(const Launcher& launcher, ConvolutionPass pass, const Convolution& c) {
  if (pass == ConvolutionPass::kForward) return PrepareForward(launcher, c);
  if (pass == ConvolutionPass::kBackwardInput) return PrepareInput(launcher, c);
  return PrepareFilter(launcher, c);
}

}  // namespace tfjob::kernels::cuda
