// Implements the projective transformation of images, and its gradient. The innermost loops are
// over channels, because channels are contiguous.
#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/image_requests.h"
#include "runtime/kernels/cpu/prepare.h"
#include "runtime/kernels/cpu/rows.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels::cpu {
namespace {

// Returns a - size·⌊a / size⌋. Does not convert `a` to an integer, because `a` may be too large.
template <typename T>
T Modulo(T a, T size) {
  return a - size * std::floor(a / size);
}

// Maps coordinate `at`, which may be outside the image, to the coordinate in [0, size - 1] that
// supplies its value, as in TensorFlow. For kConstant, returns `at` itself.
template <typename T>
T Inside(Border border, T at, int64_t size) {
  const T last = static_cast<T>(size - 1), length = static_cast<T>(size);
  if (border == Border::kConstant || (at >= 0 && at <= last)) return at;
  if (border == Border::kReflect) {
    at = Modulo(at, 2 * length);
    if (at >= length) at = 2 * length - at - 1;
  } else if (border == Border::kWrap) {
    at = last == 0 ? 0
         : at < 0  ? at + length * (std::floor(-at / last) + 1)
                   : at - length * std::floor(at / last);
  }
  return at >= 0 ? std::min(at, last) : T{0};  // NaN becomes 0
}

// Lists the pixels from which an output pixel is interpolated.
template <typename T>
struct Sources {
  std::array<int64_t, 4> pixels;  // indices in the image, or -1 for the fill value
  std::array<T, 4> weights;
  int count = 0;

  void Add(int64_t pixel, T weight) {
    pixels[static_cast<size_t>(count)] = pixel;
    weights[static_cast<size_t>(count++)] = weight;
  }
};

struct Sampler : Transformation {
  explicit Sampler(const Transformation& how) : Transformation(how) {}

  // Returns the index of the pixel in column x and row y of an image, or -1 if there is no such
  // pixel or a coordinate is NaN.
  template <typename T>
  int64_t Pixel(T x, T y) const {
    const bool inside =
        x >= 0 && y >= 0 && x < static_cast<T>(width()) && y < static_cast<T>(height());
    return inside ? static_cast<int64_t>(y) * width() + static_cast<int64_t>(x) : -1;
  }

  template <typename T>
  Sources<T> SourcesAt(T x, T y) const {
    Sources<T> sources;
    if (!bilinear) {
      sources.Add(Pixel(std::round(x), std::round(y)), T{1});
      return sources;
    }
    const T left = std::floor(x), top = std::floor(y);
    const T right_weight = x - left, bottom_weight = y - top;
    sources.Add(Pixel(left, top), (1 - bottom_weight) * (1 - right_weight));
    sources.Add(Pixel(left + 1, top), (1 - bottom_weight) * right_weight);
    sources.Add(Pixel(left, top + 1), bottom_weight * (1 - right_weight));
    sources.Add(Pixel(left + 1, top + 1), bottom_weight * right_weight);
    return sources;
  }

  // Calls body(sources, pixel) for each pixel of a transformed image.
  template <typename T, typename Body>
  void ForEachPixel(const T* transform, const Body& body) const {
    const int64_t rows = transformed.shape.dim(1), columns = transformed.shape.dim(2);
    for (int64_t row = 0; row < rows; ++row) {
      for (int64_t column = 0; column < columns; ++column) {
        const T x = static_cast<T>(column), y = static_cast<T>(row);
        const T k = transform[6] * x + transform[7] * y + 1;
        Sources<T> sources;
        if (k == 0) {
          sources.Add(-1, T{1});
        } else {
          sources = SourcesAt(
              Inside(border, (transform[0] * x + transform[1] * y + transform[2]) / k, width()),
              Inside(border, (transform[3] * x + transform[4] * y + transform[5]) / k, height()));
        }
        body(sources, row * columns + column);
      }
    }
  }

