// Implements convolutions. Convolutions of dense float32 operands are computed by oneDNN. All
// others are needed only for gradient checks and tests, and are computed by plain loops.
#include "runtime/kernels/cpu/convolution.h"

#include <algorithm>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels::cpu {
namespace {

// Calls body(position, k) for each element k of window number `window` that does not cover padding.
// `position` is the position of the input element that element k covers.
template <typename Body>
void ForEachInput(const WindowAxis& axis, int64_t window, int64_t inputs, const Body& body) {
  const int64_t first = window * axis.stride - axis.before;
  for (int64_t k = 0; k < axis.size; ++k) {
    const int64_t position = first + k * axis.dilation;
    if (position >= 0 && position < inputs) body(position, k);
  }
}

// Calls body(pixel, tap, output) for each product of an image pixel and a filter tap that
// contributes to an output pixel. The arguments are row indices in the image, the filter and the
// output.
template <typename Body>
void ForEachProduct(const Convolution& c, int64_t image, const Body& body) {
  const int64_t height = c.image.shape.dim(1), width = c.image.shape.dim(2);
  const int64_t rows = c.output.shape.dim(1), columns = c.output.shape.dim(2);
  const int64_t depth = c.filter.shape.dim(2);
  for (int64_t row = 0; row < rows; ++row) {
    ForEachInput(c.window.height, row, height, [&](int64_t y, int64_t ky) {
      for (int64_t column = 0; column < columns; ++column) {
        ForEachInput(c.window.width, column, width, [&](int64_t x, int64_t kx) {
          body((image * height + y) * width + x, (ky * c.window.width.size + kx) * depth,
               (image * rows + row) * columns + column);
        });
      }
    });
  }
}

template <typename T>
void Clear(T* data, const Operand& operand, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row)
    std::fill_n(data + row * operand.row_stride, operand.cols(), T{0});
}

template <typename T>
class ConvolutionLoops : public Kernel {
 public:
  ConvolutionLoops(ConvolutionPass pass, const Convolution& convolution)
      : pass_(pass), c_(convolution) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* a = static_cast<const T*>(inputs[0]);
    const auto* b = static_cast<const T*>(inputs[1]);
    auto* result = static_cast<T*>(outputs[0]);
    if (pass_ == ConvolutionPass::kBackwardFilter) {  // all images contribute to the same elements
      Clear(result, c_.filter, 0, c_.filter.rows());
      for (int64_t image = 0; image < c_.images(); ++image) Filter(image, a, b, result);
      return;
    }
    stream.ParallelFor(c_.images(), 1, [&](int64_t begin, int64_t end) {
      const bool forward = pass_ == ConvolutionPass::kForward;
      const Operand& written = forward ? c_.output : c_.image;
      const int64_t rows = written.rows() / c_.images();
      Clear(result, written, begin * rows, end * rows);
      for (int64_t image = begin; image < end; ++image) {
        forward ? Forward(image, a, b, result) : Input(image, a, b, result);
      }
      if (forward)
        Finish(begin * rows, end * rows, c_.bias ? static_cast<const T*>(inputs[2]) : nullptr,
               result);
    });
  }

 private:
  // Calls body(channel, filter row, first output, outputs) for each channel of a pixel. The last
  // two arguments specify the outputs in the channel's group.
  template <typename Body>
  void ForEachChannel(int64_t tap, const Body& body) const {
    const int64_t depth = c_.filter.shape.dim(2), outputs = c_.outputs() / c_.groups();
    for (int64_t channel = 0; channel < c_.channels(); ++channel)
      body(channel, tap + channel % depth, channel / depth * outputs, outputs);
  }

  void Forward(int64_t image, const T* x, const T* filter, T* y) const {
    ForEachProduct(c_, image, [&](int64_t pixel, int64_t tap, int64_t output) {
      ForEachChannel(tap, [&](int64_t channel, int64_t row, int64_t first, int64_t count) {
        const T value = x[pixel * c_.image.row_stride + channel];
        const T* weights = filter + row * c_.filter.row_stride + first;
        T* to = y + output * c_.output.row_stride + first;
        for (int64_t i = 0; i < count; ++i) to[i] += value * weights[i];
      });
    });
  }

  // Adds the bias to rows [first, last) of the output, and applies the activation.
  void Finish(int64_t first, int64_t last, const T* bias, T* y) const {
    for (int64_t row = first; row < last; ++row) {
      T* const to = y + row * c_.output.row_stride;
      for (int64_t i = 0; i < c_.outputs(); ++i) {
        if (bias != nullptr) to[i] += bias[i];
        if (c_.relu && to[i] < T{0}) to[i] = T{0};
      }
    }
  }

  void Input(int64_t image, const T* filter, const T* dy, T* dx) const {
    ForEachProduct(c_, image, [&](int64_t pixel, int64_t tap, int64_t output) {
      ForEachChannel(tap, [&](int64_t channel, int64_t row, int64_t first, int64_t count) {
        const T* weights = filter + row * c_.filter.row_stride + first;
        const T* from = dy + output * c_.output.row_stride + first;
        T sum = 0;
        for (int64_t i = 0; i < count; ++i) sum += from[i] * weights[i];
        dx[pixel * c_.image.row_stride + channel] += sum;
      });
    });
  }

  void Filter(int64_t image, const T* x, const T* dy, T* d_filter) const {
    ForEachProduct(c_, image, [&](int64_t pixel, int64_t tap, int64_t output) {
      ForEachChannel(tap, [&](int64_t channel, int64_t row, int64_t first, int64_t count) {
        const T value = x[pixel * c_.image.row_stride + channel];
        const T* from = dy + output * c_.output.row_stride + first;
        T* to = d_filter + row * c_.filter.row_stride + first;
        for (int64_t i = 0; i < count; ++i) to[i] += value * from[i];
      });
    });
  }

  ConvolutionPass pass_;
  Convolution c_;
};

Prepared PreparePass(ConvolutionPass pass, const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Convolution convolution, ConvolutionOf(pass, request));
  const Operand &image = convolution.image, &filter = convolution.filter;
  const bool dense = image.dense() && filter.dense() && convolution.output.dense();
  if (dense && image.dtype == DType::kFloat32) {
    const double density = NumberOf(request.attributes, "dy_density", 1);
    if (pass != ConvolutionPass::kForward && SparseIsFaster(convolution, density))
      return PrepareSparseConvolution(pass, convolution);
    return PrepareOneDnnConvolution(pass, convolution);
  }
  return ForFloat(image.dtype, [&]<typename T>(Type<T>) {
    return Make<ConvolutionLoops<T>>(pass, convolution);
  });
}

template <ConvolutionPass kPass>
Prepared PrepareConvolution(const KernelRequest& request) {
  return PreparePass(kPass, request);
}

}  // namespace

KernelTable::Entries ConvolutionKernels() {
  return {{"Conv2D", {PrepareConvolution<ConvolutionPass::kForward>, {}}},
          {"FusedConv2D", {PrepareConvolution<ConvolutionPass::kForward>, {}}},
          {"Conv2DBackpropInput", {PrepareConvolution<ConvolutionPass::kBackwardInput>, {}}},
          {"Conv2DBackpropFilter", {PrepareConvolution<ConvolutionPass::kBackwardFilter>, {}}}};
}

}  // namespace tfjob::kernels::cpu
