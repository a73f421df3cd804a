// Runs the tasks of a job as threads of one process, connected over loopback, for tests.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/stop.h"
#include "runtime/ps/server/server.h"
#include "runtime/rpc/server.h"
#include "runtime/train/task.h"
#include "runtime/wire/test_address.h"

namespace tfjob::train {

using cluster::Task;

// Runs one task on its own thread.
class RunningTask {
 public:
  RunningTask(config::TrainingConfig config, cluster::TfConfig tf_config, int32_t attempt = 0,
              rpc::Credentials credentials = {})
      : RunningTask(TaskOptions{.config = std::move(config),
                                .tf_config = std::move(tf_config),
                                .job = {"uid", attempt},
                                .credentials = std::move(credentials)}) {}
  explicit RunningTask(TaskOptions options)
      : context_(std::move(options), stop_, RealClock()), thread_([this] {
          status_ = RunTask(context_);
          ended_ = true;
        }) {}
  ~RunningTask() {
    if (thread_.joinable()) (void)Stop();
  }

  Status End() {
    thread_.join();
    return status_;
  }
  Status Stop() {
    stop_.Request(SIGTERM);
    return End();
  }
  progress::Progress Progress() { return context_.board().Get(); }
  // Waits until the task has ended. Returns false if this takes more than a minute.
  bool AwaitEnd() {
    const Duration deadline = RealClock().Monotonic() + 60s;
    while (!ended_ && RealClock().Monotonic() < deadline) std::this_thread::sleep_for(5ms);
    return ended_;
  }
  // Returns whether the condition on the task's progress becomes true within a minute.
  template <typename Condition>
  bool Await(const Condition& condition) {
    const Duration deadline = RealClock().Monotonic() + 60s;
    while (!condition(Progress()) && RealClock().Monotonic() < deadline)
      std::this_thread::sleep_for(5ms);
    return condition(Progress());
  }
  bool AwaitStep(int64_t step) {
    return Await([step](const progress::Progress& p) { return p.step >= step; });
  }

 private:
  StopSource stop_;
  TaskContext context_;
  Status status_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

// A ps task that can be killed abruptly.
class Mortal {
 public:
  Mortal(int index, const std::string& address) : index_(index), address_(address) {}
  void Start(int64_t incarnation) {
    const rpc::Identity self{"uid", 0, "ps", index_, incarnation};
    ps_ = *ps::ParameterServer::Create({.identity = self});
    auto server = rpc::Server::Start({.host = "127.0.0.1",
                                      .port = std::stoi(address_.substr(address_.find(':') + 1)),
                                      .identity = self,
                                      .streams = {{ps::kParameterService, ps_.get()}}});
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void Kill() {
    server_.reset();
    ps_.reset();
  }
  Status AwaitEnd() { return ps_->WaitUntilFinished(); }
  // Waits until the server has received a gradient for a synchronous step. Returns false if this
  // takes more than a minute.
  bool AwaitGradient() {
    const Duration deadline = RealClock().Monotonic() + 60s;
    while (ps_->State().staged_bytes == 0 && RealClock().Monotonic() < deadline)
      std::this_thread::sleep_for(1ms);
    return ps_->State().staged_bytes > 0;
  }

 private:
  const int index_;
  const std::string address_;
  std::unique_ptr<ps::ParameterServer> ps_;
  std::unique_ptr<rpc::Server> server_;
};

// Assigns addresses to the tasks of a job.
class TestCluster {
 public:
  // Returns the task's address. All calls for the same task return the same address.
  const std::string& AddressOf(const Task& task) {
    std::string& address = addresses_[task];
    if (address.empty()) address = wire::TestAddress();
    return address;
  }

  cluster::TfConfig Static(const Task& task, const std::vector<Task>& all) {
    std::map<std::string, cluster::Job> jobs;
    for (const Task& one : all) {
      jobs[one.type].name = one.type;
      jobs[one.type].addresses[one.index] = AddressOf(one);
    }
    cluster::TfConfig config{.task = task};
    for (auto& [name, job] : jobs) config.cluster.jobs.push_back(std::move(job));
    return config;
  }

 private:
  std::map<Task, std::string> addresses_;
};

}  // namespace tfjob::train
