#include "runtime/progress/progress.h"

#include <grpcpp/impl/service_type.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/progress/client.h"
#include "runtime/progress/service.h"
#include "runtime/rpc/server.h"

namespace tfjob::progress {
namespace {

Progress Sample() {
  return {
      .task = "/job:worker/task:1",
      .state = State::kTraining,
      .step = 120,
      .max_steps = 1000,
      .epoch = 1,
      .steps_per_s = 50.5,
      .loss = 0.25,
      .metrics = {{"accuracy", 0.875}},
      .seconds_left = 17.5,
      .peers = {{"/job:ps/task:0", "127.0.0.1:2222", "connected", 0.5}},
      .problems = {{"checkpoints", "write /m: No space left on device"}},
      .run_end = RunEnd{.step = 120, .run = "0a1b2c3d", .failure = "step 121: the loss is NaN"}};
}

TEST(Progress, ReadsBackFromJson) {
  StatusOr<Progress> again = ParseProgress(ToJson(Sample()));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, Sample());
}

TEST(Progress, LeavesOutWhatIsNoNumber) {
  Progress diverged = Sample();
  diverged.loss = std::numeric_limits<double>::quiet_NaN();
  StatusOr<Progress> again = ParseProgress(ToJson(diverged));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->loss, std::nullopt);
}

TEST(Progress, IsServedAndFetched) {
  std::unique_ptr<grpc::Service> service = MakeProgressService(Sample);
  auto server = *rpc::Server::Start({.host = "127.0.0.1", .services = {service.get()}});
  const int port = server->port();
  ProgressClient client(StrCat("127.0.0.1:", port));
  for (int i = 0; i < 2; ++i) {
    StatusOr<Progress> fetched = client.Fetch(10s);
    ASSERT_TRUE(fetched.ok()) << fetched.status();
    EXPECT_EQ(*fetched, Sample());
  }

  server.reset();
  StatusOr<Progress> gone = client.Fetch(2s);
  EXPECT_FALSE(gone.ok());
  EXPECT_NE(Message(gone.status()).find(StrCat("127.0.0.1:", port)), std::string::npos)
      << gone.status();
  // The task is up again at its address.
  server = *rpc::Server::Start({.host = "127.0.0.1", .port = port, .services = {service.get()}});
  StatusOr<Progress> again = client.Fetch(10s);
  EXPECT_TRUE(again.ok()) << again.status();
}

TEST(Progress, IsToldOnlyToWhoHasTheKey) {
  const wire::JobKey key = *wire::JobKey::Parse(std::string(64, 'a'));
  std::unique_ptr<grpc::Service> service = MakeProgressService(Sample);
  auto server = *rpc::Server::Start(
      {.host = "127.0.0.1", .credentials = {.key = key}, .services = {service.get()}});
  const std::string address = StrCat("127.0.0.1:", server->port());
  EXPECT_EQ(ProgressClient(address, key).Fetch(10s).status(), OkStatus());
  EXPECT_EQ(ProgressClient(address).Fetch(10s).status().code(), StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace tfjob::progress
