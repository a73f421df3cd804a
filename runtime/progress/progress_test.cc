#include "runtime/progress/progress.h"

#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "runtime/progress/client.h"
#include "runtime/progress/service.h"
#include "runtime/rpc/server.h"
#include "runtime/wire/dial.h"

namespace tfjob::progress {
namespace {

Progress Sample() {
  return {.task = "/job:worker/task:1",
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
          .run_end = RunEnd{.step = 120, .run = "0a1b2c3d", .failure = "step 121: the loss is NaN"},
          .earlier_runs = {{.step = 60, .run = "4d5e6f70", .failure = ""}}};
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
  // Start the task again at the same address.
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

// Makes gRPC calls with arbitrary bytes on one connection.
class RawCaller {
 public:
  explicit RawCaller(const std::string& address) {
    StatusOr<wire::Dialled> dialled = wire::Dial(address, {});
    EXPECT_TRUE(dialled.ok()) << dialled.status();
    if (!dialled.ok()) return;
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
    stub_ = std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomInsecureChannelFromFd(address, dialled->socket.Release(), arguments));
  }
  // Sends a request with a field of `bytes` bytes. Returns the status code of the call.
  grpc::StatusCode Send(size_t bytes, grpc_compression_algorithm algorithm) {
    if (stub_ == nullptr) return grpc::StatusCode::UNKNOWN;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + 10s);
    context.set_compression_algorithm(algorithm);
    // Add an unknown field to the request.
    std::string request = "\x7a";
    for (size_t rest = bytes; rest > 0; rest >>= 7)
      request += static_cast<char>((rest & 0x7f) | (rest > 0x7f ? 0x80 : 0));
    request.append(bytes, 'x');
    const grpc::Slice slice(request);
    const grpc::ByteBuffer sent(&slice, 1);
    grpc::CompletionQueue queue;
    auto call =
        stub_->PrepareUnaryCall(&context, "/tfjob.progress.ProgressService/Get", sent, &queue);
    call->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status.error_code();
  }

 private:
  std::unique_ptr<grpc::GenericStub> stub_;
};

TEST(Progress, RequestsAreLimited) {
  std::unique_ptr<grpc::Service> service = MakeProgressService(Sample);
  auto server = *rpc::Server::Start({.host = "127.0.0.1", .services = {service.get()}});
  RawCaller caller(StrCat("127.0.0.1:", server->port()));
  EXPECT_EQ(caller.Send(1000, GRPC_COMPRESS_NONE), grpc::StatusCode::OK);
  EXPECT_EQ(caller.Send(70'000, GRPC_COMPRESS_NONE), grpc::StatusCode::RESOURCE_EXHAUSTED);
  // A small message must not be inflated to a large one.
  EXPECT_EQ(caller.Send(60'000, GRPC_COMPRESS_GZIP), grpc::StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace tfjob::progress
