// Implements batch normalisation over all axes except the last, and its gradient. Both kernels read
// the rows twice: once to compute sums per channel, and once to write the result. The rows are
// split into chunks. The number of chunks depends only on the sizes, so the result does not depend
// on the number of threads.
#include <algorithm>
#include <cmath>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/functions.h"
#include "runtime/kernels/cpu/image_requests.h"
#include "runtime/kernels/cpu/prepare.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels::cpu {
namespace {

constexpr int64_t kMostNormChunks = 16;
constexpr int64_t kLeastNormChunk = 32768;  // elements
// The approximate number of elements per block, chosen so that a block fits in the cache. Sums are
// computed per block and then combined, which also limits the rounding error of long sums.
constexpr int64_t kNormBlock = 8192;
constexpr int64_t kLeastNormRows = 8;

// Divides the rows of an operation into chunks, which are computed in parallel, and each chunk into
// blocks.
struct ChannelSplit {
  int64_t rows = 0, channels = 0;
  int64_t chunks = 1, block_rows = 1;
  int64_t width = 0;  // the channels, rounded up to whole cache lines

  explicit ChannelSplit(const Operand& x) : rows(x.rows()), channels(x.cols()) {
    const int64_t most = std::clamp<int64_t>(rows, 1, kMostNormChunks);
    chunks = std::clamp<int64_t>(rows * channels / kLeastNormChunk, 1, most);
    block_rows = std::max(kLeastNormRows, kNormBlock / std::max<int64_t>(1, channels));
    width = (channels + 15) / 16 * 16;
  }

  int64_t Begin(int64_t chunk) const { return rows * chunk / chunks; }
  int64_t RowsOf(int64_t chunk) const { return Begin(chunk + 1) - Begin(chunk); }

  // Calls body(first, last) for each block of a chunk.
  template <typename Body>
  void ForEachBlock(int64_t chunk, const Body& body) const {
    const int64_t end = Begin(chunk + 1);
    for (int64_t row = Begin(chunk); row < end; row += block_rows)
      body(row, std::min(end, row + block_rows));
  }

  // Calls body(first, last) for ranges of rows, in parallel.
  template <typename Body>
  void ForEachRange(Stream& stream, const Body& body) const {
    stream.ParallelFor(rows, 1 + kGrain / 2 / std::max<int64_t>(1, channels), body);
  }
};

// Refers to a matrix whose rows start `stride` elements apart.
template <typename T>
struct StridedRows {
  T* data = nullptr;
  int64_t stride = 0;

  T* row(int64_t i) const { return data + i * stride; }
};

template <typename T>
StridedRows<const T> RowsOfInput(const KernelRequest& request, const void* const* inputs,
                                 size_t i) {
  return {static_cast<const T*>(inputs[i]), request.inputs[i].row_stride};
}

template <typename T>
StridedRows<T> RowsOfOutput(const KernelRequest& request, void* const* outputs, size_t i) {
  return {static_cast<T*>(outputs[i]), request.outputs[i].row_stride};
}

// Accumulates, per channel, the mean of some rows and the sum of their squared deviations from the
// mean.
template <typename T>
struct ChannelMoments {
  T *mean = nullptr, *squares = nullptr;
  int64_t rows = 0;

  void Clear(int64_t channels) {
    std::fill_n(mean, channels, T{0});
    std::fill_n(squares, channels, T{0});
    rows = 0;
  }

  // Computes the moments of rows [first, last) of x.
  void Observe(int64_t channels, StridedRows<const T> x, int64_t first, int64_t last) {
    Clear(channels);
    rows = last - first;
    for (int64_t row = first; row < last; ++row) Sum(channels, x.row(row), mean);
    const T share = T{1} / static_cast<T>(rows);
    for (int64_t c = 0; c < channels; ++c) mean[c] *= share;
    for (int64_t row = first; row < last; ++row) SumSquares(channels, x.row(row), mean, squares);
  }

  // Adds the moments of additional rows (Chan, Golub and LeVeque, "Updating formulae and a pairwise
  // algorithm for computing sample variances", 1979).
  void Merge(int64_t channels, const ChannelMoments& other) {
    const auto more = static_cast<T>(other.rows), all = static_cast<T>(rows + other.rows);
    const T share = more / all, weight = static_cast<T>(rows) * share;
    T *const to_mean = mean, *const to_squares = squares;
    const T *const from_mean = other.mean, *const from_squares = other.squares;
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) {
      const T apart = from_mean[c] - to_mean[c];
      to_mean[c] += apart * share;
      to_squares[c] += from_squares[c] + apart * apart * weight;
    }
    rows += other.rows;
  }

