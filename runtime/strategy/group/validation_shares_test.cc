#include "runtime/strategy/group/validation_shares.h"

#include <gtest/gtest.h>

#include <functional>
#include <thread>

#include "runtime/collectives/shared/thread_communicator.h"

namespace tfjob::strategy {
namespace {

const std::vector<std::string> kNames = {"chief 0", "worker 0", "worker 1", "worker 2"};

void OnAllRanks(size_t ranks, const std::function<void(collectives::Communicator&)>& body) {
  const auto communicators = collectives::MakeThreadCommunicators(static_cast<int>(ranks));
  std::vector<std::thread> threads;
  for (const auto& communicator : communicators) threads.emplace_back([&] { body(*communicator); });
  for (std::thread& thread : threads) thread.join();
}

ValidationShare ShareOf(int64_t examples, double loss, std::vector<double> metrics) {
  ValidationShare share{.agreement = "examples: 10\nbatches: 4", .totals = {}};
  share.totals = {.loss_sum = loss, .metric_sums = std::move(metrics), .examples = examples};
  return share;
}

// Lets four ranks exchange these shares; null for none. Returns each rank's result.
using Sums = StatusOr<std::optional<MetricTotals>>;
std::vector<Sums> Exchange(const std::vector<const ValidationShare*>& shares) {
  std::vector<Sums> sums(shares.size(), Sums(std::nullopt));
  OnAllRanks(shares.size(), [&](collectives::Communicator& communicator) {
    const auto rank = static_cast<size_t>(communicator.rank());
    ValidationShares exchange;
    const Status exchanged = exchange.Exchange(communicator, shares[rank]);
    sums[rank] =
        exchanged.ok() ? exchange.Sum(std::span(kNames).first(shares.size())) : Sums(exchanged);
  });
  return sums;
}

// The values are such that the order of the additions determines the last bits.
TEST(ValidationShares, AreSummedInTheOrderOfTheTreeOnEveryRank) {
  const ValidationShare a = ShareOf(5, 0.1, {1e16, 0.1}), b = ShareOf(3, 0.2, {1, 0.2}),
                        c = ShareOf(0, 0, {}), d = ShareOf(2, 0.3, {1, 0.3});
  for (const Sums& sum : Exchange({&a, &b, &c, &d})) {
    ASSERT_TRUE(sum.ok()) << sum.status();
    ASSERT_TRUE(sum->has_value());
    EXPECT_EQ((*sum)->examples, 10);
    EXPECT_EQ((*sum)->loss_sum, (0.1 + 0.2) + (0 + 0.3));
    EXPECT_EQ((*sum)->metric_sums, (std::vector<double>{(1e16 + 1) + (0. + 1), 0.1 + 0.2 + 0.3}));
  }
}

TEST(ValidationShares, ARankMayContributeNothing) {
  const ValidationShare only = ShareOf(5, 0.5, {2});
  for (const Sums& sum : Exchange({nullptr, &only, nullptr})) {
    ASSERT_TRUE(sum.ok()) << sum.status();
    ASSERT_TRUE(sum->has_value());
    EXPECT_EQ((*sum)->loss(), 0.1);
  }
  for (const Sums& sum : Exchange({nullptr, nullptr})) EXPECT_FALSE(sum->has_value());
}

TEST(ValidationShares, AnIncompletePartLeavesNoResult) {
  const ValidationShare whole = ShareOf(5, 0.5, {2});
  ValidationShare cut = ShareOf(1, 0.1, {1});
  cut.complete = false;
  for (const Sums& sum : Exchange({&whole, &cut})) {
    ASSERT_TRUE(sum.ok()) << sum.status();
    EXPECT_FALSE(sum->has_value());
  }
}

TEST(ValidationShares, DifferentExamplesAreAnErrorThatNamesBothTasks) {
  const ValidationShare one = ShareOf(5, 0.5, {2});
  ValidationShare other = one;
  other.agreement = "examples: 12\nbatches: 4";
  for (const Sums& sum : Exchange({&one, &one, &other})) {
    EXPECT_TRUE(absl::IsFailedPrecondition(sum.status())) << sum.status();
    EXPECT_NE(Message(sum.status()).find("chief 0 has 'examples: 10', worker 1 has 'examples: 12'"),
              std::string_view::npos)
        << sum.status();
  }
}

TEST(ValidationShares, OtherBytesAreAnError) {
  for (const size_t size : {1U, 31U, 40U}) {
    OnAllRanks(2, [&](collectives::Communicator& communicator) {
      ValidationShares exchange;
      if (communicator.rank() == 0) {
        // The 40 bytes announce more sums than a share of this size can contain.
        const std::vector<std::byte> bytes(size, std::byte{1});
        std::vector<std::byte> all;
        std::vector<size_t> sizes;
        EXPECT_TRUE(communicator.AllGatherVariable(bytes, size_t{256} << 20, all, sizes).ok());
        return;
      }
      const Status got = exchange.Exchange(communicator, nullptr);
      EXPECT_TRUE(absl::IsDataLoss(got)) << got;
      EXPECT_NE(Message(got).find("rank 0"), std::string_view::npos) << got;
    });
  }
}

}  // namespace
}  // namespace tfjob::strategy
