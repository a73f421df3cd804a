// Runs the tasks of a group in one process, with real servers and sockets on loopback, for tests.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/collectives/endpoint/endpoint.h"
#include "runtime/collectives/socket/socket_communicator.h"
#include "runtime/rpc/server.h"
#include "runtime/wire/test_address.h"

namespace tfjob::collectives {

using Kind = state::PeerEvent::Kind;

// Implements only Barrier, which exchanges one byte with every other rank.
class BarrierCommunicator : public Communicator {
 public:
  BarrierCommunicator(int rank, std::vector<wire::UniqueFd> sockets)
      : rank_(rank), sockets_(std::move(sockets)) {}
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(sockets_.size()); }
  std::string_view transport() const override { return "test"; }
  StatusOr<std::unique_ptr<Memory>> Allocate(size_t) override { return None(); }
  Status AllReduce(std::span<std::byte>, DType, Reduction) override { return None(); }
  Status ReduceScatter(std::span<std::byte>, DType, Reduction) override { return None(); }
  Status AllGather(std::span<std::byte>, size_t) override { return None(); }
  Status AllGatherVariable(std::span<const std::byte>, size_t, std::vector<std::byte>&,
                           std::vector<size_t>&) override {
    return None();
  }
  Status Broadcast(std::span<std::byte>, int) override { return None(); }
  Status Reduce(std::span<std::byte>, DType, Reduction, int) override { return None(); }
  Status AllToAll(std::span<std::byte>, size_t) override { return None(); }

  Status Barrier() override {
    ++operation_;
    for (const wire::UniqueFd& socket : sockets_) {
      if (socket.valid()) (void)send(socket.get(), "x", 1, MSG_NOSIGNAL);
    }
    for (int other = 0; other < size(); ++other) {
      if (other == rank_) continue;
      RETURN_IF_ERROR(Hear(other));
    }
    Note(-1);
    return OkStatus();
  }

  void Abort(const Status& why) override {
    MutexLock lock(mutex_);
    if (why_.ok()) why_ = why;
    for (const wire::UniqueFd& socket : sockets_) {
      if (socket.valid()) shutdown(socket.get(), SHUT_RDWR);
    }
  }
  Waiting CurrentWait() const override {
    MutexLock lock(mutex_);
    return {.operation = operation_, .name = "Barrier", .on = on_, .since = since_};
  }

 private:
  static Status None() { return Unimplemented("not in this test"); }
  void Note(int on) {
    MutexLock lock(mutex_);
    on_ = on;
    since_ = RealClock().Monotonic();
  }
  Status Hear(int other) {
    Note(other);
    const int fd = sockets_[static_cast<size_t>(other)].get();
    for (;;) {
      {
        MutexLock lock(mutex_);
        if (!why_.ok()) return why_;
      }
      if (!wire::AwaitSocket(fd, POLLIN, RealClock().Monotonic() + 10ms)) continue;
      char byte = 0;
      const ssize_t got = recv(fd, &byte, 1, 0);
      if (got == 1) return OkStatus();
      if (got == 0 || errno != EAGAIN) return Closed(other);
    }
  }

  Status Closed(int other) {
    MutexLock lock(mutex_);
    return why_.ok() ? Unavailable("rank ", other, " closed its socket") : why_;
  }

  const int rank_;
  const std::vector<wire::UniqueFd> sockets_;
  mutable Mutex mutex_;
  std::atomic<int64_t> operation_ = 0;
  int on_ ABSL_GUARDED_BY(mutex_) = -1;
  Duration since_ ABSL_GUARDED_BY(mutex_){0};
  Status why_ ABSL_GUARDED_BY(mutex_);
};

inline StatusOr<std::unique_ptr<Communicator>> MakeBarriers(int rank,
                                                            std::vector<wire::UniqueFd> sockets,
                                                            const Interrupt&) {
  return std::make_unique<BarrierCommunicator>(rank, std::move(sockets));
}

inline StatusOr<std::unique_ptr<Communicator>> MakeSockets(int rank,
                                                           std::vector<wire::UniqueFd> sockets,
                                                           const Interrupt&) {
  return MakeSocketCommunicator({.rank = rank, .sockets = std::move(sockets)});
}

inline rpc::Credentials TestKey() {
  return {.key = *wire::JobKey::Parse(std::string(64, 'a'))};
}

// A process of a task.
class TestTask {
 public:
  TestTask(std::vector<GroupTask> tasks, size_t index, int64_t incarnation,
           const CommunicatorFactory& make_communicator = MakeBarriers,
           rpc::LivenessRules liveness = {}, Duration exchange_timeout = {}, bool shrinks = false,
           const std::string& job = "job-a", Duration report_interval = 10s,
           std::function<Status(int64_t)> find_claim = nullptr)
      : identity_{.job_uid = job,
                  .attempt = 1,
                  .task_type = tasks[index].type,
                  .task_index = tasks[index].index,
                  .incarnation = incarnation} {
    const std::string address = tasks[index].address;
    endpoint_ = std::make_unique<Endpoint>(EndpointOptions{.identity = identity_,
                                                           .tasks = std::move(tasks),
                                                           .credentials = TestKey(),
                                                           .make_communicator = make_communicator,
                                                           .liveness = liveness,
                                                           .exchange_timeout = exchange_timeout,
                                                           .shrinks = shrinks,
                                                           .report_interval = report_interval});
    const auto place = wire::SplitAddress(address);
    server_ = *rpc::Server::Start({.host = place->host,
                                   .port = std::stoi(place->port),
                                   .identity = identity_,
                                   .credentials = TestKey(),
                                   .streams = {{Endpoint::kService, endpoint_.get()}},
                                   .on_data = endpoint_.get()});
    group_ = endpoint_->MakeGroup({.on_event = [this](const auto& event) { Note(event); },
                                   .stop_requested = [this] { return stop_.load(); },
                                   .asked_to_end = [this] { return stop_.load(); },
                                   .stop_patience = 300ms,
                                   .find_claim = std::move(find_claim)});
  }
  ~TestTask() {
    generation_ = {};
    group_.reset();
    server_.reset();
  }

