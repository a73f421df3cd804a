#include "operator/control/cache/cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/names.h"
#include "operator/api/tfjob.h"
#include "operator/objects/custom_resource.h"
#include "operator/objects/service.h"
#include "runtime/base/fake_clock.h"

namespace tfjob::control {
namespace {

using objects::CustomResource;
using objects::Pod;

constexpr char kKey[] = "ns/job";
constexpr char kUid[] = "job-uid";

class CacheTest : public ::testing::Test {
 protected:
  CacheTest()
      : cache_(clock_, [this](const std::string& key, Urgency urgency) {
          changed_.push_back(key);
          urgencies_.insert(urgency);
        }) {}

  static std::shared_ptr<const CustomResource> Job(const std::string& version,
                                                   const std::string& uid = kUid) {
    auto job = std::make_shared<CustomResource>();
    job->metadata.name = "job";
    job->metadata.name_space = "ns";
    job->metadata.uid = uid;
    job->metadata.resource_version = version;
    job->object = std::make_shared<const Json>();
    return job;
  }

  static std::shared_ptr<const Pod> MakePod(const std::string& name, const std::string& uid,
                                            const std::string& owner = kUid) {
    auto pod = std::make_shared<Pod>();
    pod->metadata.name = name;
    pod->metadata.name_space = "ns";
    pod->metadata.uid = uid;
    pod->metadata.labels.Set(api::kJobNameLabel, "job");
    if (!owner.empty()) {
      pod->metadata.owner_references.push_back(
          {api::kApiVersion, api::kKind, "job", owner, true, true});
    }
    return pod;
  }

  // Returns the UIDs of the pods in a snapshot, with '*' after those of terminating pods: "1 2*".
  std::string Pods() {
    std::vector<std::string> uids;
    for (const auto& pod : cache_.SnapshotOf(kKey, kUid).pods) {
      uids.push_back(pod->metadata.uid + (pod->metadata.terminating() ? "*" : ""));
    }
    std::sort(uids.begin(), uids.end());
    std::string text;
    for (const std::string& uid : uids) text += (text.empty() ? "" : " ") + uid;
    return text;
  }

