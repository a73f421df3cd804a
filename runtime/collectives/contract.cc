#include "runtime/collectives/contract.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <type_traits>

#include "runtime/base/fnv1a.h"
#include "runtime/collectives/reduction.h"
#include "runtime/tensor/half.h"

namespace tfjob::collectives {
namespace {

uint64_t Random(uint64_t seed) {  // SplitMix64
  seed += 0x9e3779b97f4a7c15;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111eb;
  return seed ^ (seed >> 31);
}

// The type in which values of type T are added.
template <typename T>
using WideOf = std::conditional_t<sizeof(T) == 2, float, T>;

// Returns element i of a rank's span. The values differ so much in magnitude that adding them in
// another order gives different bits, but no sum of a few float16 values overflows.
template <typename T>
T ValueOf(int rank, int64_t i) {
  const uint64_t random = Random(static_cast<uint64_t>(rank) << 32 ^ static_cast<uint64_t>(i));
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(random);
  } else {
    constexpr int kMagnitudes = std::is_same_v<T, Float16> ? 14 : 40;
    const auto fraction = static_cast<double>(static_cast<int64_t>(random) >> 12);
    return static_cast<T>(
        static_cast<WideOf<T>>(std::ldexp(fraction, static_cast<int>(random % kMagnitudes) - 52)));
  }
}

template <typename T>
T Apply(Reduction reduction, T left, T right) {
  if (reduction == Reduction::kMinimum) return right < left ? right : left;
  if (reduction == Reduction::kMaximum) return right > left ? right : left;
  if constexpr (std::is_integral_v<T>) {
    T sum;
    (void)__builtin_add_overflow(left, right, &sum);
    return sum;
  } else {
    return left + right;
  }
}

template <typename T>
WideOf<T> TreeOf(Reduction reduction, int first, int last, int64_t i) {
  if (last - first == 1) return static_cast<WideOf<T>>(ValueOf<T>(first, i));
  int half = 1;
  while (2 * half < last - first) half *= 2;
  return Apply(reduction, TreeOf<T>(reduction, first, first + half, i),
               TreeOf<T>(reduction, first + half, last, i));
}

// A second implementation of the rule in reduction.h, for comparison with reduction.cc.
template <typename T>
T ReductionOf(Reduction reduction, int ranks, int64_t i) {
  const WideOf<T> tree = TreeOf<T>(reduction, 0, ranks, i);
  if (reduction != Reduction::kMean) return static_cast<T>(tree);
  return static_cast<T>(tree / static_cast<WideOf<T>>(ranks));
}

// Where the ranks' spans are: in memory from Allocate, in other memory, or (kMixed) in either,
// depending on the rank.
enum class Home { kAllocated, kElsewhere, kMixed };

// One rank's span, filled with that rank's values (ValueOf).
template <typename T>
class Values {
 public:
  Values(Communicator& communicator, int64_t count, Home home)
      : rank_(communicator.rank()), values_(static_cast<size_t>(count)) {
    auto memory = communicator.Allocate(values_.size() * sizeof(T));
    if (!memory.ok()) {
      error_ = memory.status().ToString();
      return;
    }
    memory_ = std::move(memory).value();
    const bool shared = home == Home::kAllocated || (home == Home::kMixed && rank_ % 2 == 0);
    span_ = shared ? std::span(reinterpret_cast<T*>(memory_->bytes().data()), values_.size())
                   : std::span(values_);
    for (const T value : span_) {
      if (static_cast<WideOf<T>>(value) != 0) error_ = "allocated memory is not zero";
    }
    for (int64_t i = 0; i < count; ++i) span_[static_cast<size_t>(i)] = ValueOf<T>(rank_, i);
  }

  const std::string& error() const { return error_; }
  std::span<std::byte> bytes() { return std::as_writable_bytes(span_); }
  int64_t size() const { return static_cast<int64_t>(span_.size()); }

