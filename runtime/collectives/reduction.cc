#include "runtime/collectives/reduction.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <type_traits>

#include "runtime/base/check.h"

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

// Evaluates the tree over the ranks' values, from element `begin` on.
template <typename T, typename F>
class Tree {
 public:
  Tree(std::span<const std::span<const std::byte>> values, int64_t begin)
      : values_(values), begin_(begin) {}

  // Sets target[0, count) to the tree over the ranks [first, last). Writes an element of the target
  // only after all ranks' values of that element have been read.
  void Evaluate(int first, int last, int64_t count, T* target) const {
    const T* a = Source(first);
    if (last - first == 1) {
      std::memmove(target, a, static_cast<size_t>(count) * sizeof(T));
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

  void Divide(int first, int last, int64_t count, T* target) const {
    std::array<T, kBlockBytes / sizeof(T)> left, right;
    const int middle = TreeMiddle(first, last);
    Evaluate(first, middle, count, left.data());
    const T* other = right.data();
    if (last - middle == 1) {
      other = Source(middle);
    } else {
      Evaluate(middle, last, count, right.data());
    }
    Two(count, left.data(), other, target);
  }

  static void Two(int64_t count, const T* a, const T* b, T* target) {
    TFJOB_NO_CARRIED_DEPENDENCE
    for (int64_t i = 0; i < count; ++i) target[i] = F()(a[i], b[i]);
  }
  static void Three(int64_t count, const T* a, const T* b, const T* c, T* target) {
    TFJOB_NO_CARRIED_DEPENDENCE
    for (int64_t i = 0; i < count; ++i) target[i] = F()(F()(a[i], b[i]), c[i]);
  }
  static void Four(int64_t count, const T* a, const T* b, const T* c, const T* d, T* target) {
    TFJOB_NO_CARRIED_DEPENDENCE
    for (int64_t i = 0; i < count; ++i) target[i] = F()(F()(a[i], b[i]), F()(c[i], d[i]));
  }

  const std::span<const std::span<const std::byte>> values_;
  const int64_t begin_;
};

template <typename T, typename F>
void ReduceBlocks(std::span<std::byte> target, std::span<const std::span<const std::byte>> values) {
  const auto count = static_cast<int64_t>(target.size() / sizeof(T));
  const auto ranks = static_cast<int>(values.size());
  // With up to four ranks, no intermediate blocks are needed.
  const int64_t block = ranks <= 4 ? count : static_cast<int64_t>(kBlockBytes / sizeof(T));
  for (int64_t begin = 0; begin < count; begin += block) {
    T* const out = reinterpret_cast<T*>(target.data()) + begin;
    Tree<T, F>(values, begin).Evaluate(0, ranks, std::min(block, count - begin), out);
  }
}

template <typename T>
void ReduceAs(Reduction reduction, std::span<std::byte> target,
              std::span<const std::span<const std::byte>> values) {
  switch (reduction) {
    case Reduction::kSum:
      return ReduceBlocks<T, Sum>(target, values);
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
  }
  return "unknown";
}

bool CanReduce(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kInt32:
    case DType::kInt64:
      return true;
    default:
      return false;
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
    default:
      ENFORCE(false, "values of this type cannot be reduced; see CanReduce");
  }
}

}  // namespace tfjob::collectives
