#include "operator/control/report.h"

#include <gtest/gtest.h>

#include "operator/policy/testing.h"

namespace tfjob::control {
namespace {

using namespace policy::testing;
using objects::Kind;
using enum ReplicaType;
using enum RestartPolicy;

// Events must have the reasons and messages that clients rely on.
TEST(Report, FollowsActions) {
  const api::TFJob job = MakeJob({{kWorker, 1}});
  const plan::NamedEvent created = CreatedEvent(job, Kind::kPod, {{"mnist-worker-0", "u1"}});
  EXPECT_EQ(created.event.reason, "SuccessfulCreatePod");
  EXPECT_EQ(created.event.message, "Created pod: mnist-worker-0");
  EXPECT_EQ(CreatedEvent(job, Kind::kService, {{"s", "u2"}, {"t", "u3"}}).event.message,
            "Created services: s, t");
  EXPECT_NE(CreatedEvent(job, Kind::kPod, {{"mnist-worker-0", "u3"}}).name, created.name);
  EXPECT_NE(CreatedEvent(job, Kind::kPod, {{"mnist-worker-0", "u1"}, {"p", "u2"}}).name,
            created.name);
  const plan::NamedEvent failed = CreateFailedEvent(job, Kind::kPod, InvalidArgument("no"));
  EXPECT_EQ(failed.event.reason, "FailedCreatePod");
  EXPECT_EQ(failed.event.message, "Error creating: no");
  EXPECT_EQ(failed.event.type, objects::EventType::kWarning);
  EXPECT_TRUE(failed.standing);
  EXPECT_EQ(DeletedEvent(job, Kind::kPod, {{"p", "u1"}}).event.message, "Deleted pod: p");
  EXPECT_EQ(DeletedEvent(job, Kind::kPod, {{"p", "u1"}, {"q", "u2"}}).event.message,
            "Deleted pods: p, q");
  EXPECT_EQ(DeletedEvent(job, Kind::kService, {{"s", "u1"}}).event.reason,
            "SuccessfulDeleteService");
  EXPECT_EQ(DeletedEvent(job, Kind::kTFJob, {{"mnist", "u1"}}).event.reason, "SuccessfulDeleteJob");
  EXPECT_EQ(DeleteFailedEvent(job, Kind::kPod, "u1", Internal("x")).event.message,
            "Error deleting: x");
}

TEST(Report, NamesEveryKindOfPodGroupAPodGroup) {
  const api::TFJob job = MakeJob({{kWorker, 1}});
  for (const Kind kind : {Kind::kPodGroup, Kind::kCoschedulingPodGroup, Kind::kNativePodGroup}) {
    const plan::NamedEvent created = CreatedEvent(job, kind, {{"g", "u1"}});
    EXPECT_EQ(created.event.reason, "SuccessfulCreatePodGroup");
    EXPECT_EQ(created.event.message, "Created pod group: g");
  }
}

TEST(Report, SaysThatAPodGroupCannotBeChanged) {
  const api::TFJob job = MakeJob({{kWorker, 1}});
  const plan::NamedEvent failed = ChangeFailedEvent(job, Kind::kPodGroup, PermissionDenied("no"));
  EXPECT_EQ(failed.event.reason, "FailedChangePodGroup");
  EXPECT_EQ(failed.event.message, "Error changing: no");
  EXPECT_TRUE(failed.standing);
  EXPECT_TRUE(IsCreateFailed(failed.cause));
}

TEST(Report, NamesANetworkPolicyAsItsKind) {
  const api::TFJob job = MakeJob({{kWorker, 1}});
  const plan::NamedEvent created = CreatedEvent(job, Kind::kNetworkPolicy, {{"mnist-tasks", "u1"}});
  EXPECT_EQ(created.event.reason, "SuccessfulCreateNetworkPolicy");
  EXPECT_EQ(created.event.message, "Created NetworkPolicy: mnist-tasks");
  const Status error = PermissionDenied("no");
  EXPECT_EQ(CreateFailedEvent(job, Kind::kNetworkPolicy, error).event.reason,
            "FailedCreateNetworkPolicy");
  const plan::NamedEvent failed = ChangeFailedEvent(job, Kind::kNetworkPolicy, error);
  EXPECT_EQ(failed.event.reason, "FailedChangeNetworkPolicy");
  EXPECT_NE(failed.cause, ChangeFailedEvent(job, Kind::kPodGroup, error).cause);
  EXPECT_TRUE(IsCreateFailed(failed.cause));
}

TEST(Report, GivesRefusalsOneCauseWhateverNumbersTheServerSays) {
  const api::TFJob job = StartedJob({{kWorker, 1, kOnFailure}});
  const auto failed = [&job](Kind kind, const char* error) {
    return CreateFailedEvent(job, kind, PermissionDenied(error));
  };
  const plan::NamedEvent first =
      failed(Kind::kPod, "pods \"mnist-worker-0\": exceeded quota: q, used: pods=5");
  const plan::NamedEvent second =
      failed(Kind::kPod, "pods \"mnist-worker-17\": exceeded quota: q, used: pods=10");
  EXPECT_EQ(first.cause, second.cause);
  EXPECT_NE(first.name, second.name);
  EXPECT_NE(first.event.message, second.event.message);
  EXPECT_NE(failed(Kind::kPod, "a").cause, failed(Kind::kPod, "b").cause);
  EXPECT_NE(failed(Kind::kPod, "a").cause, failed(Kind::kService, "a").cause);
  EXPECT_TRUE(IsCreateFailed(first.cause));
  EXPECT_FALSE(IsCreateFailed(DeleteFailedEvent(job, Kind::kPod, "", Internal("x")).cause));
}

TEST(Report, GivesRefusalsOneCauseWhateverIdsTheServerSays) {
  const api::TFJob job = StartedJob({{kWorker, 1, kOnFailure}});
  const auto cause = [&job](const std::string& error) {
    return CreateFailedEvent(job, Kind::kPod, PermissionDenied(error)).cause;
  };
  EXPECT_EQ(cause("denied, request 5f1e0f7c-1b2a-4c3d-9e8f-0a1b2c3d4e5f."),
            cause("denied, request abcdefab-cdef-abcd-efab-cdefabcdefab."));
  EXPECT_EQ(cause("trace=deadbeefdeadbeef"), cause("trace=0123456789abcdef"));
  EXPECT_EQ(cause("trace=deadbeef"), cause("trace=7"));
  // Words and short names must not count as ids.
  EXPECT_NE(cause("bad cafe"), cause("bad face"));
  EXPECT_NE(cause("deadbeefs"), cause("facadebeds"));
  EXPECT_NE(cause("5f1e0f7c-1b2a-4c3d-9e8f-0a1b2c3d4e5fg"),
            cause("abcdefab-cdef-abcd-efab-cdefabcdefabg"));
  const auto delete_cause = [&job](const std::string& error) {
    return DeleteFailedEvent(job, Kind::kPod, "uid", PermissionDenied(error)).cause;
  };
  EXPECT_EQ(delete_cause("request 11"), delete_cause("request 2"));
  EXPECT_TRUE(delete_cause("no").starts_with("delete-failed/uid/"));
}

}  // namespace
}  // namespace tfjob::control
