#include "runtime/rpc/data_connection.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/rpc/handshake.h"
#include "runtime/rpc/server.h"
#include "runtime/wire/dial.h"

namespace tfjob::rpc {
namespace {

Identity WorkerOf(const std::string& job, int index) {
  return {.job_uid = job,
          .attempt = 1,
          .task_type = "worker",
          .task_index = index,
          .incarnation = 100 + index};
}

Credentials KeyOf(char digit) {
  return {.key = *wire::JobKey::Parse(std::string(64, digit))};
}

// Accepts the connections of worker 1 only.
class OnlyWorker1 : public DataHandler {
 public:
  Status Admit(const Identity& peer, const std::string& channel) override {
    if (peer.task_index == 1) return OkStatus();
    return FailedPrecondition("refused: no place for ", TaskName(peer), " in ", channel);
  }
  void Accept(DataConnection connection) override {
    MutexLock lock(mutex_);
    accepted_.push_back(std::move(connection));
    changed_.NotifyAll();
  }
  // Returns the next connection. Waits up to 20 s.
  DataConnection Next() {
    MutexLock lock(mutex_);
    while (accepted_.empty()) {
      if (!changed_.WaitFor(mutex_, 20s)) return {};
    }
    DataConnection connection = std::move(accepted_.back());
    accepted_.pop_back();
    return connection;
  }
  size_t waiting() {
    MutexLock lock(mutex_);
    return accepted_.size();
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::vector<DataConnection> accepted_ ABSL_GUARDED_BY(mutex_);
};

void Say(const wire::UniqueFd& socket, const std::string& text) {
  EXPECT_EQ(send(socket.get(), text.data(), text.size(), MSG_NOSIGNAL),
            static_cast<ssize_t>(text.size()));
}

std::string Hear(const wire::UniqueFd& socket, size_t bytes) {
  std::string heard(bytes, '\0');
  size_t count = 0;
  while (count < bytes && wire::AwaitSocket(socket.get(), POLLIN, RealClock().Monotonic() + 20s)) {
    const ssize_t got = recv(socket.get(), heard.data() + count, bytes - count, 0);
    if (got <= 0) break;
    count += static_cast<size_t>(got);
  }
  return heard.substr(0, count);
}

class DataConnectionTest : public testing::Test {
 protected:
  void Serve(DataHandler* handler) {
    server_ = *Server::Start({.host = "127.0.0.1",
                              .identity = WorkerOf("job-a", 0),
                              .credentials = KeyOf('a'),
                              .on_data = handler});
  }
  std::string address() const { return StrCat("127.0.0.1:", server_->port()); }
  Status Refusal(const Identity& self, const Credentials& credentials,
                 const std::string& channel = "group-1") {
    return DialData(address(), channel, self, credentials, 10s).status();
  }

  OnlyWorker1 handler_;
  std::unique_ptr<Server> server_;
};

TEST_F(DataConnectionTest, CarriesBytesBothWaysAndNamesBothEnds) {
  Serve(&handler_);
  StatusOr<DataConnection> dialled =
      DialData(address(), "group-7", WorkerOf("job-a", 1), KeyOf('a'), 10s);
  ASSERT_TRUE(dialled.ok()) << dialled.status();
  EXPECT_EQ(dialled->peer, WorkerOf("job-a", 0));
  const DataConnection accepted = handler_.Next();
  EXPECT_EQ(accepted.peer, WorkerOf("job-a", 1));
  EXPECT_EQ(accepted.channel, "group-7");
  EXPECT_TRUE(accepted.address.starts_with("127.0.0.1:")) << accepted.address;
  Say(dialled->socket, "from the caller");
  Say(accepted.socket, "from the listener");
  EXPECT_EQ(Hear(accepted.socket, 15), "from the caller");
  EXPECT_EQ(Hear(dialled->socket, 17), "from the listener");
}

TEST_F(DataConnectionTest, IsRefusedByTheHandlerWithItsReason) {
  Serve(&handler_);
  EXPECT_EQ(Refusal(WorkerOf("job-a", 2), KeyOf('a')),
            FailedPrecondition(address(), ": refused: no place for worker 2 in group-1"));
  EXPECT_EQ(handler_.waiting(), 0u);
}

TEST_F(DataConnectionTest, IsRefusedBeforeTheHandlerSeesAPeerThatDoesNotBelongHere) {
  Serve(&handler_);
  EXPECT_EQ(Refusal(WorkerOf("job-b", 1), KeyOf('a')).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Refusal(WorkerOf("job-a", 1), KeyOf('b')).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Refusal(WorkerOf("job-a", 1), {}).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Refusal(WorkerOf("job-a", 1), KeyOf('a'), "not a channel").code(),
            StatusCode::kDataLoss);
  // A caller without claims may read progress, but must not open data connections.
  const Credentials key = KeyOf('a');
  EXPECT_EQ(
      wire::Dial(address(), {.key = &*key.key, .purpose = wire::Purpose::kData}).status().code(),
      StatusCode::kFailedPrecondition);
  EXPECT_EQ(handler_.waiting(), 0u);
}

TEST_F(DataConnectionTest, IsRefusedByATaskThatHasNoHandler) {
  Serve(nullptr);
  EXPECT_EQ(Refusal(WorkerOf("job-a", 1), KeyOf('a')),
            Unimplemented(address(),
                          ": refused: this task takes no connections for 'data' except streams"));
}

}  // namespace
}  // namespace tfjob::rpc
