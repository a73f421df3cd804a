#include "runtime/data/operators/mixture.h"

#include <cmath>
#include <numeric>

#include "runtime/base/check.h"
#include "runtime/base/philox.h"

namespace tfjob::data {
namespace {

constexpr uint64_t kOne = uint64_t{1} << 32;

Status CheckWeights(std::span<const double> weights) {
  for (size_t i = 0; i < weights.size(); ++i) {
    if (std::isfinite(weights[i]) && weights[i] > 0) continue;
    return InvalidArgument("weight of dataset ", i, ": expected a finite number above 0, got ",
                           weights[i]);
  }
  return OkStatus();
}

// Returns a source's weight as a fraction of the sum of this weight and all following weights.
StatusOr<uint64_t> ShareOf(std::span<const double> weights, size_t source) {
  const double rest =
      std::accumulate(weights.begin() + static_cast<std::ptrdiff_t>(source), weights.end(), 0.0);
  const double share = std::round(weights[source] / rest * static_cast<double>(kOne));
  if (share >= 1 && share < static_cast<double>(kOne)) return static_cast<uint64_t>(share);
  return InvalidArgument("weight of dataset ", source, ": ", weights[source],
                         " differs too much from the other weights; expected a ratio of at most ",
                         "2^31");
}

}  // namespace

// Multiplies `places` in two halves, because the product may have more than 64 bits.
int64_t Mixture::Share::Taken(int64_t places) const {
  const uint64_t high = static_cast<uint64_t>(places) >> 32;
  const uint64_t low = static_cast<uint64_t>(places) & (kOne - 1);
  return static_cast<int64_t>(high * share + ((low * share + phase) >> 32));
}

StatusOr<Mixture> Mixture::Create(std::span<const int64_t> sizes, std::span<const double> weights,
                                  Stop stop, uint64_t seed) {
  ENFORCE(sizes.size() == weights.size() && !sizes.empty(), "one weight per source");
  RETURN_IF_ERROR(CheckWeights(weights));
  Mixture mixture;
  mixture.sizes_.assign(sizes.begin(), sizes.end());
  PhiloxStream random(PhiloxKey(seed, "mix"));
  for (size_t i = 0; i + 1 < sizes.size(); ++i) {
    ASSIGN_OR_RETURN(const uint64_t share, ShareOf(weights, i));
    mixture.shares_.push_back({share, random.Next()});
  }
  RETURN_IF_ERROR(mixture.FindSize(stop));
  return mixture;
}

Place Mixture::At(int64_t index) const {
  int64_t left = index;
  for (size_t i = 0; i < shares_.size(); ++i) {
    const int64_t taken = shares_[i].Taken(left);
    if (shares_[i].Taken(left + 1) > taken) return {i, taken % sizes_[i]};
    left -= taken;
  }
  return {shares_.size(), left % sizes_.back()};
}

int64_t Mixture::Count(size_t source, int64_t index) const {
  int64_t left = index;
  for (size_t i = 0; i < source; ++i) left -= shares_[i].Taken(left);
  return source < shares_.size() ? shares_[source].Taken(left) : left;
}

// Returns whether the mixture has at most `size` examples.
bool Mixture::Ends(int64_t size, Stop stop) const {
  for (size_t i = 0; i < sizes_.size(); ++i) {
    // With kFirst, the mixture ends if the source of the next example has no example left.
    if (stop == Stop::kFirst && Count(i, size + 1) > sizes_[i]) return true;
    if (stop == Stop::kAll && Count(i, size) < sizes_[i]) return false;
  }
  return stop == Stop::kAll;
}

Status Mixture::FindSize(Stop stop) {
  // Invariant: the mixture has more than `below` examples and, after the first loop, at most `end`.
  int64_t below = 0, end = 1;
  while (!Ends(end, stop)) {
    below = end;
    end *= 2;
    if (end > kMost) {
      return InvalidArgument("expected at most ", kMost, " examples in all; give the smaller ",
                             "datasets a larger weight");
    }
  }
  while (end - below > 1) {
    const int64_t middle = below + (end - below) / 2;
    (Ends(middle, stop) ? end : below) = middle;
  }
  size_ = end;
  return OkStatus();
}

}  // namespace tfjob::data
