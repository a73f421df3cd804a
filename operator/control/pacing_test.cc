#include "operator/control/pacing.h"

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/api/names.h"
#include "operator/plan/plan.h"

namespace tfjob::control {
namespace {

using api::ReplicaType;
using enum ReplicaType;

constexpr std::optional<Duration> kNever;

TEST(Pacing, DoublesBatches) {
  size_t expected = 8;
  for (int batch = 0; batch < 6; ++batch, expected *= 2) EXPECT_EQ(BatchSize(batch), expected);
}

std::vector<render::DesiredObject> ServicesAndPods(int32_t services_from, int32_t pods_from,
                                                   int32_t workers) {
  std::vector<render::DesiredObject> creates;
  const auto add = [&](objects::Kind kind, int32_t from) {
    for (int32_t i = from; i < workers; ++i) {
      creates.push_back({kind, {kWorker, i}, api::ReplicaName("j", kWorker, i)});
    }
  };
  add(objects::Kind::kService, services_from);
  add(objects::Kind::kPod, pods_from);
  return creates;
}

TEST(Pacing, ServicesAndPodsAdvanceTogether) {
  const struct {
    const char* what;
    int32_t services_from, pods_from, workers;
    size_t services, pods;
  } cases[] = {
      {"all at once", 0, 0, 128, 128, 128},
      {"a large job begins", 0, 0, 5000, 128, 128},
      {"a large job continues", 128, 128, 5000, 128, 128},
      {"its pods were refused", 128, 0, 5000, 0, 128},
      {"its pods are far behind", 1000, 0, 5000, 0, 256},
      {"all but a few were refused", 128, 4, 5000, 0, 124},
      {"services alone", 0, 5000, 5000, 128, 0},
      {"one slot more than fits", 0, 0, 129, 128, 128},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.what);
    const auto now =
        CreatesOfOneReconcile(ServicesAndPods(each.services_from, each.pods_from, each.workers));
    std::vector<int32_t> services, pods;
    for (const render::DesiredObject& object : now) {
      if (object.kind == objects::Kind::kService) {
        EXPECT_TRUE(pods.empty()) << "a service after a pod";
        services.push_back(object.slot.index);
      } else {
        pods.push_back(object.slot.index);
      }
    }
    ASSERT_EQ(services.size(), each.services);
    ASSERT_EQ(pods.size(), each.pods);
    for (size_t i = 0; i < services.size(); ++i) {
      EXPECT_EQ(services[i], each.services_from + static_cast<int32_t>(i));
    }
    for (size_t i = 0; i < pods.size(); ++i) {
      EXPECT_EQ(pods[i], each.pods_from + static_cast<int32_t>(i));
    }
  }
}

TEST(Pacing, TheObjectsOfAGangComeFirst) {
  std::vector<render::DesiredObject> creates = ServicesAndPods(0, 0, 300);
  // The objects of a gang have the slot {kWorker, 0}, but must not count as objects of that slot.
  creates.insert(creates.begin(), {objects::Kind::kPodGroup, {}, "j"});
  creates.insert(creates.begin(), {objects::Kind::kWorkload, {}, "j"});
  const auto now = CreatesOfOneReconcile(creates);
  ASSERT_EQ(now.size(), 256u);
  EXPECT_EQ(now[0].kind, objects::Kind::kWorkload);
  EXPECT_EQ(now[1].kind, objects::Kind::kPodGroup);
  EXPECT_EQ(now[2].kind, objects::Kind::kService);
  EXPECT_EQ(now[255].kind, objects::Kind::kPod);
}

TEST(Pacing, TellsErrorsOfOneObjectFromThoseOfAll) {
  EXPECT_TRUE(ConcernsOneObject(InvalidArgument("x")));
  for (const Status& error : {OkStatus(), PermissionDenied("x"), NotFound("x"), Unavailable("x"),
                              Internal("x"), ResourceExhausted("x"), Aborted("x")}) {
    EXPECT_FALSE(ConcernsOneObject(error)) << error;
  }
}

TEST(Pacing, ARefusalOfAllThatWereTriedStopsTheirType) {
  const Status ok;
  const Status refused = InvalidArgument("x");
  const Status failed = Unavailable("x");
  const struct {
    const char* name;
    std::vector<TriedCreate> batch;
    std::set<ReplicaType> types;
  } cases[] = {
      {"nothing tried", {}, {}},
      {"all created", {{kPS, ok}, {kWorker, ok}}, {}},
      {"one type refused", {{kPS, ok}, {kWorker, refused}, {kWorker, refused}}, {kWorker}},
      {"some of a type refused", {{kWorker, refused}, {kWorker, ok}, {kWorker, refused}}, {}},
      {"both refused", {{kPS, refused}, {kWorker, refused}}, {kPS, kWorker}},
      {"another error", {{kPS, failed}, {kWorker, failed}}, {}},
      {"another error between", {{kWorker, refused}, {kWorker, failed}, {kWorker, refused}}, {}},
  };
  for (const auto& each : cases) EXPECT_EQ(RefusedTypes(each.batch), each.types) << each.name;
}

api::TFJobStatus StatusWith(const api::ReplicaStatus& workers, std::string ready = "") {
  api::TFJobStatus status;
  status.replica_statuses[kWorker] = workers;
  status.ready = std::move(ready);
  return status;
}

TEST(Pacing, KnowsStatusesThatDifferInCountsAlone) {
  const api::TFJobStatus before = StatusWith({.active = 1}, "1/2");
  api::TFJobStatus condition = before;
  condition.conditions.push_back({});
  api::TFJobStatus type = before;
  type.replica_statuses[kPS] = {};
  const struct {
    const char* name;
    api::TFJobStatus after;
    bool only_counts;
  } cases[] = {
      {"equal", before, true},
      {"counts", StatusWith({.active = 2, .succeeded = 3, .failed = 4}, "2/2"), true},
      {"restarts of a type", StatusWith({.active = 1, .restarts = 1}, "1/2"), false},
      {"completed", StatusWith({.active = 1, .completed_indexes = "0"}, "1/2"), false},
      {"a condition", condition, false},
      {"a new type", type, false},
      {"a type less", {}, false},
  };
  for (const auto& each : cases) {
    EXPECT_EQ(OnlyCountsDiffer(before, each.after), each.only_counts) << each.name;
  }
}

TEST(Pacing, OnlyAPlanThatWritesNothingButCountsMayWait) {
  const api::TFJobStatus before = StatusWith({.active = 1});
  const api::TFJobStatus after = StatusWith({.active = 2});
  plan::Plan plan;
  EXPECT_FALSE(OnlyWritesCounts(plan, before, after)) << "no write";
  plan.status = std::make_shared<const Json>();
  EXPECT_TRUE(OnlyWritesCounts(plan, before, after));
  EXPECT_FALSE(OnlyWritesCounts(plan, before, StatusWith({.restarts = 1})));
  const auto with = [&plan](auto change) {
    plan::Plan changed = plan;
    change(changed);
    return changed;
  };
  for (const plan::Plan& changed : {with([](plan::Plan& plan) { plan.adopts.emplace_back(); }),
                                    with([](plan::Plan& plan) { plan.change_pod_group.emplace(); }),
                                    with([](plan::Plan& plan) { plan.creates.emplace_back(); }),
                                    with([](plan::Plan& plan) { plan.deletes.emplace_back(); }),
                                    with([](plan::Plan& plan) { plan.events.emplace_back(); })}) {
    EXPECT_FALSE(OnlyWritesCounts(changed, before, after));
  }
}

TEST(Pacing, CountsWaitUntilTheirPatienceIsOver) {
  const struct {
    std::optional<Duration> behind_since;
    Duration now;
    Duration patience;
    std::optional<Duration> since;
    std::optional<Duration> left;
  } cases[] = {
      {kNever, 100s, 0s, kNever, kNever},  // no patience: written at once
      {kNever, 100s, 2s, 100s, 2s},       {100s, 101s, 2s, 100s, 1s},
      {100s, 102s, 2s, kNever, kNever},   {100s, 200s, 2s, kNever, kNever},
  };
  for (const auto& each : cases) {
    const CountsDelay delay = DelayCounts(each.behind_since, each.now, each.patience);
    EXPECT_EQ(delay.behind_since, each.since) << FormatDuration(each.now);
    EXPECT_EQ(delay.left, each.left) << FormatDuration(each.now);
  }
}

TEST(Pacing, TheEarliestReasonSetsTheTimeOfTheNextReconcile) {
  const struct {
    const char* name;
    RequeueReasons reasons;
    std::optional<Duration> after;
  } cases[] = {
      {"none", {}, kNever},
      {"nodes", {.check_nodes_after = 3s, .plan = 4s}, 3s},
      {"plan", {.check_nodes_after = 3s, .plan = 2s}, 2s},
      {"plan alone", {.plan = 2s}, 2s},
      {"more work", {.plan = 2s, .has_more_work = true}, 0s},
      {"more work after an error", {.plan = 2s, .has_more_work = true, .needs_retry = true}, 2s},
      {"events", {.plan = 20s, .has_events = true, .waits_for_watch = true}, 5s},
      {"watch", {.plan = 20s, .waits_for_watch = true}, 10s},
      {"events alone", {.has_events = true}, 5s},
      {"more work and all else", {.has_more_work = true, .has_events = true}, 0s},
      {"watch alone", {.waits_for_watch = true}, 10s},
      {"a plan for the far future", {.plan = 48h}, 10min},
      {"plan before all", {.plan = 1s, .has_events = true, .waits_for_watch = true}, 1s},
  };
  for (const auto& each : cases) EXPECT_EQ(RequeueAfter(each.reasons), each.after) << each.name;
}

TEST(Pacing, NeverIsLaterThanAnyTime) {
  EXPECT_EQ(Earlier(kNever, kNever), kNever);
  EXPECT_EQ(Earlier(kNever, 2s), Duration(2s));
  EXPECT_EQ(Earlier(2s, kNever), Duration(2s));
  EXPECT_EQ(Earlier(3s, 2s), Duration(2s));
  EXPECT_EQ(Earlier(0s, 2s), Duration(0s));
}

TEST(Pacing, WhatIsDueSoonWaitsForTheBackoff) {
  EXPECT_EQ(BesideBackoff(kNever), kNever);
  EXPECT_EQ(BesideBackoff(0s), kNever);
  EXPECT_EQ(BesideBackoff(999ms), kNever);
  EXPECT_EQ(BesideBackoff(1s), Duration(1s));
}

}  // namespace
}  // namespace tfjob::control