 private:
  static void Sum(int64_t channels, const T* x, T* sums) {
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) sums[c] += x[c];
  }
  static void SumSquares(int64_t channels, const T* x, const T* mean, T* sums) {
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) sums[c] += (x[c] - mean[c]) * (x[c] - mean[c]);
  }
};

// Returns the normalised value before the activation. The gradient uses the same expression to
// determine whether the activation kept the value or replaced it with 0.
template <typename T>
T Normalized(T x, T mean, T factor, T beta) {
  return (x - mean) * factor + beta;
}

// Sets factor = gamma / √(variance + epsilon).
template <typename T>
void SetNormFactor(const ChannelSplit& split, const T* gamma, const T* variance, double epsilon,
                   T* factor) {
  for (int64_t c = 0; c < split.channels; ++c)
    factor[c] = gamma[c] / std::sqrt(variance[c] + static_cast<T>(epsilon));
}

template <typename T>
class BatchNorm : public Kernel {
 public:
  BatchNorm(KernelRequest request, NormOptions options)
      : request_(std::move(request)), options_(options), split_(request_.inputs[0]) {}

  // The workspace contains, for each chunk, the moments of the chunk and of a block, followed by
  // one factor per channel.
  size_t workspace_bytes() const override {
    return static_cast<size_t>((4 * split_.chunks + 1) * split_.width) * sizeof(T);
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    const auto x = RowsOfInput<T>(request_, inputs, 0);
    auto* const mean = static_cast<T*>(outputs[1]);
    auto* const variance = static_cast<T*>(outputs[2]);
    auto* const space = static_cast<T*>(workspace);
    Observe(x, space, mean, variance, stream);
    T* const factor = space + 4 * split_.chunks * split_.width;
    SetNormFactor(split_, static_cast<const T*>(inputs[1]), variance, options_.epsilon, factor);
    const StridedRows<const T> side =
        options_.side ? RowsOfInput<T>(request_, inputs, 3) : StridedRows<const T>();
    const auto y = RowsOfOutput<T>(request_, outputs, 0);
    const auto* const beta = static_cast<const T*>(inputs[2]);
    split_.ForEachRange(stream, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        if (options_.side) {
          Write<true, true>(x.row(row), side.row(row), mean, factor, beta, y.row(row));
        } else if (options_.relu) {
          Write<true, false>(x.row(row), nullptr, mean, factor, beta, y.row(row));
        } else {
          Write<false, false>(x.row(row), nullptr, mean, factor, beta, y.row(row));
        }
      }
    });
  }

 private:
  // Returns the moments at index `i` in the workspace.
  ChannelMoments<T> At(T* space, int64_t i) const {
    T* const first = space + 2 * i * split_.width;
    return {first, first + split_.width};
  }

  void Observe(StridedRows<const T> x, T* space, T* mean, T* variance, Stream& stream) const {
    const int64_t channels = split_.channels;
    stream.ParallelFor(split_.chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        ChannelMoments<T> all = At(space, 2 * chunk), block = At(space, 2 * chunk + 1);
        all.Clear(channels);
        split_.ForEachBlock(chunk, [&](int64_t first, int64_t last) {
          block.Observe(channels, x, first, last);
          all.Merge(channels, block);
        });
      }
    });
    ChannelMoments<T> total{mean, variance};
    total.Clear(channels);
    for (int64_t chunk = 0; chunk < split_.chunks; ++chunk) {
      ChannelMoments<T> part = At(space, 2 * chunk);
      part.rows = split_.RowsOf(chunk);
      total.Merge(channels, part);
    }
    const auto rows = static_cast<T>(split_.rows);  // 0/0 if there are no rows, as in Mean
    for (int64_t c = 0; c < channels; ++c) variance[c] /= rows;
  }

  template <bool kRelu, bool kSide>
  void Write(const T* x, const T* side, const T* mean, const T* factor, const T* beta, T* y) const {
    const int64_t channels = split_.channels;
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) {
      T value = Normalized(x[c], mean[c], factor[c], beta[c]);
      if constexpr (kSide) value += side[c];
      y[c] = kRelu ? Relu()(value) : value;
    }
  }

  KernelRequest request_;
  NormOptions options_;
  ChannelSplit split_;
};

// Specifies how the gradient determines which values the activation kept:
//   - kNone: all values, because there is no activation.
//   - kComputed: by computing the normalised value again.
//   - kRead: by reading the output of the activation.
enum class ActivationMask { kNone, kComputed, kRead };

