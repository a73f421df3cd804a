#include "operator/local/store/store.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "operator/client/contract.h"
#include "operator/client/faults.h"
#include "runtime/base/fake_clock.h"

namespace tfjob::store {
namespace {

using client::ContractTest;
using objects::Kind;

class StoreWorld : public client::ContractWorld {
 public:
  explicit StoreWorld(bool by_hand) : by_hand_(by_hand), store_(MakeOptions(by_hand)) {}

  client::Client& client() override { return store_; }
  std::string name_space() override { return "ns"; }
  void Pump() override {
    if (by_hand_) {
      store_.Deliver();
    } else {
      std::this_thread::sleep_for(1ms);
    }
  }

 private:
  static StoreOptions MakeOptions(bool by_hand) {
    StoreOptions options;
    options.deliver_by_hand = by_hand;
    return options;
  }

  const bool by_hand_;
  Store store_;
};

INSTANTIATE_TEST_SUITE_P(
    Store, ContractTest,
    ::testing::Values(
        client::ContractTarget{"ByHand", [] { return std::make_unique<StoreWorld>(true); }},
        client::ContractTarget{"Threaded", [] { return std::make_unique<StoreWorld>(false); }}),
    client::ContractTargetName);

Json Pod(const std::string& name) {
  Json container = {{"name", "tensorflow"}, {"image", "i"}};
  return {
      {"apiVersion", "v1"},
      {"kind", "Pod"},
      {"metadata", {{"name", name}, {"namespace", "ns"}, {"uid", "ignored"}}},
      {"spec", {{"containers", Json::array({container})}, {"terminationGracePeriodSeconds", 7}}}};
}

TEST(Store, StampsFromItsClockAndCountsUids) {
  FakeClock clock(*ParseTime("2026-11-21T09:30:00.7Z"));
  StoreOptions options;
  options.clock = &clock;
  options.deliver_by_hand = true;
  Store store(options);
  const auto pod = store.Create(Kind::kPod, Pod("a"));
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(client::MetadataOf(*pod).uid, "00000000-0000-4000-8000-000000000001");
  EXPECT_EQ(FormatTime(client::MetadataOf(*pod).creation_timestamp), "2026-11-21T09:30:00Z");
}

TEST(Store, BindsNewPodsToItsNodeAndUsesTheirGracePeriod) {
  FakeClock clock(*ParseTime("2026-11-21T09:30:00Z"));
  StoreOptions options;
  options.clock = &clock;
  options.node_name = "localhost";
  Store store(options);
  ASSERT_TRUE(store.Create(Kind::kPod, Pod("a")).ok());
  EXPECT_EQ((*store.GetJson({Kind::kPod, "ns", "a"}))["spec"]["nodeName"], "localhost");
  ASSERT_TRUE(store.Delete({Kind::kPod, "ns", "a"}, {}).ok());
  const auto pod = store.Get({Kind::kPod, "ns", "a"});
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(FormatTime(*client::MetadataOf(*pod).deletion_timestamp), "2026-11-21T09:30:07Z");
}

TEST(Store, AnEndlessGracePeriodCountsAsAHundredYears) {
  FakeClock clock(*ParseTime("2026-11-21T09:30:00Z"));
  StoreOptions options;
  options.clock = &clock;
  options.node_name = "localhost";
  Store store(options);
  const client::Key key{Kind::kPod, "ns", "a"};
  for (const int64_t grace : {int64_t{10'000'000'000'000}, INT64_MAX}) {
    Json object = Pod("a");
    object["spec"]["terminationGracePeriodSeconds"] = grace;
    ASSERT_TRUE(store.Create(Kind::kPod, object).ok());
    ASSERT_TRUE(store.Delete(key, {}).ok());
    auto pod = store.Get(key);
    ASSERT_TRUE(pod.ok()) << pod.status();
    EXPECT_EQ(FormatTime(*client::MetadataOf(*pod).deletion_timestamp), "2127-02-05T09:30:00Z");
    EXPECT_EQ(client::MetadataOf(*pod).deletion_grace_period_seconds, 3'162'240'000);
    // A shorter grace period counts from the time of the first request, even if the first period
    // was this long.
    ASSERT_TRUE(store.Delete(key, {std::nullopt, 9}).ok());
    pod = store.Get(key);
    EXPECT_EQ(FormatTime(*client::MetadataOf(*pod).deletion_timestamp), "2026-11-21T09:30:09Z");
    ASSERT_TRUE(store.Delete(key, {std::nullopt, 0}).ok());
  }
}

// As on an API server, deletionTimestamp minus the grace period is always the time of the first
// request.
TEST(Store, AShorterGracePeriodCountsFromTheFirstRequest) {
  FakeClock clock(*ParseTime("2026-11-21T09:30:00Z"));
  StoreOptions options;
  options.clock = &clock;
  options.node_name = "localhost";
  Store store(options);
  const client::Key key{Kind::kPod, "ns", "a"};
  ASSERT_TRUE(store.Create(Kind::kPod, Pod("a")).ok());
  const Json held = {{"metadata", {{"finalizers", {"example.com/hold"}}}}};
  ASSERT_TRUE(store.Patch(key, held).ok());
  ASSERT_TRUE(store.Delete(key, {}).ok());
  clock.Advance(5s);
  client::DeleteOptions at_once;
  at_once.grace_period_seconds = 0;
  ASSERT_TRUE(store.Delete(key, at_once).ok());
  const auto pod = store.Get(key);
  ASSERT_TRUE(pod.ok()) << pod.status();
  EXPECT_EQ(FormatTime(*client::MetadataOf(*pod).deletion_timestamp), "2026-11-21T09:30:00Z");
  EXPECT_EQ(client::MetadataOf(*pod).deletion_grace_period_seconds, 0);
}

TEST(Store, RefusesWrongTypesWithTheirPath) {
  Store store;
  Json pod = Pod("a");
  pod["metadata"]["labels"] = 3;
  EXPECT_EQ(store.Create(Kind::kPod, pod).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(store.Create(Kind::kPod, Json(3)).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(store.Create(Kind::kPod, Json::object()).status().code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(store.Create(Kind::kPod, Pod("a")).ok());
  EXPECT_EQ(store.Patch({Kind::kPod, "ns", "a"}, Json(3)).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(Store, KeepsEventsWhole) {
  Store store;
  const Json event = {{"apiVersion", "v1"},
                      {"kind", "Event"},
                      {"metadata", {{"name", "e"}, {"namespace", "ns"}}},
                      {"message", "m"}};
  ASSERT_TRUE(store.Create(Kind::kEvent, event).ok());
  EXPECT_EQ((*store.GetJson({Kind::kEvent, "ns", "e"}))["message"], "m");
  const auto events = store.List(Kind::kEvent, "ns", {});
  ASSERT_EQ(events->size(), 1u);
  ASSERT_TRUE(store.Patch({Kind::kEvent, "ns", "e"}, {{"count", 2}}).ok());
  EXPECT_EQ((*store.GetJson({Kind::kEvent, "ns", "e"}))["count"], 2);
  EXPECT_GT(store.Bytes(), 100u);
}

TEST(Faults, FailBeforeOrAfterTheServerActed) {
  Store store;
  client::FaultyClient faulty(store);
  client::Fault fault;
  fault.matches = [](const client::Call& call) { return call.verb == client::Verb::kCreate; };
  fault.nth = 2;
  fault.error = Unavailable("lost");
  fault.executed = true;
  faulty.Inject(fault);
  EXPECT_TRUE(faulty.Create(Kind::kPod, Pod("a")).ok());
  EXPECT_EQ(faulty.Create(Kind::kPod, Pod("b")).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(faulty.Get({Kind::kPod, "ns", "b"}).ok());
  fault.nth = 1;
  fault.executed = false;
  faulty.Inject(fault);
  EXPECT_EQ(faulty.Create(Kind::kPod, Pod("c")).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(faulty.Get({Kind::kPod, "ns", "c"}).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(faulty.Calls().size(), 5u);
}

TEST(StoreUids, DifferBetweenRunsWhenAskedFor) {
  const std::string one = RandomUidPrefix();
  EXPECT_EQ(one.size(), std::string("00000000-0000-4000-8000-").size());
  EXPECT_EQ(one[14], '4');
  EXPECT_NE(one, RandomUidPrefix());
  Store store({.uid_prefix = one});
  const Json map = {{"metadata", {{"name", "a"}, {"namespace", "ns"}}}};
  const auto created = store.Create(objects::Kind::kConfigMap, map);
  ASSERT_TRUE(created.ok()) << created.status();
  EXPECT_EQ(client::MetadataOf(*created).uid, one + "000000000001");
}

}  // namespace
}  // namespace tfjob::store
