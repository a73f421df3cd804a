#include "runtime/progress/progress.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/progress/client.h"
#include "runtime/progress/service.h"

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
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service.get());
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  ASSERT_NE(server, nullptr);
  ProgressClient client(StrCat("127.0.0.1:", port));
  StatusOr<Progress> fetched = client.Fetch(10s);
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(*fetched, Sample());

  server->Shutdown();
  StatusOr<Progress> gone = client.Fetch(2s);
  EXPECT_FALSE(gone.ok());
  EXPECT_NE(Message(gone.status()).find(StrCat("127.0.0.1:", port)), std::string::npos)
      << gone.status();
}

}  // namespace
}  // namespace tfjob::progress
