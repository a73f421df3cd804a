#include "operator/service/stale_watches.h"

#include <gtest/gtest.h>

#include "operator/objects/pod.h"

namespace tfjob::service {
namespace {

using kube::WatchTrouble;
using objects::Kind;
using policy::GangScheduler;
using enum StaleAction;

Status Served(Kind) {
  return OkStatus();
}

Status NotServed(Kind) {
  return NotFound("the server serves no such kind");
}

TEST(RequiredWatches, AreThoseOfTheLoopAndOfWhatTheOperatorsFlagsAskFor) {
  using enum policy::NetworkPolicies;
  const struct {
    GangScheduler gang;
    policy::NetworkPolicies network_policies;
    std::vector<Kind> required;
  } kCases[] = {
      {GangScheduler::kNone, kNone, {}},
      {GangScheduler::kVolcano, kIgnored, {Kind::kPodGroup}},
      {GangScheduler::kCoscheduling, kNone, {Kind::kCoschedulingPodGroup}},
      {GangScheduler::kNative, kNone, {Kind::kWorkload, Kind::kNativePodGroup}},
      {GangScheduler::kNone, kAnnotated, {Kind::kNetworkPolicy}},
      {GangScheduler::kVolcano, kAll, {Kind::kPodGroup, Kind::kNetworkPolicy}},
  };
  for (const auto& c : kCases) {
    std::vector<WatchTrouble> all;
    for (const Kind kind :
         {Kind::kTFJob, Kind::kPod, Kind::kService, Kind::kPodGroup, Kind::kCoschedulingPodGroup,
          Kind::kWorkload, Kind::kNativePodGroup, Kind::kNetworkPolicy}) {
      all.push_back({kind, "", 1h, Unavailable("away")});
    }
    std::vector<Kind> expected = {Kind::kTFJob, Kind::kPod, Kind::kService};
    expected.insert(expected.end(), c.required.begin(), c.required.end());
    std::vector<Kind> kinds;
    for (const WatchTrouble& trouble : RequiredWatches(all, c.gang, c.network_policies)) {
      kinds.push_back(trouble.kind);
    }
    EXPECT_EQ(kinds, expected) << policy::Name(c.gang);
  }
}

TEST(JudgeWatches, LeavesOnlyWhereAnotherOperatorMaySeeMore) {
  const WatchTrouble away{Kind::kPod, "team-a", 2min, Unavailable("away")};
  const WatchTrouble young{Kind::kPod, "team-a", 119s, Unavailable("away")};
  const WatchTrouble forbidden{Kind::kService, "", 1h, PermissionDenied("forbidden")};
  const WatchTrouble throttled{Kind::kService, "", 1h, ResourceExhausted("too many requests")};
  const struct {
    const char* what;
    std::vector<WatchTrouble> troubles;
    bool leads;
    CheckServed served;
    StaleAction action;
    const char* watch;
  } kCases[] = {
      {"no trouble", {}, true, Served, kContinue, ""},
      {"not for long enough", {young}, true, Served, kContinue, ""},
      {"a watch of its own", {away}, true, Served, kLeave, "Pod team-a/*"},
      {"without a lease", {away}, false, Served, kReport, "Pod team-a/*"},
      {"no permission", {forbidden}, true, Served, kReport, "Service /*"},
      {"too many requests", {throttled}, true, Served, kReport, "Service /*"},
      {"no such kind", {away}, true, NotServed, kReport, "Pod team-a/*"},
      {"the first that others would not have",
       {forbidden, away},
       true,
       Served,
       kLeave,
       "Pod team-a/*"},
      {"the first of all", {throttled, forbidden}, true, Served, kReport, "Service /*"},
  };
  for (const auto& c : kCases) {
    const StaleWatches stale = JudgeWatches(c.troubles, c.leads, c.served);
    EXPECT_EQ(stale.action, c.action) << c.what;
    EXPECT_EQ(stale.watch, c.watch) << c.what;
  }
  EXPECT_EQ(JudgeWatches({away}, true, Served).leaving,
            "this leader has seen no change of Pod team-a/* for 2m: UNAVAILABLE: away; it leaves "
            "the lease to another");
}

TEST(JudgeMissingLists, AlwaysReportsAndLeavesLate) {
  const WatchTrouble young{Kind::kPod, "", 119s, Unavailable("no answer yet")};
  const WatchTrouble old{Kind::kPod, "", 121s, Unavailable("no answer yet")};
  const struct {
    const char* what;
    std::vector<WatchTrouble> troubles;
    bool leads;
    CheckServed served;
    StaleAction action;
    const char* because;
  } kCases[] = {
      {"the server is slow", {}, true, Served, kReport, "the server is slow"},
      {"nothing is known but that it is away",
       {},
       true,
       [](Kind) { return Unavailable("no route"); },
       kReport,
       "UNAVAILABLE: no route"},
      {"young", {young}, true, Served, kReport, "UNAVAILABLE: no answer yet"},
      {"old", {old}, true, Served, kLeave, "UNAVAILABLE: no answer yet"},
      {"old, without a lease", {old}, false, Served, kReport, "UNAVAILABLE: no answer yet"},
      {"no definition of TFJobs",
       {{Kind::kTFJob, "", 1h, Unavailable("404")}},
       true,
       NotServed,
       kReport,
       "the CRD tfjobs.kubeflow.org is not installed: kubectl apply --server-side -f crds/"},
      {"another kind", {old}, true, NotServed, kReport, "the server serves no such kind"},
  };
  for (const auto& c : kCases) {
    const StaleWatches stale = JudgeMissingLists(c.troubles, "the lists", c.leads, c.served);
    EXPECT_EQ(stale.action, c.action) << c.what;
    EXPECT_EQ(stale.because, c.because) << c.what;
  }
  EXPECT_EQ(JudgeMissingLists({old}, "the first list of Pod", true, Served).leaving,
            "this leader has waited for the first list of Pod for 2m1s: UNAVAILABLE: no answer "
            "yet; it leaves the lease to another");
}

TEST(JudgeMissingLists, KnowsWhoseTroubleItIs) {
  const WatchTrouble away{Kind::kPod, "team-a", 2min, Unavailable("away")};
  const WatchTrouble young{Kind::kPod, "team-a", 2min - 1us, Unavailable("away")};
  const WatchTrouble forbidden{Kind::kService, "", 1h, PermissionDenied("forbidden")};
  const WatchTrouble throttled{Kind::kWorkload, "", 1h, ResourceExhausted("too many")};
  const Status served;
  const StaleWatches unserved{kReport, "NOT_FOUND: no"};
  const StaleWatches leave{
      kLeave,
      "UNAVAILABLE: away",
      "Pod team-a/*",
      2min,
      false,
      "this leader has waited for the lists for 2m: UNAVAILABLE: away; it leaves the lease to "
      "another"};
  const StaleWatches wait{kReport, "UNAVAILABLE: away", "Pod team-a/*", 2min - 1us};
  const StaleWatches no_right{kReport, "PERMISSION_DENIED: forbidden", "Service /*", 1h, true};
  const StaleWatches too_many{kReport, "RESOURCE_EXHAUSTED: too many", "Workload /*", 1h, true};
  const StaleWatches no_kind{kReport, "no pods", "Pod team-a/*", 2min, true};
  const struct {
    const char* what;
    std::vector<WatchTrouble> troubles;
    Status served;
    std::vector<Kind> asked;
    StaleWatches expected;
  } kCases[] = {
      {"none", {}, NotFound("no"), {Kind::kTFJob}, unserved},
      {"at the limit", {away}, served, {Kind::kPod}, leave},
      {"just before it", {young}, served, {Kind::kPod}, wait},
      {"no operator has the permission", {forbidden}, served, {}, no_right},
      {"the server throttles all", {throttled}, served, {}, too_many},
      {"no such kind", {away}, NotFound("no pods"), {Kind::kPod}, no_kind},
      {"it cannot be asked", {away}, Unavailable("?"), {Kind::kPod}, leave},
      {"a young one does not hide it", {young, away}, served, {Kind::kPod}, leave},
      {"its own first", {forbidden, throttled, away}, served, {Kind::kPod}, leave},
  };
  for (const auto& c : kCases) {
    std::vector<Kind> asked;
    const CheckServed served = [&](Kind kind) {
      asked.push_back(kind);
      return c.served;
    };
    EXPECT_EQ(JudgeMissingLists(c.troubles, "the lists", true, served), c.expected) << c.what;
    EXPECT_EQ(asked, c.asked) << c.what;
    StaleWatches follower = c.expected;  // a standby reports the same
    follower.action = kReport;
    follower.leaving = "";
    EXPECT_EQ(JudgeMissingLists(c.troubles, "the lists", false, served), follower) << c.what;
  }
}

}  // namespace
}  // namespace tfjob::service