  // Compares each element i in [begin, end) with expected(i).
  template <typename F>
  std::string Compare(const Status& status, const std::string& what, int64_t begin, int64_t end,
                      F expected) const {
    if (!status.ok()) return StrCat(what, ": ", status.ToString());
    for (int64_t i = begin; i < end; ++i) {
      const T wanted = expected(i), got = span_[static_cast<size_t>(i)];
      if (std::memcmp(&wanted, &got, sizeof(T)) != 0) {
        return StrCat(what, " on rank ", rank_, " with ", size(), " elements: element ", i, " is ",
                      static_cast<WideOf<T>>(got), ", expected ", static_cast<WideOf<T>>(wanted));
      }
    }
    return "";
  }

 private:
  int rank_;
  std::vector<T> values_;
  std::unique_ptr<Communicator::Memory> memory_;
  std::span<T> span_;
  std::string error_;
};

#define RETURN_IF_DIFFERENT(expr)                                                \
  do {                                                                           \
    if (std::string difference = (expr); !difference.empty()) return difference; \
  } while (false)

template <typename T>
std::string CheckReductions(Communicator& communicator, int64_t count, Reduction reduction,
                            Home home) {
  constexpr DType kType = DTypeOf<T>::value;
  const int ranks = communicator.size(), rank = communicator.rank();
  std::vector<T> expected(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    expected[static_cast<size_t>(i)] = ReductionOf<T>(reduction, ranks, i);
  }
  const auto tree = [&](int64_t i) { return expected[static_cast<size_t>(i)]; };
  const std::string what =
      StrCat(Name(reduction), " of ", Name(kType), ", home ", static_cast<int>(home));

  Values<T> values(communicator, count, home);
  RETURN_IF_DIFFERENT(values.error());
  RETURN_IF_DIFFERENT(values.Compare(communicator.AllReduce(values.bytes(), kType, reduction),
                                     StrCat("AllReduce, ", what), 0, count, tree));

  Values<T> scattered(communicator, count, home);
  RETURN_IF_DIFFERENT(scattered.error());
  const Slice own = SliceOf(count, rank, ranks);
  RETURN_IF_DIFFERENT(
      scattered.Compare(communicator.ReduceScatter(scattered.bytes(), kType, reduction),
                        StrCat("ReduceScatter, ", what), own.begin, own.begin + own.count, tree));
  RETURN_IF_DIFFERENT(scattered.Compare(communicator.AllGather(scattered.bytes(), sizeof(T)),
                                        StrCat("AllGather, ", what), 0, count, tree));

  const int root = ranks / 2;
  Values<T> reduced(communicator, count, home);
  RETURN_IF_DIFFERENT(reduced.error());
  RETURN_IF_DIFFERENT(reduced.Compare(communicator.Reduce(reduced.bytes(), kType, reduction, root),
                                      StrCat("Reduce, ", what), 0, rank == root ? count : 0, tree));
  return "";
}

std::string CheckMoves(Communicator& communicator, int64_t count, Home home) {
  const int ranks = communicator.size(), rank = communicator.rank();
  Values<float> sent(communicator, count, home);
  RETURN_IF_DIFFERENT(sent.error());
  RETURN_IF_DIFFERENT(sent.Compare(communicator.Broadcast(sent.bytes(), ranks - 1), "Broadcast", 0,
                                   count, [&](int64_t i) { return ValueOf<float>(ranks - 1, i); }));
  const int64_t slice = count / ranks;
  Values<float> swapped(communicator, slice * ranks, home);
  RETURN_IF_DIFFERENT(swapped.error());
  const auto from = [&](int64_t i) {
    return ValueOf<float>(static_cast<int>(i / slice), rank * slice + i % slice);
  };
  return swapped.Compare(communicator.AllToAll(swapped.bytes(), sizeof(float)), "AllToAll", 0,
                         slice * ranks, from);
}

std::string CheckGatherVariable(Communicator& communicator, int64_t count) {
  const int ranks = communicator.size();
  // Rank 0 has the full number of bytes, rank 1 has none, rank 2 has a third, rank 3 has none, …
  const auto size_of = [&](int rank) {
    return static_cast<size_t>(rank % 2 == 1 ? 0 : count / (rank + 1));
  };
  const auto byte_of = [](int rank, size_t i) {
    return static_cast<std::byte>(ValueOf<int32_t>(rank, static_cast<int64_t>(i)));
  };
  std::vector<std::byte> own(size_of(communicator.rank())), all;
  std::vector<size_t> sizes;
  for (size_t i = 0; i < own.size(); ++i) own[i] = byte_of(communicator.rank(), i);
  size_t total = 0;
  for (int rank = 0; rank < ranks; ++rank) total += size_of(rank);
  if (Status status = communicator.AllGatherVariable(own, total, all, sizes); !status.ok()) {
    return StrCat("AllGatherVariable: ", status.ToString());
  }
  if (all.size() != total) return StrCat("AllGatherVariable returned ", all.size(), " bytes");
  size_t at = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    if (sizes[static_cast<size_t>(rank)] != size_of(rank))
      return "AllGatherVariable: a size differs";
    for (size_t i = 0; i < size_of(rank); ++i) {
      if (all[at++] != byte_of(rank, i))
        return StrCat("AllGatherVariable: byte ", at - 1, " differs");
    }
  }
  return "";
}

