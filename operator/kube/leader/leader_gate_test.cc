#include "operator/kube/leader/leader_gate.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/kube/doubles/lease_candidate.h"
#include "operator/objects/pod.h"
#include "runtime/base/fake_clock.h"

namespace tfjob::kube {
namespace {

using client::FaultyClient;
using objects::Kind;

Json PodNamed(const std::string& name) {
  return {{"apiVersion", "v1"},
          {"kind", "Pod"},
          {"metadata", {{"namespace", "ns"}, {"name", name}}},
          {"spec", {{"containers", {{{"name", "tensorflow"}, {"image", "x"}}}}}}};
}

TEST(LeaderGateTest, NoWritePassesTheGateBeforeOrAfterLeading) {
  TestClock clock;
  store::Store server{StoreOptions()};
  FaultyClient calls(server);
  Candidate a(server, "a", clock);
  LeaderGate gate(calls, a.election->leadership());
  const client::Key key{Kind::kPod, "ns", "p"};
  const auto write_all = [&] {
    return std::vector<Status>{gate.Create(Kind::kPod, PodNamed("p")).status(),
                               gate.Update(Kind::kPod, PodNamed("p")).status(),
                               gate.UpdateStatus(Kind::kPod, PodNamed("p")).status(),
                               gate.Patch(key, Json::object()).status(), gate.Delete(key, {})};
  };
  for (const Status& status : write_all()) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
    EXPECT_NE(Message(status).find("Pod ns/p"), std::string::npos) << status;
  }
  EXPECT_TRUE(calls.Calls().empty());

  a.Step();
  for (const Status& status : write_all()) EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(calls.Calls().size(), 5u);

  clock.Advance(10s);  // the election has not noticed the expiry yet
  for (const Status& status : write_all()) {
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
  }
  EXPECT_EQ(calls.Calls().size(), 5u);
  EXPECT_EQ(gate.Get(key).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(gate.List(Kind::kPod, "ns", {}).ok());
  EXPECT_EQ(calls.Calls().size(), 7u);
}

TEST(LeadershipTest, OnceEndedItStaysSo) {
  FakeClock clock(Time(1s));
  Leadership leadership(clock);
  EXPECT_FALSE(leadership.held());
  EXPECT_TRUE(leadership.Extend(10s));
  EXPECT_TRUE(leadership.held());
  clock.Advance(10s);
  EXPECT_FALSE(leadership.held());
  EXPECT_FALSE(leadership.Extend(30s));
  EXPECT_FALSE(leadership.held());

  Leadership other(clock);
  EXPECT_FALSE(other.Extend(5s));  // already past, so ignored
  EXPECT_TRUE(other.Extend(30s));
  other.End();
  EXPECT_FALSE(other.Extend(60s));
  EXPECT_FALSE(other.held());
}

}  // namespace
}  // namespace tfjob::kube
