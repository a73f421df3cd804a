// Tests watches that break and resume, and objects kept by finalizers.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/client/contract.h"
#include "operator/local/store/store.h"
#include "operator/objects/service.h"

namespace tfjob::store {
namespace {

using objects::Kind;
using Notes = std::vector<std::string>;

class DisturbedTest : public ::testing::Test {
 protected:
  DisturbedTest()
      : store_({.deliver_by_hand = true, .keep_changes = true, .node_name = "node"}),
        watch_(*store_.Subscribe(Kind::kPod, "ns", {}, sink_)) {
    store_.Deliver();
    seen_ = sink_.Notes().size();
  }

  static Json Pod(const std::string& name) {
    const Json container = {{"name", "tensorflow"}, {"image", "i"}};
    return {{"apiVersion", "v1"},
            {"kind", "Pod"},
            {"metadata", {{"name", name}, {"namespace", "ns"}}},
            {"spec", {{"containers", Json::array({container})}}}};
  }
  static Json Finalizers(const std::vector<std::string>& names) {
    return {{"metadata", {{"finalizers", names}}}};
  }
  static client::Key Key(const std::string& name) { return {Kind::kPod, "ns", name}; }

  void Create(const std::string& name) { ASSERT_TRUE(store_.Create(Kind::kPod, Pod(name)).ok()); }
  // Delivers the waiting events and returns the calls to the sink since the previous News().
  Notes News() {
    store_.Deliver();
    const Notes all = sink_.Notes();
    const Notes news(all.begin() + static_cast<std::ptrdiff_t>(seen_), all.end());
    seen_ = all.size();
    return news;
  }
  Status DeleteNow(const std::string& name) {
    client::DeleteOptions now;
    now.grace_period_seconds = 0;
    return store_.Delete(Key(name), now);
  }

  client::RecordingSink sink_;
  Store store_;
  std::unique_ptr<client::Subscription> watch_;
  size_t seen_ = 0;
};

TEST_F(DisturbedTest, AMendedWatchGoesOnAfterWhatItHasSeen) {
  Create("a");
  EXPECT_EQ(News(), Notes{"upserted a"});
  Create("b");  // not yet delivered when the watch breaks
  store_.CutWatches();
  Create("c");
  ASSERT_TRUE(DeleteNow("a").ok());
  EXPECT_EQ(News(), Notes());
  store_.MendWatches();
  EXPECT_EQ(News(), (Notes{"upserted b", "upserted c", "deleted a"}));
}

TEST_F(DisturbedTest, AfterACompactionEverythingIsListedAnew) {
  Create("a");
  store_.CutWatches();
  Create("b");
  store_.Compact();
  Create("c");
  store_.MendWatches();
  EXPECT_EQ(News(), Notes{"replaced a b c"});
}

TEST_F(DisturbedTest, ABookmarkMakesACompactionHarmless) {
  Create("a");
  EXPECT_EQ(News(), Notes{"upserted a"});
  ASSERT_TRUE(
      store_.Create(Kind::kConfigMap, {{"metadata", {{"name", "m"}, {"namespace", "ns"}}}}).ok());
  store_.Bookmark();
  store_.Compact();
  store_.CutWatches();
  Create("b");
  store_.MendWatches();
  EXPECT_EQ(News(), Notes{"upserted b"});
}

TEST_F(DisturbedTest, ABookmarkIsNotForAWatchThatIsBehind) {
  Create("a");
  store_.Bookmark();
  store_.Compact();
  store_.CutWatches();
  store_.MendWatches();
  EXPECT_EQ(News(), Notes{"replaced a"});
}

TEST_F(DisturbedTest, DeliversAtMostAsManyAsAskedFor) {
  Create("a");
  Create("b");
  EXPECT_EQ(store_.Deliver(1), 1u);
  EXPECT_EQ(sink_.Notes().back(), "upserted a");
  EXPECT_EQ(News(), (Notes{"upserted a", "upserted b"}));
}

// Each watch keeps its own events in order, but may lag behind other watches.
TEST_F(DisturbedTest, DeliversEachWatchByItself) {
  client::RecordingSink services;
  const auto watch = *store_.Subscribe(Kind::kService, "ns", {}, services);
  store_.Deliver();
  Create("a");
  Create("b");
  ASSERT_TRUE(store_
                  .Create(Kind::kService, {{"apiVersion", "v1"},
                                           {"kind", "Service"},
                                           {"metadata", {{"name", "s"}, {"namespace", "ns"}}},
                                           {"spec", {{"clusterIP", "None"}}}})
                  .ok());
  EXPECT_TRUE(store_.DeliverFromOne(1));  // the service is the newest change
  EXPECT_EQ(services.Notes().back(), "upserted s");
  EXPECT_EQ(sink_.Notes().size(), seen_);
  EXPECT_TRUE(store_.DeliverFromOne(1));  // only pods are left
  EXPECT_EQ(sink_.Notes().back(), "upserted a");

  EXPECT_FALSE(store_.HasCutWatch());
  store_.CutWatch(0);
  EXPECT_TRUE(store_.HasCutWatch());
  EXPECT_FALSE(store_.DeliverFromOne(0));
  ASSERT_TRUE(store_.Delete({Kind::kService, "ns", "s"}, {}).ok());
  EXPECT_TRUE(store_.DeliverFromOne(0));
  EXPECT_EQ(services.Notes().back(), "deleted s");
  store_.MendWatches();
  EXPECT_FALSE(store_.HasCutWatch());
  EXPECT_EQ(News(), (Notes{"upserted a", "upserted b"}));
}

TEST_F(DisturbedTest, AFinalizerKeepsAnObjectUntilItIsTakenAway) {
  Create("a");
  ASSERT_TRUE(store_.Patch(Key("a"), Finalizers({"example.com/keep"})).ok());
  ASSERT_TRUE(DeleteNow("a").ok());
  const auto kept = store_.Get(Key("a"));
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_TRUE(client::MetadataOf(*kept).terminating());
  EXPECT_EQ(
      store_.Patch(Key("a"), Finalizers({"example.com/keep", "example.com/more"})).status().code(),
      StatusCode::kInvalidArgument);
  ASSERT_TRUE(DeleteNow("a").ok());  // a second deletion changes nothing
  ASSERT_TRUE(store_.Patch(Key("a"), Finalizers({})).ok());
  EXPECT_EQ(store_.Get(Key("a")).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(News().back(), "deleted a");
}

TEST_F(DisturbedTest, APodKeepsItsGraceWhenItsFinalizerGoesFirst) {
  Create("a");
  ASSERT_TRUE(store_.Patch(Key("a"), Finalizers({"example.com/keep"})).ok());
  ASSERT_TRUE(store_.Delete(Key("a"), {}).ok());
  ASSERT_TRUE(store_.Patch(Key("a"), Finalizers({})).ok());
  EXPECT_TRUE(store_.Get(Key("a")).ok());
  ASSERT_TRUE(DeleteNow("a").ok());
  EXPECT_EQ(store_.Get(Key("a")).status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace tfjob::store