// Contains the values that the gradient reads. `more`, if not null, is added to dy. `y` may be
// null.
template <typename T>
struct NormGradInputs {
  StridedRows<const T> dy, x, y, more;
  const T *mean, *factor, *beta;

  // For one row, sets g to the gradient with respect to the value before the activation.
  template <ActivationMask kMask, bool kMore>
  void Row(int64_t row, int64_t channels, T* g) const {
    const T *const from = dy.row(row), *const add = more.row(row);
    const T *const in = x.row(row), *const out = y.row(row);
    const T *const m = mean, *const f = factor, *const b = beta;
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) {
      T value = from[c];
      if constexpr (kMore) value += add[c];
      bool passes = true;
      if constexpr (kMask == ActivationMask::kComputed)
        passes = Normalized(in[c], m[c], f[c], b[c]) > 0;
      if constexpr (kMask == ActivationMask::kRead) passes = out[c] > 0;
      g[c] = passes ? value : T{0};
    }
  }
};

// Accumulates the sums over rows that all gradients need: the sum of g and the sum of g·(x - mean).
template <typename T>
struct GradientSums {
  T *plain = nullptr, *products = nullptr;

  void Clear(int64_t channels) {
    std::fill_n(plain, channels, T{0});
    std::fill_n(products, channels, T{0});
  }
  void AddRow(int64_t channels, const T* g, const T* x, const T* mean) {
    T *const to = plain, *const to_products = products;
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) {
      to[c] += g[c];
      to_products[c] += g[c] * (x[c] - mean[c]);
    }
  }
  void Merge(int64_t channels, const GradientSums& other) {
    for (int64_t c = 0; c < channels; ++c) {
      plain[c] += other.plain[c];
      products[c] += other.products[c];
    }
  }
};

// Computes the following gradients, where n is the number of rows, g is the gradient with respect
// to the value before the activation, and r = 1/√(variance + epsilon):
//   d_beta = Σ g, d_gamma = r·Σ g·(x - mean)
//   dx = gamma·r·(g - Σ g/n - (x - mean)·r²·Σ g·(x - mean)/n)
template <typename T>
class BatchNormGrad : public Kernel {
 public:
  BatchNormGrad(KernelRequest request, NormOptions options)
      : request_(std::move(request)), options_(options), split_(request_.inputs[1]) {}

