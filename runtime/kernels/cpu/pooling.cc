// Implements pooling over images. The innermost loops are over channels, because channels are
// contiguous.
#include <algorithm>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/image_requests.h"
#include "runtime/kernels/cpu/rows.h"

namespace tfjob::kernels::cpu {
namespace {

// The number of channels that are pooled at a time. Their data fits into the first-level cache.
constexpr int64_t kChannels = 256;

// Describes the inputs that a window covers: rows [top, bottom) and columns [left, right) of image
// `image`.
struct Seen {
  int64_t image, top, bottom, left, right;

  int64_t count() const { return (bottom - top) * (right - left); }
};

// Calls body(seen, pixel) for each window over image `image`. `pixel` is the row of the window's
// result in the pooled operand.
template <typename Body>
void ForEachWindow(const Pooling& p, int64_t image, const Body& body) {
  const int64_t height = p.image.shape.dim(1), width = p.image.shape.dim(2);
  const int64_t rows = p.pooled.shape.dim(1), columns = p.pooled.shape.dim(2);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t top = row * p.window.height.stride - p.window.height.before;
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t left = column * p.window.width.stride - p.window.width.before;
      const Seen seen = {image, std::max<int64_t>(0, top),
                         std::min(height, top + p.window.height.size), std::max<int64_t>(0, left),
                         std::min(width, left + p.window.width.size)};
      body(seen, (image * rows + row) * columns + column);
    }
  }
}

// Calls body(pixel) for each input that a window covers. `pixel` is the row of the input in the
// image operand.
template <typename Body>
void ForEachSeen(const Pooling& p, const Seen& seen, const Body& body) {
  const int64_t height = p.image.shape.dim(1), width = p.image.shape.dim(2);
  for (int64_t y = seen.top; y < seen.bottom; ++y) {
    for (int64_t x = seen.left; x < seen.right; ++x) body((seen.image * height + y) * width + x);
  }
}

// Calls body(image) for every image, in parallel. The calls must write to disjoint memory.
template <typename Body>
void ForEachImage(const Pooling& p, Stream& stream, const Body& body) {
  const int64_t work = std::max<int64_t>(1, p.image.shape.num_elements() / p.images());
  stream.ParallelFor(p.images(), 1 + kGrain / work, [&](int64_t begin, int64_t end) {
    for (int64_t image = begin; image < end; ++image) body(image);
  });
}

template <typename T>
void ClearImage(const Pooling& p, int64_t image, T* data) {
  const int64_t pixels = p.image.shape.dim(1) * p.image.shape.dim(2);
  for (int64_t pixel = image * pixels; pixel < (image + 1) * pixels; ++pixel)
    std::fill_n(data + pixel * p.image.row_stride, p.channels(), T{0});
}

template <typename T>
class MaxPool : public Kernel {
 public:
  explicit MaxPool(const Pooling& pooling) : p_(pooling) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* x = static_cast<const T*>(inputs[0]);
    auto* y = static_cast<T*>(outputs[0]);
    // The result is NaN if any element is NaN: a NaN replaces any number, and no number compares
    // greater than NaN.
    const auto larger = [](T a, T b) { return b > a || b != b ? b : a; };
    ForEachImage(p_, stream, [&](int64_t image) {
      ForEachWindow(p_, image, [&](const Seen& seen, int64_t pixel) {
        T* const to = y + pixel * p_.pooled.row_stride;
        bool first = true;
        ForEachSeen(p_, seen, [&](int64_t from) {
          const T* const values = x + from * p_.image.row_stride;
          if (std::exchange(first, false)) {
            std::copy_n(values, p_.channels(), to);
          } else {
            Map(p_.channels(), larger, to, to, values);
          }
        });
      });
    });
  }

 private:
  Pooling p_;
};