template <typename T>
uint64_t HashOfSum(Communicator& communicator) {
  std::vector<T> values(1001);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = ValueOf<T>(communicator.rank(), static_cast<int64_t>(i));
  }
  const auto bytes = std::as_writable_bytes(std::span(values));
  if (!communicator.AllReduce(bytes, DTypeOf<T>::value, Reduction::kSum).ok()) return 0;
  return Fnv1a().Add({reinterpret_cast<const char*>(bytes.data()), bytes.size()}).hash();
}

// Checks the reductions of all types. Large spans are checked only with some of them, because the
// types differ only in their size and in their inner loops.
std::string CheckAllReductions(Communicator& communicator, int64_t count, Home home) {
  for (const Reduction reduction :
       {Reduction::kSum, Reduction::kMean, Reduction::kMinimum, Reduction::kMaximum}) {
    const bool large = count > 2000, mean = reduction == Reduction::kMean;
    if (!large || !mean)
      RETURN_IF_DIFFERENT(CheckReductions<float>(communicator, count, reduction, home));
    if (!large || mean)
      RETURN_IF_DIFFERENT(CheckReductions<BFloat16>(communicator, count, reduction, home));
    if (large) continue;
    RETURN_IF_DIFFERENT(CheckReductions<Float16>(communicator, count, reduction, home));
    RETURN_IF_DIFFERENT(CheckReductions<double>(communicator, count, reduction, home));
    if (mean) continue;
    RETURN_IF_DIFFERENT(CheckReductions<int32_t>(communicator, count, reduction, home));
    RETURN_IF_DIFFERENT(CheckReductions<int64_t>(communicator, count, reduction, home));
  }
  return "";
}

std::string FirstDifference(Communicator& communicator, const std::vector<int64_t>& counts) {
  for (const Home home : {Home::kAllocated, Home::kElsewhere, Home::kMixed}) {
    for (const int64_t count : counts) {
      RETURN_IF_DIFFERENT(CheckAllReductions(communicator, count, home));
      RETURN_IF_DIFFERENT(CheckMoves(communicator, count, home));
      RETURN_IF_DIFFERENT(CheckGatherVariable(communicator, count));
    }
  }
  if (Status status = communicator.Barrier(); !status.ok()) return status.ToString();
  return "";
}

}  // namespace

std::string CheckOperations(Communicator& communicator, const std::vector<int64_t>& counts) {
  const std::string difference = FirstDifference(communicator, counts);
  // Abort, because the other ranks may have found no difference, and may be waiting for this rank.
  if (!difference.empty())
    communicator.Abort(Internal("rank ", communicator.rank(), ": ", difference));
  return difference;
}

std::vector<uint64_t> HashesOfSums(Communicator& communicator) {
  return {HashOfSum<float>(communicator),    HashOfSum<double>(communicator),
          HashOfSum<int32_t>(communicator),  HashOfSum<int64_t>(communicator),
          HashOfSum<BFloat16>(communicator), HashOfSum<Float16>(communicator)};
}

}  // namespace tfjob::collectives
