#include "runtime/strategy/group/validation_shares.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/collectives/membership/leader.h"
#include "runtime/collectives/reduction.h"

namespace tfjob::strategy {
namespace {

// The limit on the bytes of all ranks together.
constexpr size_t kMostShareBytes = size_t{256} << 20;

// The bytes of a share: this header, the sums of the metrics, and the agreement.
struct ShareHeader {
  uint64_t complete = 0;  // 0 or 1
  uint64_t metrics = 0;   // the number of sums
  int64_t examples = 0;
  double loss_sum = 0;
};

std::vector<std::byte> Encode(const ValidationShare& share) {
  const ShareHeader header{.complete = share.complete ? 1U : 0U,
                           .metrics = share.totals.metric_sums.size(),
                           .examples = share.totals.examples,
                           .loss_sum = share.totals.loss_sum};
  std::vector<std::byte> bytes;
  const auto append = [&bytes](std::span<const std::byte> more) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  };
  append(std::as_bytes(std::span(&header, 1)));
  append(std::as_bytes(std::span(share.totals.metric_sums)));
  append(std::as_bytes(std::span(share.agreement)));
  return bytes;
}

// Only a damaged or forged message can contain a larger number of examples, and the sum of such
// numbers could overflow.
constexpr int64_t kMostExamples = int64_t{1} << 53;

StatusOr<ValidationShare> Decode(std::span<const std::byte> bytes) {
  ShareHeader header;
  const bool whole = bytes.size() >= sizeof(header);
  if (whole) std::memcpy(&header, bytes.data(), sizeof(header));
  const std::span<const std::byte> rest = bytes.subspan(whole ? sizeof(header) : bytes.size());
  if (!whole || header.complete > 1 || header.examples < 0 || header.examples > kMostExamples ||
      header.metrics > rest.size() / sizeof(double)) {
    return DataLoss("expected a part of a validation, got ", bytes.size(), " other bytes");
  }
  ValidationShare share{.complete = header.complete == 1, .agreement = {}, .totals = {}};
  share.totals.examples = header.examples;
  share.totals.loss_sum = header.loss_sum;
  share.totals.metric_sums.resize(header.metrics);
  const size_t sums = header.metrics * sizeof(double);
  if (sums > 0) std::memcpy(share.totals.metric_sums.data(), rest.data(), sums);
  const std::span<const std::byte> text = rest.subspan(sums);
  share.agreement.assign(reinterpret_cast<const char*>(text.data()), text.size());
  return share;
}

}  // namespace

Status ValidationShares::Exchange(collectives::Communicator& communicator,
                                  const ValidationShare* own) {
  const std::vector<std::byte> bytes = own == nullptr ? std::vector<std::byte>() : Encode(*own);
  std::vector<std::byte> all;
  std::vector<size_t> sizes;
  RETURN_IF_ERROR(communicator.AllGatherVariable(bytes, kMostShareBytes, all, sizes));
  shares_.assign(sizes.size(), std::nullopt);
  size_t begin = 0;
  for (size_t rank = 0; rank < sizes.size(); begin += sizes[rank], ++rank) {
    if (sizes[rank] == 0) continue;
    StatusOr<ValidationShare> share = Decode(std::span(all).subspan(begin, sizes[rank]));
    if (!share.ok()) return Annotate(share.status(), StrCat("rank ", rank));
    shares_[rank] = *std::move(share);
  }
  return OkStatus();
}

Status ValidationShares::CheckAgreement(std::span<const std::string> names,
                                        const std::string* expected) const {
  const std::string* first = nullptr;
  std::string first_name;
  const auto compare = [&first, &first_name](const std::string& agreement,
                                             const std::string& name) {
    if (first == nullptr) {
      first = &agreement;
      first_name = name;
    }
    if (agreement == *first) return OkStatus();
    return FailedPrecondition(
        "the tasks of a group share the validation, so all must validate on the same examples: ",
        collectives::FirstDifference(first_name, *first, name, agreement));
  };
  for (size_t rank = 0; rank < shares_.size(); ++rank) {
    if (shares_[rank]) RETURN_IF_ERROR(compare(shares_[rank]->agreement, names[rank]));
  }
  return expected == nullptr ? OkStatus() : compare(*expected, "this task");
}

StatusOr<std::optional<MetricTotals>> ValidationShares::Sum(std::span<const std::string> names,
                                                            const std::string* expected) const {
  ENFORCE(names.size() == shares_.size(), "every rank has a name");
  RETURN_IF_ERROR(CheckAgreement(names, expected));
  MetricTotals totals;
  std::vector<const MetricTotals*> parts;
  size_t width = 0;
  for (const std::optional<ValidationShare>& share : shares_) {
    if (!share) continue;
    if (!share->complete) return std::nullopt;
    parts.push_back(&share->totals);
    totals.examples += share->totals.examples;
    width = std::max(width, share->totals.metric_sums.size());
  }
  if (parts.empty()) return std::nullopt;
  std::vector<std::vector<double>> rows;  // of each part: the loss, then the metrics
  for (const MetricTotals* part : parts) {
    std::vector<double>& row = rows.emplace_back(1, part->loss_sum);
    row.insert(row.end(), part->metric_sums.begin(), part->metric_sums.end());
    row.resize(width + 1);  // an empty part has no sums
  }
  std::vector<std::span<const std::byte>> values;
  for (const std::vector<double>& row : rows) values.push_back(std::as_bytes(std::span(row)));
  std::vector<double> sums(width + 1);
  collectives::CombineAll(DType::kFloat64, collectives::Reduction::kSum,
                          std::as_writable_bytes(std::span(sums)), values);
  totals.loss_sum = sums[0];
  totals.metric_sums.assign(sums.begin() + 1, sums.end());
  return totals;
}

const std::string& ValidationShares::agreement() const {
  const auto share = std::ranges::find_if(shares_, [](const auto& one) { return one.has_value(); });
  ENFORCE(share != shares_.end(), "at least one rank has a share");
  return (*share)->agreement;
}

}  // namespace tfjob::strategy