  FakeClock clock_{*ParseTime("2026-11-21T09:30:00Z")};
  std::vector<std::string> changed_;
  std::set<Urgency> urgencies_;
  Cache cache_;
  Cache::Scope scope_ = cache_.AddScope("");
};

TEST_F(CacheTest, IsSyncedWhenAllThreeListsAreThereAndThenTellsOfEveryJob) {
  scope_.jobs.OnReplaced({Job("1")});
  changed_.clear();
  scope_.pods.OnReplaced({});
  EXPECT_FALSE(cache_.Synced());
  EXPECT_TRUE(changed_.empty());
  scope_.services.OnReplaced({});
  EXPECT_TRUE(cache_.Synced());
  EXPECT_EQ(changed_, std::vector<std::string>{kKey});
}

TEST_F(CacheTest, TellsNewsFromWhatAListContains) {
  scope_.pods.OnReplaced({});
  scope_.services.OnReplaced({});
  scope_.jobs.OnReplaced({Job("1")});
  EXPECT_EQ(urgencies_, std::set<Urgency>{Urgency::kListed});
  urgencies_.clear();
  scope_.jobs.OnUpserted(Job("2"));
  scope_.pods.OnUpserted(MakePod("own", "1"));
  scope_.pods.OnDeleted(MakePod("own", "1"));
  scope_.jobs.OnDeleted(Job("3"));
  EXPECT_EQ(urgencies_, std::set<Urgency>{Urgency::kNews});
}

// A namespace whose lists never arrive must not delay the other namespaces.
TEST(CacheScopes, AreSyncedEachByItself) {
  FakeClock clock{*ParseTime("2026-11-21T09:30:00Z")};
  std::vector<std::string> changed;
  Cache cache(clock, [&](const std::string& key, Urgency) { changed.push_back(key); });
  Cache::Scope ours = cache.AddScope("ns");
  cache.AddScope("refused");
  auto job = std::make_shared<CustomResource>();
  job->metadata.name = "job";
  job->metadata.name_space = "ns";
  job->object = std::make_shared<const Json>();
  ours.jobs.OnReplaced({std::shared_ptr<const CustomResource>(job)});
  ours.pods.OnReplaced({});
  EXPECT_FALSE(cache.Synced(kKey));
  changed.clear();
  ours.services.OnReplaced({});
  EXPECT_TRUE(cache.Synced(kKey));
  EXPECT_EQ(changed, std::vector<std::string>{kKey});
  EXPECT_FALSE(cache.Synced("refused/job"));
  EXPECT_FALSE(cache.Synced());
  EXPECT_EQ(cache.MissingLists().size(), 3u);
}

TEST_F(CacheTest, ShowsOnlyWhatTheJobOwnsAndWakesItForTheRest) {
  scope_.jobs.OnReplaced({Job("1")});
  changed_.clear();
  scope_.pods.OnUpserted(MakePod("own", "1"));
  scope_.pods.OnUpserted(MakePod("older", "2", "other-uid"));
  scope_.pods.OnUpserted(MakePod("free", "3", ""));
  EXPECT_EQ(Pods(), "1");
  EXPECT_EQ(changed_.size(), 3u);
}

TEST_F(CacheTest, ShowsOwnCreatesUntilTheWatchTells) {
  scope_.jobs.OnReplaced({Job("1")});
  cache_.RecordCreate(kKey, objects::Kind::kPod, MakePod("a", "1"));
  EXPECT_EQ(Pods(), "1");
  EXPECT_TRUE(cache_.WaitsForWatch(kKey));
  scope_.pods.OnUpserted(MakePod("a", "1"));
  EXPECT_EQ(Pods(), "1");
  EXPECT_FALSE(cache_.WaitsForWatch(kKey));
  scope_.pods.OnDeleted(MakePod("a", "1"));
  EXPECT_EQ(Pods(), "");
}

TEST_F(CacheTest, AnOwnCreateHidesThePodThatTheWatchStillShowsUnderThatName) {
  scope_.jobs.OnReplaced({Job("1")});
  scope_.pods.OnUpserted(MakePod("a", "old"));
  cache_.RecordCreate(kKey, objects::Kind::kPod, MakePod("a", "new"));
  EXPECT_EQ(Pods(), "new");
  scope_.pods.OnDeleted(MakePod("a", "old"));
  EXPECT_EQ(Pods(), "new");
  scope_.pods.OnUpserted(MakePod("a", "new"));
  EXPECT_EQ(Pods(), "new");
}

TEST_F(CacheTest, AnAcceptedDeletionShowsAtOnce) {
  scope_.jobs.OnReplaced({Job("1")});
  scope_.pods.OnUpserted(MakePod("a", "1"));
  scope_.pods.OnUpserted(MakePod("b", "2"));
  cache_.RecordDelete(kKey, "1", {clock_.Now(), 30});
  cache_.RecordGone(kKey, "2");
  EXPECT_EQ(Pods(), "1*");
  scope_.pods.OnUpserted(MakePod("a", "1"));  // older than the operator's delete
  EXPECT_EQ(Pods(), "1*");
  scope_.pods.OnDeleted(MakePod("a", "1"));
  scope_.pods.OnDeleted(MakePod("b", "2"));
  EXPECT_EQ(Pods(), "");
}

TEST_F(CacheTest, AsksToReadCreatesThatTheWatchDoesNotShow) {
  scope_.jobs.OnReplaced({Job("1")});
  cache_.RecordCreate(kKey, objects::Kind::kPod, MakePod("a", "1"));
  EXPECT_TRUE(cache_.ObjectsToRead(kKey, 10s).empty());
  clock_.Advance(10s);
  const auto keys = cache_.ObjectsToRead(kKey, 10s);
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(client::ToString(keys[0]), "Pod ns/a");
  cache_.RecordRead(kKey, keys[0], MakePod("a", "1"));
  EXPECT_EQ(Pods(), "1");
  EXPECT_TRUE(cache_.ObjectsToRead(kKey, 10s).empty());
  cache_.RecordRead(kKey, keys[0], std::nullopt);
  EXPECT_EQ(Pods(), "");
  EXPECT_FALSE(cache_.WaitsForWatch(kKey));
}

// If a list still contains an object that the operator deleted, the object must be read. Either the
// list is older than the delete, or the store was restored to an earlier state.
TEST_F(CacheTest, AsksToReadWhatAListShowsAlthoughWeDeletedIt) {
  scope_.jobs.OnReplaced({Job("1")});
  scope_.pods.OnUpserted(MakePod("a", "1"));
  cache_.RecordDelete(kKey, "1", {clock_.Now(), 30});
  EXPECT_TRUE(cache_.ObjectsToRead(kKey, 10s).empty());
  scope_.pods.OnReplaced({MakePod("a", "1")});
  EXPECT_EQ(Pods(), "1*");
  const auto keys = cache_.ObjectsToRead(kKey, 10s);
  ASSERT_EQ(keys.size(), 1u);
  EXPECT_EQ(client::ToString(keys[0]), "Pod ns/a");

  auto terminating =
      std::make_shared<objects::Pod>(*client::As<objects::Pod>(client::Object(MakePod("a", "1"))));
  terminating->metadata.deletion_timestamp = Time(1h);
  cache_.RecordRead(kKey, keys[0], std::shared_ptr<const objects::Pod>(terminating));
  EXPECT_EQ(Pods(), "1*");
  EXPECT_TRUE(cache_.ObjectsToRead(kKey, 10s).empty());

  scope_.pods.OnReplaced({MakePod("a", "1")});
  scope_.pods.OnUpserted(MakePod("a", "1"));  // the pod's kubelet updates the pod
  EXPECT_EQ(cache_.ObjectsToRead(kKey, 10s).size(), 1u);
  cache_.RecordRead(kKey, keys[0], MakePod("a", "1"));
  EXPECT_EQ(Pods(), "1");
  EXPECT_TRUE(cache_.ObjectsToRead(kKey, 10s).empty());
}

// Once the server has reported the time of a deletion, the snapshot contains that time instead of
// the assumed time. The clocks of the server and the operator may differ by days.
TEST_F(CacheTest, ShowsTheServersTimeOfADeletionRatherThanItsOwn) {
  scope_.jobs.OnReplaced({Job("1")});
  auto terminating =
      std::make_shared<objects::Pod>(*client::As<objects::Pod>(client::Object(MakePod("a", "1"))));
  terminating->metadata.deletion_timestamp = clock_.Now() - 24h;
  cache_.RecordCreate(kKey, objects::Kind::kPod, std::shared_ptr<const objects::Pod>(terminating));
  cache_.RecordDelete(kKey, "1", {clock_.Now(), 30});
  EXPECT_EQ(cache_.SnapshotOf(kKey, kUid).pods[0]->metadata.deletion_timestamp, clock_.Now() - 24h);
}

TEST_F(CacheTest, ShowsAgainWhatTheServerShowsAlthoughItWasTakenForGone) {
  scope_.jobs.OnReplaced({Job("1")});
  scope_.pods.OnReplaced({MakePod("a", "1")});
  cache_.RecordGone(kKey, "1");
  EXPECT_EQ(Pods(), "");
  cache_.RecordCreate(kKey, objects::Kind::kPod, MakePod("a", "1"));
  EXPECT_EQ(Pods(), "1");
}

TEST_F(CacheTest, AnOwnStatusWriteHoldsUntilTheWatchShowsItAndWakesNobody) {
  scope_.jobs.OnReplaced({Job("1")});
  cache_.RecordWrite(kKey, "1", Job("2"));
  cache_.RecordWrite(kKey, "2", Job("3"));
  changed_.clear();
  EXPECT_EQ(cache_.Job(kKey)->metadata.resource_version, "3");
  scope_.jobs.OnUpserted(Job("2"));
  EXPECT_EQ(cache_.Job(kKey)->metadata.resource_version, "3");
  changed_.clear();
  scope_.jobs.OnUpserted(Job("3"));
  EXPECT_TRUE(changed_.empty());
  scope_.jobs.OnUpserted(Job("4"));
  EXPECT_EQ(cache_.Job(kKey)->metadata.resource_version, "4");
  EXPECT_EQ(changed_.size(), 1u);
}

// If a list contains a version of the job from before the operator's status write, the job must be
// read.
TEST_F(CacheTest, AListFromBeforeAnOwnStatusWriteIsInDoubt) {
  scope_.jobs.OnReplaced({Job("1")});
  cache_.RecordWrite(kKey, "1", Job("2"));
  EXPECT_FALSE(cache_.IsInDoubt(kKey));
  scope_.jobs.OnReplaced({Job("1")});
  EXPECT_EQ(cache_.Job(kKey)->metadata.resource_version, "2");
  EXPECT_TRUE(cache_.IsInDoubt(kKey));

  cache_.RecordWrite(kKey, "2", Job("2"));  // the read shows that the list was old
  EXPECT_FALSE(cache_.IsInDoubt(kKey));
  EXPECT_EQ(cache_.Job(kKey)->metadata.resource_version, "2");

  scope_.jobs.OnReplaced({Job("1")});
  cache_.RecordWrite(kKey, "2", Job("1"));  // the read shows that the store was restored
  EXPECT_FALSE(cache_.IsInDoubt(kKey));
  EXPECT_EQ(cache_.Job(kKey)->metadata.resource_version, "1");
  scope_.jobs.OnUpserted(Job("1b"));
  EXPECT_EQ(cache_.Job(kKey)->metadata.resource_version, "1b");
}

TEST_F(CacheTest, AJobExistsUntilItIsDeletedOrAnotherHasItsName) {
  EXPECT_FALSE(cache_.JobExists(kKey, kUid));
  scope_.jobs.OnReplaced({Job("1")});
  EXPECT_TRUE(cache_.JobExists(kKey, kUid));
  EXPECT_FALSE(cache_.JobExists(kKey, "another"));
  auto going = *client::As<objects::CustomResource>(client::Object(Job("2")));
  going.metadata.deletion_timestamp = Time(1h);
  scope_.jobs.OnUpserted(std::make_shared<const objects::CustomResource>(going));
  EXPECT_FALSE(cache_.JobExists(kKey, kUid));
  scope_.jobs.OnReplaced({});
  EXPECT_FALSE(cache_.JobExists(kKey, kUid));
}

TEST_F(CacheTest, AWatchThatIsFasterThanTheAnswerWins) {
  scope_.jobs.OnReplaced({Job("1")});
  scope_.jobs.OnUpserted(Job("2"));  // the operator's write
  scope_.jobs.OnUpserted(Job("3"));  // a later write by a user
  cache_.RecordWrite(kKey, "1", Job("2"));
  EXPECT_EQ(cache_.Job(kKey)->metadata.resource_version, "3");
}

TEST_F(CacheTest, AListThatLacksThingsTakesThemAway) {
  scope_.jobs.OnReplaced({Job("1")});
  scope_.pods.OnReplaced({MakePod("a", "1"), MakePod("b", "2")});
  scope_.pods.OnReplaced({MakePod("b", "2"), MakePod("c", "3")});
  EXPECT_EQ(Pods(), "2 3");
  policy::Snapshot snapshot = cache_.SnapshotOf(kKey, kUid);
  ASSERT_EQ(snapshot.departed.size(), 1u);
  EXPECT_EQ(snapshot.departed[0]->metadata.uid, "1");
  scope_.jobs.OnReplaced({});
  EXPECT_EQ(cache_.Job(kKey), nullptr);
  EXPECT_EQ(changed_.back(), kKey);
}

TEST_F(CacheTest, RemembersDepartedPodsUntilTheyAreAcknowledged) {
  scope_.jobs.OnReplaced({Job("1")});
  scope_.pods.OnUpserted(MakePod("a", "1"));
  scope_.pods.OnDeleted(MakePod("a", "1"));
  const policy::Snapshot snapshot = cache_.SnapshotOf(kKey, kUid);
  ASSERT_EQ(snapshot.departed.size(), 1u);
  scope_.pods.OnDeleted(MakePod("b", "2"));
  cache_.Acknowledge(kKey, snapshot);
  EXPECT_EQ(cache_.SnapshotOf(kKey, kUid).departed.size(), 1u);
}

// The order of a pod's versions shows that the pod ended before its deletion was requested,
// regardless of any clocks.
TEST_F(CacheTest, RemembersThatAPodEndedBeforeItsDeletion) {
  const auto pod = [](objects::PodPhase phase, bool terminating) {
    auto version = std::make_shared<objects::Pod>(*MakePod("a", "1"));
    version->phase = phase;
    if (terminating) version->metadata.deletion_timestamp = Time(1h);
    return std::shared_ptr<const objects::Pod>(version);
  };
  const auto ends_first = [&] { return cache_.SnapshotOf(kKey, kUid).departed[0]; };
  scope_.jobs.OnReplaced({Job("1")});
  scope_.pods.OnUpserted(pod(objects::PodPhase::kRunning, false));
  scope_.pods.OnUpserted(pod(objects::PodPhase::kFailed, false));
  scope_.pods.OnUpserted(pod(objects::PodPhase::kFailed, true));
  EXPECT_TRUE(cache_.SnapshotOf(kKey, kUid).pods[0]->ended_before_deletion);
  scope_.pods.OnDeleted(pod(objects::PodPhase::kFailed, true));
  EXPECT_TRUE(ends_first()->ended_before_deletion);
  cache_.Acknowledge(kKey, cache_.SnapshotOf(kKey, kUid));

  scope_.pods.OnUpserted(pod(objects::PodPhase::kSucceeded, false));
  scope_.pods.OnDeleted(pod(objects::PodPhase::kSucceeded, true));
  EXPECT_TRUE(ends_first()->ended_before_deletion);
  cache_.Acknowledge(kKey, cache_.SnapshotOf(kKey, kUid));

  scope_.pods.OnUpserted(pod(objects::PodPhase::kRunning, true));
  scope_.pods.OnUpserted(pod(objects::PodPhase::kFailed, true));
  scope_.pods.OnDeleted(pod(objects::PodPhase::kFailed, true));
  EXPECT_FALSE(ends_first()->ended_before_deletion);
}

TEST_F(CacheTest, OffersServicesWithoutControllerForAdoption) {
  scope_.jobs.OnReplaced({Job("1")});
  auto service = std::make_shared<objects::Service>();
  service->metadata = MakePod("a", "1", "")->metadata;
  scope_.services.OnUpserted(std::shared_ptr<const objects::Service>(service));
  const policy::Snapshot snapshot = cache_.SnapshotOf(kKey, kUid);
  EXPECT_TRUE(snapshot.services.empty());
  EXPECT_EQ(snapshot.orphan_services.size(), 1u);
}

// Reports versions of the job's NetworkPolicy to the cache.
class PolicyCacheTest : public CacheTest {
 protected:
  PolicyCacheTest() {
    scope_.jobs.OnReplaced({Job("1")});
    watch_.OnReplaced({Policy("1")});
  }