  size_t workspace_bytes() const override {
    return static_cast<size_t>((kPerChunk * split_.chunks + 3) * split_.width) * sizeof(T);
  }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    auto* const space = static_cast<T*>(workspace);
    T* const factor = space + kPerChunk * split_.chunks * split_.width;
    const auto* const variance = static_cast<const T*>(inputs[5]);
    SetNormFactor(split_, static_cast<const T*>(inputs[2]), variance, options_.epsilon, factor);
    NormGradInputs<T> in = InputsOf(inputs, factor);
    StridedRows<T> d_side;
    if (options_.side) d_side = RowsOfOutput<T>(request_, outputs, 3);
    Sum(in, d_side, space, stream);
    T *const shift = factor + split_.width, *const slope = shift + split_.width;
    Finish(space, variance, factor, static_cast<T*>(outputs[1]), static_cast<T*>(outputs[2]), shift,
           slope);
    if (options_.side) in.dy = {d_side.data, d_side.stride};  // includes the activation's gradient
    const auto dx = RowsOfOutput<T>(request_, outputs, 0);
    split_.ForEachRange(stream, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        if (options_.relu && !options_.side) {
          Write<true>(in, row, shift, slope, dx.row(row));
        } else {
          Write<false>(in, row, shift, slope, dx.row(row));
        }
      }
    });
  }

 private:
  // For each chunk, the workspace contains the sums of the chunk, the sums of a block, and a row.
  static constexpr int64_t kPerChunk = 5;

  GradientSums<T> At(T* space, int64_t chunk, int64_t i) const {
    T* const first = space + (chunk * kPerChunk + 2 * i) * split_.width;
    return {first, first + split_.width};
  }

  NormGradInputs<T> InputsOf(const void* const* inputs, const T* factor) const {
    NormGradInputs<T> in{.dy = RowsOfInput<T>(request_, inputs, 0),
                         .x = RowsOfInput<T>(request_, inputs, 1)};
    in.beta = static_cast<const T*>(inputs[3]);
    in.mean = static_cast<const T*>(inputs[4]);
    in.factor = factor;
    if (options_.side) in.y = RowsOfInput<T>(request_, inputs, 6);
    if (has_more()) in.more = RowsOfInput<T>(request_, inputs, 7);
    return in;
  }
  bool has_more() const { return request_.inputs.size() == 8; }

  // Computes the sums of each chunk. If there is a side input, also stores g in d_side.
  void Sum(const NormGradInputs<T>& in, StridedRows<T> d_side, T* space, Stream& stream) const {
    const int64_t channels = split_.channels;
    stream.ParallelFor(split_.chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t chunk = begin; chunk < end; ++chunk) {
        GradientSums<T> all = At(space, chunk, 0), block = At(space, chunk, 1);
        T* const g = At(space, chunk, 2).plain;
        all.Clear(channels);
        split_.ForEachBlock(chunk, [&](int64_t first, int64_t last) {
          block.Clear(channels);
          for (int64_t row = first; row < last; ++row) {
            const T* const passed = Pass(in, row, options_.side ? d_side.row(row) : g);
            block.AddRow(channels, passed, in.x.row(row), in.mean);
          }
          all.Merge(channels, block);
        });
      }
    });
  }

  // Returns, for one row, the gradient with respect to the value before the activation. If there is
  // no activation, this is dy itself; otherwise, the gradient is computed and stored in `g`.
  const T* Pass(const NormGradInputs<T>& in, int64_t row, T* g) const {
    if (!options_.relu) return in.dy.row(row);
    if (has_more()) {
      in.template Row<ActivationMask::kRead, true>(row, split_.channels, g);
    } else if (options_.side) {
      in.template Row<ActivationMask::kRead, false>(row, split_.channels, g);
    } else {
      in.template Row<ActivationMask::kComputed, false>(row, split_.channels, g);
    }
    return g;
  }

  // Adds up the sums of all chunks in order, and computes the values that depend only on the
  // channel.
  void Finish(T* space, const T* variance, const T* factor, T* d_gamma, T* d_beta, T* shift,
              T* slope) const {
    GradientSums<T> total{d_beta, d_gamma};
    total.Clear(split_.channels);
    for (int64_t chunk = 0; chunk < split_.chunks; ++chunk)
      total.Merge(split_.channels, At(space, chunk, 0));
    const auto rows = static_cast<T>(split_.rows);
    for (int64_t c = 0; c < split_.channels; ++c) {
      const T spread = variance[c] + static_cast<T>(options_.epsilon);
      shift[c] = factor[c] * (d_beta[c] / rows);
      slope[c] = factor[c] * (d_gamma[c] / rows) / spread;
      d_gamma[c] /= std::sqrt(spread);
    }
  }

  template <bool kMasked>
  void Write(const NormGradInputs<T>& in, int64_t row, const T* shift, const T* slope,
             T* dx) const {
    const T *const g = in.dy.row(row), *const x = in.x.row(row);
    const T *const mean = in.mean, *const factor = in.factor, *const beta = in.beta;
    const int64_t channels = split_.channels;
#pragma GCC ivdep
    for (int64_t c = 0; c < channels; ++c) {
      T value = g[c];
      if constexpr (kMasked)
        value = Normalized(x[c], mean[c], factor[c], beta[c]) > 0 ? value : T{0};
      dx[c] = factor[c] * value - shift[c] - (x[c] - mean[c]) * slope[c];
    }
  }

  KernelRequest request_;
  NormOptions options_;
  ChannelSplit split_;
};

Prepared PrepareBatchNorm(const KernelRequest& request) {
  ASSIGN_OR_RETURN(const NormOptions options, BatchNormOf(request));
  return ForFloat(request.inputs[0].dtype,
                  [&]<typename T>(Type<T>) { return Make<BatchNorm<T>>(request, options); });
}

Prepared PrepareBatchNormGrad(const KernelRequest& request) {
  ASSIGN_OR_RETURN(const NormOptions options, BatchNormGradOf(request));
  return ForFloat(request.inputs[1].dtype,
                  [&]<typename T>(Type<T>) { return Make<BatchNormGrad<T>>(request, options); });
}

}  // namespace

KernelTable::Entries BatchNormKernels() {
  const KernelEntry forward = {PrepareBatchNorm, {{0, 0}, {0, 3}}};
  const KernelEntry backward = {PrepareBatchNormGrad, {{0, 1}, {0, 0}, {3, 0}}};
  return {{"FusedBatchNorm", forward},
          {"FusedBatchNormEx", forward},
          {"FusedBatchNormGrad", backward},
          {"FusedBatchNormGradEx", backward}};
}

}  // namespace tfjob::kernels::cpu