// Adds the gradient of each maximum to the first input (in row-major order) that equals the
// maximum.
template <typename T>
class MaxPoolGrad : public Kernel {
 public:
  MaxPoolGrad(const Pooling& pooling, const KernelRequest& request)
      : p_(pooling),
        x_stride_(request.inputs[0].row_stride),
        y_stride_(request.inputs[1].row_stride),
        dy_stride_(request.inputs[2].row_stride) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* x = static_cast<const T*>(inputs[0]);
    const auto* y = static_cast<const T*>(inputs[1]);
    const auto* dy = static_cast<const T*>(inputs[2]);
    auto* dx = static_cast<T*>(outputs[0]);
    ForEachImage(p_, stream, [&](int64_t image) {
      ClearImage(p_, image, dx);
      ForEachWindow(p_, image, [&](const Seen& seen, int64_t pixel) {
        for (int64_t channel = 0; channel < p_.channels(); channel += kChannels)
          Block(seen, channel, x, y + pixel * y_stride_, dy + pixel * dy_stride_, dx);
      });
    });
  }

 private:
  void Block(const Seen& seen, int64_t channel, const T* x, const T* y, const T* dy, T* dx) const {
    const int64_t count = std::min(kChannels, p_.channels() - channel);
    T left[kChannels];  // gradients that are not yet assigned to an input
    std::copy_n(dy + channel, count, left);
    y += channel;
    ForEachSeen(p_, seen, [&](int64_t pixel) {
      const T* const from = x + pixel * x_stride_ + channel;
      T* const to = dx + pixel * p_.image.row_stride + channel;
#pragma GCC ivdep
      for (int64_t i = 0; i < count; ++i) {
        const bool hit = from[i] == y[i];
        to[i] += hit ? left[i] : T{0};
        left[i] = hit ? T{0} : left[i];
      }
    });
  }

  Pooling p_;  // `image` is dx
  int64_t x_stride_, y_stride_, dy_stride_;
};

template <typename T>
class AvgPool : public Kernel {
 public:
  explicit AvgPool(const Pooling& pooling) : p_(pooling) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* x = static_cast<const T*>(inputs[0]);
    auto* y = static_cast<T*>(outputs[0]);
    ForEachImage(p_, stream, [&](int64_t image) {
      ForEachWindow(p_, image, [&](const Seen& seen, int64_t pixel) {
        T* const to = y + pixel * p_.pooled.row_stride;
        std::fill_n(to, p_.channels(), T{0});
        ForEachSeen(p_, seen, [&](int64_t from) {
          Map(
              p_.channels(), [](T a, T b) { return a + b; }, to, to,
              x + from * p_.image.row_stride);
        });
        const T share = T{1} / static_cast<T>(seen.count());
        Map(p_.channels(), [share](T sum) { return sum * share; }, to, to);
      });
    });
  }

 private:
  Pooling p_;
};

template <typename T>
class AvgPoolGrad : public Kernel {
 public:
  explicit AvgPoolGrad(const Pooling& pooling) : p_(pooling) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* dy = static_cast<const T*>(inputs[0]);
    auto* dx = static_cast<T*>(outputs[0]);
    ForEachImage(p_, stream, [&](int64_t image) {
      ClearImage(p_, image, dx);
      ForEachWindow(p_, image, [&](const Seen& seen, int64_t pixel) {
        const T share = T{1} / static_cast<T>(seen.count());
        const T* const from = dy + pixel * p_.pooled.row_stride;
        ForEachSeen(p_, seen, [&](int64_t to) {
          T* const sums = dx + to * p_.image.row_stride;
          Map(p_.channels(), [share](T sum, T add) { return sum + add * share; }, sums, sums, from);
        });
      });
    });
  }

 private:
  Pooling p_;
};

template <template <typename> typename K>
Prepared MakePooling(const Pooling& pooling) {
  return ForFloat(pooling.image.dtype, [&]<typename T>(Type<T>) { return Make<K<T>>(pooling); });
}

template <template <typename> typename K>
Prepared PreparePool(const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Pooling pooling, PoolOf(request));
  return MakePooling<K>(pooling);
}

Prepared PrepareMaxPoolGrad(const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Pooling pooling, MaxPoolGradOf(request));
  return ForFloat(request.outputs[0].dtype,
                  [&]<typename T>(Type<T>) { return Make<MaxPoolGrad<T>>(pooling, request); });
}

Prepared PrepareAvgPoolGrad(const KernelRequest& request) {
  ASSIGN_OR_RETURN(const Pooling pooling, AvgPoolGradOf(request));
  return MakePooling<AvgPoolGrad>(pooling);
}

}  // namespace

KernelTable::Entries PoolingKernels() {
  return {{"MaxPool", {PreparePool<MaxPool>, {}}},
          {"MaxPoolGrad", {PrepareMaxPoolGrad, {}}},
          {"AvgPool", {PreparePool<AvgPool>, {}}},
          {"AvgPoolGrad", {PrepareAvgPoolGrad, {}}}};
}

}  // namespace tfjob::kernels::cpu
