// Computes the order of the examples in each epoch. The order depends only on the kind of order,
// the seed, the epoch, the number of examples and the size of the windows. These orders must never
// change, because training that continues from a checkpoint of an earlier version relies on them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace tfjob::data {

// Permutes [0, size) without storing a list: each value is computed when it is needed. A Feistel
// network permutes the numbers below 2^b, where b is the smallest positive even number for which
// 2^b is at least `size`. It is applied repeatedly until the result is below `size` (Black and
// Rogaway, "Ciphers with arbitrary finite domains", 2002).
class KeyedPermutation {
 public:
  KeyedPermutation() = default;
  // `size` is in [1, 2^62].
  KeyedPermutation(uint64_t key, int64_t size);
  int64_t At(int64_t place) const;

 private:
  static constexpr int kRounds = 8;

  uint64_t size_ = 1;
  int half_bits_ = 1;
  std::array<uint64_t, kRounds> keys_{};
};

// Maps the places of an epoch to examples. Only one thread may use an order.
class Order {
 public:
  enum class Kind {
    kFiles,        // the order of the files
    kList,         // a list, shuffled by the Fisher-Yates method; `size` must be below 2^32
    kPermutation,  // a KeyedPermutation
    // The order of the files, but split into windows of `window` places. A separate
    // KeyedPermutation shuffles each window. The first window of an epoch has a random size from 1
    // to `window`, so that the boundaries between windows differ from epoch to epoch.
    kWindows,
  };
  // `window` is at least 1; only for kWindows.
  Order(Kind kind, uint64_t seed, int64_t size, int64_t window = 1);
  Kind kind() const { return kind_; }

  // Makes `epoch` the current epoch. Must be called before At. Does nothing if `epoch` is already
  // the current epoch. Allocates nothing.
  void Begin(int64_t epoch);
  // Returns the index of the example at `place`, which is in [0, size).
  int64_t At(int64_t place) {
    if (kind_ == Kind::kFiles) return place;
    if (kind_ == Kind::kWindows) return InWindow(place);
    return kind_ == Kind::kList ? list_[static_cast<size_t>(place)] : permutation_.At(place);
  }

 private:
  int64_t InWindow(int64_t place);

  const Kind kind_;
  const uint64_t seed_;
  const int64_t size_;
  const int64_t window_;
  int64_t epoch_ = -1;
  uint64_t key_ = 0;             // the key of the current epoch
  int64_t first_end_ = 0;        // the end of the first window
  int64_t begin_ = 0, end_ = 0;  // the window that permutation_ shuffles
  std::vector<uint32_t> list_;
  KeyedPermutation permutation_;
};

}  // namespace tfjob::data
