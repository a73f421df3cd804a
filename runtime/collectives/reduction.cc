#include "runtime/collectives/reduction.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "runtime/base/check.h"
#include "runtime/tensor/half.h"

// Tells the compiler that a loop's target may be one of its sources, but does not overlap a source
// in any other way. Otherwise, the compiler would check for overlaps at run time, and would not
// vectorise a loop whose target is a source.
#ifdef __clang__
#define TFJOB_NO_CARRIED_DEPENDENCE _Pragma("clang loop vectorize(assume_safety)")
#else
#define TFJOB_NO_CARRIED_DEPENDENCE _Pragma("GCC ivdep")
#endif

namespace tfjob::collectives {
namespace {

// The size of a block. It is small enough that one block per level of the tree fits in the
// first-level cache.
constexpr size_t kBlockBytes = 4096;

struct Sum {
  template <typename T>
  T operator()(T left, T right) const {
    if constexpr (std::is_integral_v<T>) {
      using Unsigned = std::make_unsigned_t<T>;  // wraps around
      return static_cast<T>(static_cast<Unsigned>(left) + static_cast<Unsigned>(right));
    } else {
      return left + right;
    }
  }
};
// `left != left` is true for NaN only. If `right` is NaN, every comparison with it is false.
struct Minimum {
  template <typename T>
  T operator()(T left, T right) const {
    return left < right || left != left ? left : right;
  }
};
struct Maximum {
  template <typename T>
  T operator()(T left, T right) const {
    return left > right || left != left ? left : right;
  }
};

// The type in which a tree over values of type T is evaluated.
template <typename T>
using WideOf = std::conditional_t<sizeof(T) == 2, float, T>;

// Evaluates the tree over the ranks' values, from element `begin` on. T is the type of the values.
template <typename T, typename F>
class Tree {
 public:
  using Wide = WideOf<T>;

  Tree(std::span<const std::span<const std::byte>> values, int64_t begin)
      : values_(values), begin_(begin) {}

  // Sets target[0, count) to the tree over the ranks [first, last). Writes an element of the target
  // only after all ranks' values of that element have been read.
  void Evaluate(int first, int last, int64_t count, Wide* target) const {
    const T* a = Source(first);
    if (last - first == 1) {
      One(count, a, target);
    } else if (last - first == 2) {
      Two(count, a, Source(first + 1), target);
    } else if (last - first == 3) {
      Three(count, a, Source(first + 1), Source(first + 2), target);
    } else if (last - first == 4) {
      Four(count, a, Source(first + 1), Source(first + 2), Source(first + 3), target);
    } else {
      Divide(first, last, count, target);
    }
  }

 private:
  const T* Source(int rank) const {
    return reinterpret_cast<const T*>(values_[static_cast<size_t>(rank)].data()) + begin_;
  }

  void Divide(int first, int last, int64_t count, Wide* target) const {
    std::array<Wide, kBlockBytes / sizeof(Wide)> left, right;
    const int middle = TreeMiddle(first, last);
    Evaluate(first, middle, count, left.data());
    if (last - middle == 1) {
      Two(count, left.data(), Source(middle), target);
    } else {
      Evaluate(middle, last, count, right.data());
      Two(count, left.data(), right.data(), target);
    }
  }

  static Wide Widen(T value)
    requires(!std::is_same_v<T, Wide>)
  {
    return static_cast<Wide>(value);
  }
  static Wide Widen(Wide value) { return value; }

  static void One(int64_t count, const T* a, Wide* target) {
    if constexpr (std::is_same_v<T, Wide>) {
      std::memmove(target, a, static_cast<size_t>(count) * sizeof(T));
    } else {
      ToFloat(a, target, static_cast<size_t>(count));
    }
  }
  template <typename A, typename B>
  static void Two(int64_t count, const A* a, const B* b, Wide* target) {
    TFJOB_NO_CARRIED_DEPENDENCE
    for (int64_t i = 0; i < count; ++i) target[i] = F()(Widen(a[i]), Widen(b[i]));
  }
  static void Three(int64_t count, const T* a, const T* b, const T* c, Wide* target) {
    TFJOB_NO_CARRIED_DEPENDENCE
    for (int64_t i = 0; i < count; ++i) target[i] = F()(F()(Widen(a[i]), Widen(b[i])), Widen(c[i]));
  }
  static void Four(int64_t count, const T* a, const T* b, const T* c, const T* d, Wide* target) {
    TFJOB_NO_CARRIED_DEPENDENCE
    for (int64_t i = 0; i < count; ++i)
      target[i] = F()(F()(Widen(a[i]), Widen(b[i])), F()(Widen(c[i]), Widen(d[i])));
  }