  static client::Object Policy(const std::string& version, const std::string& uid = "p") {
    auto policy = std::make_shared<CustomResource>();
    policy->metadata.name = "job-tasks";
    policy->metadata.name_space = "ns";
    policy->metadata.uid = uid;
    policy->metadata.resource_version = version;
    policy->metadata.labels.Set(api::kJobNameLabel, "job");
    policy->metadata.owner_references.push_back(
        {api::kApiVersion, api::kKind, "job", kUid, true, true});
    policy->object = std::make_shared<const Json>();
    return std::shared_ptr<const CustomResource>(policy);
  }
  // Returns the version of the policy in a snapshot; "" if there is none.
  std::string Version() {
    const auto policy = cache_.SnapshotOf(kKey, kUid).network_policy;
    return policy == nullptr ? "" : policy->metadata.resource_version;
  }
  size_t ToRead() {
    clock_.Advance(10s);
    return cache_.ObjectsToRead(kKey, 10s).size();
  }

  const client::Key policy_{objects::Kind::kNetworkPolicy, "ns", "job-tasks"};
  client::WatchSink& watch_ = cache_.AddGroups(objects::Kind::kNetworkPolicy, "", false);
};

TEST_F(PolicyCacheTest, AnOwnChangeHoldsUntilTheWatchShowsIt) {
  cache_.RecordPolicyChange(kKey, "1", Policy("2"));
  EXPECT_EQ(Version(), "2");
  EXPECT_TRUE(cache_.WaitsForWatch(kKey));
  watch_.OnReplaced({Policy("1")});  // a list from before the change
  EXPECT_EQ(Version(), "2");
  cache_.RecordPolicyChange(kKey, "2", Policy("3"));
  watch_.OnUpserted(Policy("2"));
  EXPECT_EQ(Version(), "3");
  watch_.OnUpserted(Policy("3"));
  EXPECT_FALSE(cache_.WaitsForWatch(kKey));
  watch_.OnUpserted(Policy("4"));
  EXPECT_EQ(Version(), "4");
}

TEST_F(PolicyCacheTest, AWatchThatIsFasterThanTheChangesAnswerWins) {
  watch_.OnUpserted(Policy("2"));
  watch_.OnUpserted(Policy("3"));  // a user has undone the change
  cache_.RecordPolicyChange(kKey, "1", Policy("2"));
  EXPECT_EQ(Version(), "3");
  EXPECT_FALSE(cache_.WaitsForWatch(kKey));
}

TEST_F(PolicyCacheTest, AnOwnChangeThatTheWatchDoesNotShowIsRead) {
  cache_.RecordPolicyChange(kKey, "1", Policy("2"));
  EXPECT_EQ(ToRead(), 1u);
  cache_.RecordRead(kKey, policy_, Policy("5"));
  EXPECT_EQ(Version(), "5");
  EXPECT_EQ(ToRead(), 1u);
  cache_.RecordRead(kKey, policy_, Policy("1"));  // the store was restored
  EXPECT_EQ(Version(), "1");
  EXPECT_EQ(ToRead(), 0u);
}

TEST_F(PolicyCacheTest, AnOwnChangeOfAnObjectThatIsGoneIsForgotten) {
  const auto change = [this] {
    watch_.OnReplaced({Policy("1")});
    cache_.RecordPolicyChange(kKey, "1", Policy("2"));
  };
  change();
  cache_.RecordRead(kKey, policy_, std::nullopt);
  EXPECT_EQ(Version(), "");
  watch_.OnDeleted(Policy("1"));
  change();
  EXPECT_EQ(Version(), "2");
  watch_.OnDeleted(Policy("3"));
  EXPECT_EQ(Version(), "");
  change();
  watch_.OnReplaced({});
  EXPECT_EQ(Version(), "");
  change();
  watch_.OnUpserted(Policy("4", "another"));
  EXPECT_EQ(Version(), "4");
}

// The watch may have reported the whole life of a pod, and the end of its job, before the call that
// created the pod returns. If the cache recorded the create after that, the record would never be
// removed.
TEST_F(CacheTest, KeepsNoCreateOfAJobThatIsGone) {
  scope_.jobs.OnReplaced({Job("1")});
  scope_.jobs.OnDeleted(Job("2"));
  cache_.RecordCreate(kKey, objects::Kind::kPod, MakePod("job-worker-0", "1"));
  EXPECT_FALSE(cache_.WaitsForWatch(kKey));
  EXPECT_EQ(Pods(), "");

  for (const bool by_list : {false, true}) {
    scope_.jobs.OnUpserted(Job("3"));
    cache_.RecordCreate(kKey, objects::Kind::kPod, MakePod("job-worker-0", "1"));
    EXPECT_TRUE(cache_.WaitsForWatch(kKey));
    EXPECT_EQ(Pods(), "1");
    if (by_list) {
      scope_.jobs.OnReplaced({});
    } else {
      scope_.jobs.OnDeleted(Job("4"));
    }
    EXPECT_FALSE(cache_.WaitsForWatch(kKey)) << by_list;
    EXPECT_EQ(Pods(), "") << by_list;
  }
}

}  // namespace
}  // namespace tfjob::control
