#include "runtime/data/order.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/philox.h"

namespace tfjob::data {
namespace {

// Mixes 64 bits (the finalizer of splitmix64, by David Stafford and Sebastiano Vigna).
constexpr uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

KeyedPermutation::KeyedPermutation(uint64_t key, int64_t size)
    : size_(static_cast<uint64_t>(size)) {
  ENFORCE(size >= 1 && size <= int64_t{1} << 62, "sizes are checked where they are read");
  while (half_bits_ < 31 && uint64_t{1} << (2 * half_bits_) < size_) ++half_bits_;
  PhiloxStream random(key);
  for (uint64_t& round : keys_) round = uint64_t{random.Next()} << 32 | random.Next();
}

int64_t KeyedPermutation::At(int64_t place) const {
  const uint64_t mask = (uint64_t{1} << half_bits_) - 1;
  auto value = static_cast<uint64_t>(place);
  // There are at most four times as many values of 2 * half_bits_ bits as `size_`, so the network
  // is applied at most four times on average.
  do {
    uint64_t left = value >> half_bits_, right = value & mask;
    for (const uint64_t round : keys_)
      left = std::exchange(right, left ^ (Mix(right ^ round) & mask));
    value = left << half_bits_ | right;
  } while (value >= size_);
  return static_cast<int64_t>(value);
}

Order::Order(Kind kind, uint64_t seed, int64_t size, int64_t window)
    : kind_(kind), seed_(seed), size_(size), window_(window) {
  ENFORCE(window >= 1, "a window has at least one place");
  if (kind == Kind::kList) list_.resize(static_cast<size_t>(size));
}

void Order::Begin(int64_t epoch) {
  if (epoch == epoch_) return;
  epoch_ = epoch;
  const uint64_t key =
      PhiloxKey(PhiloxKey(seed_, "shuffle") + static_cast<uint64_t>(epoch), "epoch");
  key_ = key;
  begin_ = end_ = 0;
  if (kind_ == Kind::kWindows) {
    PhiloxStream random(PhiloxKey(key, "first window"));
    const auto offset = static_cast<int64_t>(random.Uniform() * static_cast<double>(window_));
    first_end_ = std::min(offset + 1, size_);
  }
  if (kind_ == Kind::kPermutation) permutation_ = KeyedPermutation(key, size_);
  if (kind_ != Kind::kList) return;
  PhiloxStream random(key);
  std::iota(list_.begin(), list_.end(), 0u);
  for (size_t i = list_.size(); i > 1; --i) {
    std::swap(list_[i - 1], list_[random.Below(static_cast<uint32_t>(i))]);
  }
}

// Returns the example at a place. Keeps the permutation of the current window, because successive
// places are usually in the same window.
int64_t Order::InWindow(int64_t place) {
  if (place < begin_ || place >= end_) {
    const int64_t window = place < first_end_ ? 0 : 1 + (place - first_end_) / window_;
    begin_ = window == 0 ? 0 : first_end_ + (window - 1) * window_;
    end_ = window == 0 ? first_end_ : std::min(begin_ + window_, size_);
    permutation_ =
        KeyedPermutation(PhiloxKey(key_ + static_cast<uint64_t>(window), "window"), end_ - begin_);
  }
  return begin_ + permutation_.At(place - begin_);
}

}  // namespace tfjob::data