  const std::span<const std::span<const std::byte>> values_;
  const int64_t begin_;
};

template <typename T>
void DivideAs(T* values, int64_t count, int ranks) {
  const auto divisor = static_cast<T>(ranks);
  for (int64_t i = 0; i < count; ++i) values[i] /= divisor;
}

// Evaluates the tree block by block. If `mean` is true, divides its values by the number of ranks.
template <typename T, typename F>
void ReduceBlocks(std::span<std::byte> target, std::span<const std::span<const std::byte>> values,
                  bool mean = false) {
  using Wide = WideOf<T>;
  constexpr bool kRounds = !std::is_same_v<T, Wide>;
  const auto count = static_cast<int64_t>(target.size() / sizeof(T));
  const auto ranks = static_cast<int>(values.size());
  // With up to four ranks, no intermediate blocks are needed.
  const bool whole = ranks <= 4 && !mean && !kRounds;
  const int64_t block = whole ? count : static_cast<int64_t>(kBlockBytes / sizeof(Wide));
  [[maybe_unused]] std::array<Wide, kRounds ? kBlockBytes / sizeof(Wide) : 1> wide;
  for (int64_t begin = 0; begin < count; begin += block) {
    const int64_t size = std::min(block, count - begin);
    T* const out = reinterpret_cast<T*>(target.data()) + begin;
    Wide* sums = nullptr;
    if constexpr (kRounds) {
      sums = wide.data();
    } else {
      sums = out;
    }
    Tree<T, F>(values, begin).Evaluate(0, ranks, size, sums);
    if constexpr (std::is_floating_point_v<Wide>) {
      if (mean) DivideAs(sums, size, ranks);
    }
    if constexpr (kRounds) FromFloat(sums, out, static_cast<size_t>(size));
  }
}

template <typename T>
void ReduceAs(Reduction reduction, std::span<std::byte> target,
              std::span<const std::span<const std::byte>> values) {
  switch (reduction) {
    case Reduction::kSum:
      return ReduceBlocks<T, Sum>(target, values);
    case Reduction::kMean:
      return ReduceBlocks<T, Sum>(target, values, /*mean=*/true);
    case Reduction::kMinimum:
      return ReduceBlocks<T, Minimum>(target, values);
    case Reduction::kMaximum:
      return ReduceBlocks<T, Maximum>(target, values);
  }
}

}  // namespace

int TreeMiddle(int begin, int end) {
  return begin + static_cast<int>(std::bit_floor(static_cast<unsigned>(end - begin - 1)));
}

std::string_view Name(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return "sum";
    case Reduction::kMinimum:
      return "minimum";
    case Reduction::kMaximum:
      return "maximum";
    case Reduction::kMean:
      return "mean";
  }
  return "unknown";
}

Status CheckReduction(std::string_view operation, DType dtype, Reduction reduction) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kBFloat16:
    case DType::kFloat16:
      return OkStatus();
    case DType::kInt32:
    case DType::kInt64:
      if (reduction != Reduction::kMean) return OkStatus();
      return InvalidArgument(operation, " of ", Name(dtype),
                             ": integers have no mean; use sum, and divide the result");
    default:
      return InvalidArgument(operation, " of ", Name(dtype),
                             ": expected float32, float64, bfloat16, float16, int32 or int64");
  }
}

void Combine(DType dtype, Reduction reduction, std::span<std::byte> target,
             std::span<const std::byte> left, std::span<const std::byte> right) {
  const std::array<std::span<const std::byte>, 2> values{left, right};
  CombineAll(dtype, reduction, target, values);
}

void CombineAll(DType dtype, Reduction reduction, std::span<std::byte> target,
                std::span<const std::span<const std::byte>> values) {
  ENFORCE(!values.empty(), "a reduction needs a value");
  ENFORCE(CheckReduction("", dtype, reduction).ok(), "a reduction that CheckReduction accepts");
  for (const std::span<const std::byte> value : values) {
    ENFORCE(value.size() == target.size(), "all values of a reduction must have one size");
  }
  switch (dtype) {
    case DType::kFloat32:
      return ReduceAs<float>(reduction, target, values);
    case DType::kFloat64:
      return ReduceAs<double>(reduction, target, values);
    case DType::kInt32:
      return ReduceAs<int32_t>(reduction, target, values);
    case DType::kInt64:
      return ReduceAs<int64_t>(reduction, target, values);
    case DType::kBFloat16:
      return ReduceAs<BFloat16>(reduction, target, values);
    case DType::kFloat16:
      return ReduceAs<Float16>(reduction, target, values);
    default:
      return;
  }
}

void DivideByRanks(DType dtype, std::span<std::byte> values, int ranks) {
  ENFORCE(dtype == DType::kFloat32 || dtype == DType::kFloat64, "values with partial sums");
  if (dtype == DType::kFloat32) {
    DivideAs(reinterpret_cast<float*>(values.data()), std::ssize(values) / int64_t{sizeof(float)},
             ranks);
  } else {
    DivideAs(reinterpret_cast<double*>(values.data()), std::ssize(values) / int64_t{sizeof(double)},
             ranks);
  }
}

}  // namespace tfjob::collectives