  // Calls body(image, transform) for each image, in parallel. `transform` points to 8 numbers.
  template <typename T, typename Body>
  void ForEachImage(const T* rows, Stream& stream, const Body& body) const {
    const int64_t pixels = transformed.shape.dim(1) * transformed.shape.dim(2);
    stream.ParallelFor(batch(), 1 + kGrain / std::max<int64_t>(1, 4 * pixels * channels()),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t image = begin; image < end; ++image)
                           body(image, rows + image * transforms.row_stride);
                       });
  }
};

template <typename T>
class Transform : public Kernel {
 public:
  explicit Transform(const Transformation& how)
      : how_(how), fill_(static_cast<T>(how.fill_value)) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* images = static_cast<const T*>(inputs[0]);
    auto* out = static_cast<T*>(outputs[0]);
    const int64_t in_pixels = how_.height() * how_.width();
    const int64_t out_pixels = how_.transformed.shape.dim(1) * how_.transformed.shape.dim(2);
    how_.ForEachImage(
        static_cast<const T*>(inputs[1]), stream, [&](int64_t image, const T* transform) {
          how_.ForEachPixel(transform, [&](const Sources<T>& sources, int64_t pixel) {
            T* const to = out + (image * out_pixels + pixel) * how_.transformed.row_stride;
            std::fill_n(to, how_.channels(), T{0});
            for (int i = 0; i < sources.count; ++i) {
              const auto at = static_cast<size_t>(i);
              AddPixel(images + image * in_pixels * how_.images.row_stride, sources.pixels[at],
                       sources.weights[at], to);
            }
          });
        });
  }

 private:
  void AddPixel(const T* image, int64_t pixel, T weight, T* to) const {
    if (weight == 0) return;  // even if the pixel is infinite
    if (pixel < 0) {
      Map(how_.channels(), [add = weight * fill_](T sum) { return sum + add; }, to, to);
    } else {
      Map(
          how_.channels(), [weight](T sum, T value) { return sum + weight * value; }, to, to,
          image + pixel * how_.images.row_stride);
    }
  }

  const Sampler how_;
  const T fill_;
};

template <typename T>
class TransformGrad : public Kernel {
 public:
  explicit TransformGrad(const Transformation& how) : how_(how) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* dy = static_cast<const T*>(inputs[0]);
    auto* out = static_cast<T*>(outputs[0]);
    const int64_t in_pixels = how_.height() * how_.width(), stride = how_.images.row_stride;
    const int64_t out_pixels = how_.transformed.shape.dim(1) * how_.transformed.shape.dim(2);
    how_.ForEachImage(
        static_cast<const T*>(inputs[1]), stream, [&](int64_t image, const T* transform) {
          T* const dx = out + image * in_pixels * stride;
          for (int64_t pixel = 0; pixel < in_pixels; ++pixel)
            std::fill_n(dx + pixel * stride, how_.channels(), T{0});
          how_.ForEachPixel(transform, [&](const Sources<T>& sources, int64_t pixel) {
            const T* const from = dy + (image * out_pixels + pixel) * how_.transformed.row_stride;
            for (size_t i = 0; i < static_cast<size_t>(sources.count); ++i) {
              const T weight = sources.weights[i];
              if (sources.pixels[i] < 0 || weight == 0) continue;
              T* const to = dx + sources.pixels[i] * stride;
              Map(
                  how_.channels(), [weight](T sum, T add) { return sum + weight * add; }, to, to,
                  from);
            }
          });
        });
  }

 private:
  const Sampler how_;
};

Prepared PrepareTransform(const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Transformation how, TransformOf(request));
  return ForFloat(how.images.dtype, [&]<typename T>(Type<T>) { return Make<Transform<T>>(how); });
}

Prepared PrepareTransformGrad(const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Transformation how, TransformGradOf(request));
  return ForFloat(how.images.dtype,
                  [&]<typename T>(Type<T>) { return Make<TransformGrad<T>>(how); });
}

}  // namespace

KernelTable::Entries ImageTransformKernels() {
  return {{"ImageProjectiveTransformV3", {PrepareTransform, {}}},
          {"ImageProjectiveTransformV3Grad", {PrepareTransformGrad, {}}}};
}

}  // namespace tfjob::kernels::cpu