  Group& group() { return *group_; }
  const rpc::Identity& identity() const { return identity_; }
  Generation& generation() { return generation_; }
  void Stop() { stop_ = true; }
  void SetClaim(int64_t claim) { claim_ = claim; }

  // If `shares` is true, calls StateIsShared after joining.
  Status Join(int64_t step = -1, const std::string& agreement = "model: a\n", bool shares = true) {
    StatusOr<Generation> generation = group_->Join({.step = step,
                                                    .state_generation = shared_generation_,
                                                    .agreement = agreement,
                                                    .claim = claim_});
    if (!generation.ok()) return generation.status();
    generation_ = *std::move(generation);
    if (!shares) return OkStatus();
    shared_generation_ = generation_.number;
    group_->NoteClaim(claim_);
    group_->StateIsShared();
    return OkStatus();
  }
  // Waits up to 20 s for an event of this kind. Returns its message.
  std::string Await(Kind kind) { return Await(kind, "", 1); }
  // Waits up to 20 s for the `count`-th event of this kind whose message contains `text`. Returns
  // its message.
  std::string Await(Kind kind, const std::string& text, int count) {
    const auto deadline = SteadyNow() + 20s;
    MutexLock lock(mutex_);
    for (;;) {
      int found = 0;
      for (const auto& event : events_) {
        const bool matches = event.kind == kind && event.message.find(text) != std::string::npos;
        if (matches && ++found == count) return event.message;
      }
      if (!changed_.WaitUntil(mutex_, deadline)) return "";
    }
  }

 private:
  void Note(const state::PeerEvent& event) {
    MutexLock lock(mutex_);
    events_.push_back(event);
    changed_.NotifyAll();
  }

  const rpc::Identity identity_;
  std::atomic<bool> stop_ = false;
  Mutex mutex_;
  CondVar changed_;
  std::vector<state::PeerEvent> events_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<Endpoint> endpoint_;
  std::unique_ptr<rpc::Server> server_;
  std::unique_ptr<Group> group_;
  Generation generation_;
  int64_t shared_generation_ = 0;
  int64_t claim_ = 0;  // see Joining
};

class EndpointTest : public testing::Test {
 protected:
  void SetUp() override {
    tasks_ = {{"chief", 0, Address()}, {"worker", 0, Address()}, {"worker", 1, Address()}};
    for (size_t i = 0; i < tasks_.size(); ++i) Start(i);
  }

  virtual std::string Address() { return wire::TestAddress(); }
  void Start(size_t i) {
    running_.resize(tasks_.size());
    running_[i].reset();
    running_[i] = std::make_unique<TestTask>(tasks_, i, ++incarnation_, make_communicator_,
                                             liveness_, exchange_timeout_, shrinks_, job_,
                                             report_interval_, find_claim_);
  }
  TestTask& At(size_t i) { return *running_[i]; }

  // Calls the function for all running tasks in parallel. Returns the results.
  template <typename Function>
  std::vector<Status> All(Function function) {
    std::vector<Status> results(running_.size());
    std::vector<std::thread> threads;
    for (size_t i = 0; i < running_.size(); ++i) {
      if (running_[i]) threads.emplace_back([&, i] { results[i] = function(*running_[i]); });
    }
    for (std::thread& thread : threads) thread.join();
    return results;
  }
  void JoinAll() {
    EXPECT_EQ(All([](TestTask& task) { return task.Join(7); }),
              std::vector<Status>(running_.size()));
  }
  void ExpectBarrier() {
    EXPECT_EQ(All([](TestTask& task) { return task.generation().communicator->Barrier(); }),
              std::vector<Status>(running_.size()));
  }

  CommunicatorFactory make_communicator_ = MakeBarriers;
  rpc::LivenessRules liveness_;
  Duration exchange_timeout_{0};  // 0: no limit
  bool shrinks_ = false;
  std::string job_ = "job-a";  // of the tasks that Start starts
  Duration report_interval_{10s};
  std::function<Status(int64_t)> find_claim_;  // of the tasks that Start starts
  std::vector<GroupTask> tasks_;
  std::vector<std::unique_ptr<TestTask>> running_;
  int64_t incarnation_ = 100;
};

// Uses the same communicator as real training tasks.
class SocketGroupTest : public EndpointTest {
 protected:
  static constexpr int64_t kValues = 300'000;  // more than fits into socket buffers

  void SetUp() override {
    make_communicator_ = MakeSockets;
    EndpointTest::SetUp();
  }

  // Sums rank + 1 over all ranks.
  static Status Sum(TestTask& task) {
    std::vector<float> values(kValues, static_cast<float>(task.generation().rank + 1));
    RETURN_IF_ERROR(task.generation().communicator->AllReduce(
        std::as_writable_bytes(std::span(values)), DType::kFloat32, Reduction::kSum));
    const auto ranks = static_cast<float>(task.generation().members.size());
    const float sum = ranks * (ranks + 1) / 2;
    if (values == std::vector<float>(kValues, sum)) return OkStatus();
    return Internal("expected ", sum, " everywhere, got ", values.front(), " … ", values.back());
  }
  void ExpectSum() { EXPECT_EQ(All(Sum), std::vector<Status>(running_.size())); }
};

}  // namespace tfjob::collectives
