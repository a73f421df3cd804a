// Implements ops that draw random numbers. ops.md specifies which word of which block each element
// uses.
#include <cmath>
#include <numbers>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/rows.h"
#include "runtime/kernels/random_stream.h"

namespace tfjob::kernels::cpu {
namespace {

constexpr int64_t kWeight = 8;    // cost of a word relative to an addition
constexpr int64_t kChunk = 1024;  // words drawn at a time

// The number of counters for which FillBlocks computes the ten rounds of Philox side by side. If
// there are fewer counters, gcc unrolls the loop over the counters and then fails to vectorise it.
constexpr int64_t kCounters = 32;

// Writes `blocks` blocks of four words, starting with block `first`. Rounds the number of blocks up
// to a multiple of kCounters, so up to kCounters - 1 additional blocks are written.
void FillBlocks(const RandomStream& stream, uint32_t first, int64_t blocks, uint32_t* words) {
  for (int64_t at = 0; at < blocks; at += kCounters) {
    uint32_t c0[kCounters], c1[kCounters], c2[kCounters], c3[kCounters];
    for (int64_t i = 0; i < kCounters; ++i) {
      c0[i] = first + static_cast<uint32_t>(at + i);
      c1[i] = stream.op_id;
      c2[i] = stream.replica;
      c3[i] = stream.step;
    }
    auto key_low = static_cast<uint32_t>(stream.seed);
    auto key_high = static_cast<uint32_t>(stream.seed >> 32);
    for (int round = 0; round < 10; ++round) {
      for (int64_t i = 0; i < kCounters; ++i) {
        // Compute all new words before writing any of them, so that gcc vectorises the loop.
        const uint64_t a = uint64_t{0xD2511F53} * c0[i], b = uint64_t{0xCD9E8D57} * c2[i];
        const uint32_t first_word = static_cast<uint32_t>(b >> 32) ^ c1[i] ^ key_low;
        const uint32_t third_word = static_cast<uint32_t>(a >> 32) ^ c3[i] ^ key_high;
        c1[i] = static_cast<uint32_t>(b);
        c3[i] = static_cast<uint32_t>(a);
        c0[i] = first_word;
        c2[i] = third_word;
      }
      key_low += 0x9E3779B9;
      key_high += 0xBB67AE85;
    }
    for (int64_t i = 0; i < kCounters; ++i) {
      uint32_t* block = words + (at + i) * 4;
      block[0] = c0[i], block[1] = c1[i], block[2] = c2[i], block[3] = c3[i];
    }
  }
}

// Calls body(words, element, count) for chunks of the elements [begin, end), where elements are
// counted in dense order. words[0] is the word for `element`.
template <typename Body>
void ForWords(const RandomStream& stream, int64_t begin, int64_t end, const Body& body) {
  alignas(64) uint32_t words[kChunk + 4 * kCounters];
  while (begin < end) {
    const int64_t count = std::min(kChunk, end - begin), skip = begin % 4;
    FillBlocks(stream, static_cast<uint32_t>(begin / 4), (skip + count + 3) / 4, words);
    body(words + skip, begin, count);
    begin += count;
  }
}

struct StreamAttributes {
  uint32_t op_id = 0;
  uint16_t replica = 0;

  explicit StreamAttributes(const Attributes& attributes)
      : op_id(static_cast<uint32_t>(attributes.Get<int64_t>("op_id", 0))),
        replica(static_cast<uint16_t>(attributes.Get<int64_t>("replica", 0))) {}

  RandomStream At(const void* step, const void* seed) const {
    return {static_cast<uint64_t>(*static_cast<const int64_t*>(seed)), op_id, replica,
            static_cast<uint32_t>(*static_cast<const int64_t*>(step))};
  }
};

template <typename T>
class Dropout : public Kernel {
 public:
  Dropout(const KernelRequest& request, double rate)
      : rows_({&request.outputs[0], &request.inputs[0]}),
        stream_(request.attributes),
        in_stride_(request.inputs[0].row_stride),
        out_stride_(request.outputs[0].row_stride),
        threshold_(static_cast<uint32_t>(rate * 4294967296.0)),
        scale_(static_cast<T>(1 / (1 - rate))) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const auto* x = static_cast<const T*>(inputs[0]);
    auto* y = static_cast<T*>(outputs[0]);
    const RandomStream words = stream_.At(inputs[1], inputs[2]);
    rows_.ForEach(
        stream,
        [&](int64_t row, int64_t begin, int64_t end) {
          const int64_t offset = row * rows_.cols;  // dense index of the first element of the row
          ForWords(words, offset + begin, offset + end,
                   [&](const uint32_t* word, int64_t element, int64_t count) {
                     const int64_t col = element - offset;
                     Map(
                         count,
                         [threshold = threshold_, scale = scale_](T value, uint32_t w) {
                           return w >= threshold ? value * scale : T{0};
                         },
                         y + row * out_stride_ + col, x + row * in_stride_ + col, word);
                   });
        },
        kWeight);
  }

 private:
  Rows rows_;
  StreamAttributes stream_;
  int64_t in_stride_, out_stride_;
  uint32_t threshold_;
  T scale_;
};

Prepared PrepareDropout(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 3, 1));
  RETURN_IF_ERROR(ExpectAlike(request, 0, 1));
  RETURN_IF_ERROR(ExpectInt64Scalar(request.inputs[1]));
  RETURN_IF_ERROR(ExpectInt64Scalar(request.inputs[2]));
  const double rate = NumberOf(request.attributes, "rate", 0);
  if (!(rate >= 0 && rate < 1)) return InvalidArgument("the rate must be in [0, 1), not ", rate);
  return ForFloat(request.outputs[0].dtype,
                  [&]<typename T>(Type<T>) { return Make<Dropout<T>>(request, rate); });
}

// Converts the four words of a block to four numbers, like the other distributions below.
template <typename T>
struct Uniform {
  T low, high;

  void operator()(const RandomStream&, uint32_t, const PhiloxBlock& words, T* out) const {
    const T last = std::nextafter(high, low);
    for (int i = 0; i < 4; ++i) {
      // Use only 24 bits, so that `unit` is an exact float in [0, 1).
      const T unit = static_cast<T>(words[i] >> 8) / T{16777216};
      out[i] = std::min(low + (high - low) * unit, last);
    }
  }
};

template <typename T>
void BoxMuller(const PhiloxBlock& words, T* out) {
  for (int i = 0; i < 4; i += 2) {
    const double unit = (words[i] + 1.0) / 4294967296.0;  // in (0, 1]
    const double radius = std::sqrt(-2 * std::log(unit));
    const double angle = 2 * std::numbers::pi * words[i + 1] / 4294967296.0;
    out[i] = static_cast<T>(radius * std::cos(angle));
    out[i + 1] = static_cast<T>(radius * std::sin(angle));
  }
}

template <typename T>
struct Normal {
  T mean, stddev;
  bool truncated;

  void operator()(const RandomStream& stream, uint32_t block, const PhiloxBlock& words,
                  T* out) const {
    BoxMuller(words, out);
    for (uint16_t attempt = 1; truncated && Outside(out); ++attempt) {
      T again[4];
      BoxMuller(stream.Block(block, attempt), again);
      for (int i = 0; i < 4; ++i) out[i] = std::abs(out[i]) > 2 ? again[i] : out[i];
    }
    for (int i = 0; i < 4; ++i) out[i] = mean + stddev * out[i];
  }

  static bool Outside(const T* values) {
    return std::any_of(values, values + 4, [](T value) { return std::abs(value) > 2; });
  }
};

template <typename T, typename Distribution>
class Random : public Kernel {
 public:
  Random(const KernelRequest& request, Distribution distribution)
      : out_(request.outputs[0]), stream_(request.attributes), distribution_(distribution) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const RandomStream words = stream_.At(inputs[0], inputs[1]);
    auto* out = static_cast<T*>(outputs[0]);
    const int64_t count = out_.shape.num_elements(), cols = std::max<int64_t>(1, out_.cols());
    stream.ParallelFor((count + 3) / 4, kGrain / 64, [&](int64_t begin, int64_t end) {
      for (int64_t block = begin; block < end; ++block) {
        T values[4];
        const auto number = static_cast<uint32_t>(block);
        distribution_(words, number, words.Block(number), values);
        for (int64_t i = block * 4; i < std::min(block * 4 + 4, count); ++i) {
          out[i / cols * out_.row_stride + i % cols] = values[i % 4];
        }
      }
    });
  }

 private:
  Operand out_;
  StreamAttributes stream_;
  Distribution distribution_;
};

Status CheckRandom(const KernelRequest& request) {
  RETURN_IF_ERROR(ExpectOperands(request, 2, 1));
  RETURN_IF_ERROR(ExpectInt64Scalar(request.inputs[0]));
  return ExpectInt64Scalar(request.inputs[1]);
}

Prepared PrepareUniform(const KernelRequest& request) {
  RETURN_IF_ERROR(CheckRandom(request));
  const double low = NumberOf(request.attributes, "minval", 0);
  const double high = NumberOf(request.attributes, "maxval", 1);
  if (!(low < high)) return InvalidArgument("minval ", low, " must be below maxval ", high);
  return ForFloat(request.outputs[0].dtype, [&]<typename T>(Type<T>) {
    const Uniform<T> uniform{static_cast<T>(low), static_cast<T>(high)};
    return Make<Random<T, Uniform<T>>>(request, uniform);
  });
}

template <bool kTruncated>
Prepared PrepareNormal(const KernelRequest& request) {
  RETURN_IF_ERROR(CheckRandom(request));
  const double mean = NumberOf(request.attributes, "mean", 0);
  const double stddev = NumberOf(request.attributes, "stddev", 1);
  if (!(stddev >= 0)) return InvalidArgument("stddev ", stddev, " must be 0 or more");
  return ForFloat(request.outputs[0].dtype, [&]<typename T>(Type<T>) {
    const Normal<T> normal{static_cast<T>(mean), static_cast<T>(stddev), kTruncated};
    return Make<Random<T, Normal<T>>>(request, normal);
  });
}

}  // namespace

KernelTable::Entries RandomKernels() {
  return {{"Dropout", {PrepareDropout, {{0, 0}}}},
          {"DropoutGrad", {PrepareDropout, {{0, 0}}}},
          {"RandomUniform", {PrepareUniform, {}}},
          {"RandomNormal", {PrepareNormal<false>, {}}},
          {"TruncatedNormal", {PrepareNormal<true>, {}}}};
}

}  // namespace tfjob::kernels::cpu
