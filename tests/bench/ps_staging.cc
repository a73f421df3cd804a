// Measures a synchronous step of many workers on one parameter server over loopback TCP. Reports
// the time of the step, and the memory of the process, not counting the state and the workers'
// buffers. Most of this memory contains gradients that wait for the step.
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/ps/client/client.h"
#include "runtime/ps/server/server.h"
#include "runtime/rpc/server.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

template <typename T>
T Must(StatusOr<T> result) {
  ENFORCE(result.ok(), result.status().ToString());
  return *std::move(result);
}

rpc::Identity Task(const std::string& type, int index) {
  return {.job_uid = "bench", .task_type = type, .task_index = index, .incarnation = 1};
}

// Allocates memory that can be mapped several times, so that sixteen workers do not need sixteen
// times the memory of one worker.
class Shared {
 public:
  explicit Shared(size_t bytes) : bytes_(bytes), file_(memfd_create("bench", MFD_CLOEXEC)) {
    ENFORCE(file_ >= 0 && ftruncate(file_, static_cast<off_t>(bytes)) == 0, "memfd_create");
  }
  ~Shared() { close(file_); }
  std::span<std::byte> Map() const {
    void* memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    ENFORCE(memory != MAP_FAILED, "mmap");
    return {static_cast<std::byte*>(memory), bytes_};
  }

 private:
  const size_t bytes_;
  const int file_;
};

// Returns the memory of this process that is not shared, in bytes.
int64_t Anonymous() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == "RssAnon:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

// Determines the peak of Anonymous() by sampling, because the peak that the operating system
// reports includes every mapping of shared memory.
class PeakMemory {
 public:
  PeakMemory() {
    thread_ = std::thread([this] {
      while (!ended_) {
        peak_ = std::max(peak_.load(), Anonymous());
        usleep(2000);
      }
    });
  }
  ~PeakMemory() {
    ended_ = true;
    thread_.join();
  }
  int64_t peak() const { return peak_; }

 private:
  std::atomic<int64_t> peak_ = 0;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

class Job {
 public:
  Job(int workers, int64_t bytes, int64_t shard_bytes)
      : gradient_(static_cast<size_t>(bytes)), value_(static_cast<size_t>(bytes)) {
    ps_ = Must(ps::ParameterServer::Create({.identity = Task("ps", 0)}));
    server_ = Must(rpc::Server::Start({.host = "127.0.0.1",
                                       .identity = Task("ps", 0),
                                       .streams = {{ps::kParameterService, ps_.get()}}}));
    ps::Definition definition;
    definition.state.variables = {{.name = "w", .shape = {bytes / 4096, 1024}}};
    definition.mode = ps::Mode::kSynchronous;
    definition.replicas_to_aggregate = workers;
    definition.max_shard_bytes = shard_bytes;
    const std::span<std::byte> gradient = gradient_.Map();
    std::ranges::fill(gradient, std::byte{0});
    for (int i = 0; i < workers; ++i) {
      gradients_.push_back({gradient});
      values_.push_back({value_.Map()});
      clients_.push_back(Must(ps::ParameterClient::Create(
          {.servers = {StrCat("127.0.0.1:", server_->port())},
           .identity = i == 0 ? Task("chief", 0) : Task("worker", i - 1),
           .definition = definition,
           .chief = i == 0,
           .provide_state = [definition]() -> StatusOr<state::Snapshot> {
             const state::Variable& variable = definition.state.variables[0];
             return state::Snapshot{
                 .variables = {{.value = Tensor(variable.dtype, variable.shape), .slots = {}}}};
           }})));
      Must(clients_.back()->WaitReady(values_.back()));
    }
  }
  ~Job() {
    clients_.clear();
    server_.reset();
  }

  void Run() {
    std::vector<std::thread> threads;
    for (size_t i = 0; i < clients_.size(); ++i) {
      threads.emplace_back([this, i] { Must(clients_[i]->Exchange(gradients_[i], values_[i])); });
    }
    for (std::thread& thread : threads) thread.join();
  }

 private:
  const Shared gradient_, value_;
  std::unique_ptr<ps::ParameterServer> ps_;
  std::unique_ptr<rpc::Server> server_;
  std::vector<std::vector<std::span<const std::byte>>> gradients_;
  std::vector<std::vector<std::span<std::byte>>> values_;
  std::vector<std::unique_ptr<ps::ParameterClient>> clients_;
};

int Main(int argc, char** argv) {
  CLI::App app("Synchronous steps of many workers on one parameter server");
  int64_t bytes = int64_t{64} << 20, shard_bytes = int64_t{32} << 20;
  int rounds = 3, workers = 16;
  app.add_option("--bytes", bytes, "of gradients of a worker")->transform(CLI::AsSizeValue(false));
  app.add_option("--shard-bytes", shard_bytes, "of the largest shard")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--rounds", rounds, "steps measured");
  app.add_option("--workers", workers, "chief included")->check(CLI::Range(1, 256));
  CLI11_PARSE(app, argc, argv);
  Job job(workers, bytes, shard_bytes);
  const int64_t idle = Anonymous();
  PeakMemory memory;
  job.Run();  // warms up TCP windows, pools and memory pages
  Stopwatch watch;
  for (int i = 0; i < rounds; ++i) job.Run();
  const Times times = watch.Elapsed();
  Report("ps-staging")
      .Add("bytes", bytes)
      .Add("workers", workers)
      .Add("rounds", rounds)
      .Add("step_s", times.wall_s / rounds)
      .Add("cpu_s_per_step", times.cpu_s / rounds)
      .Add("idle_mb", static_cast<double>(idle) / 1e6)
      .Print(times, static_cast<double>(memory.peak()) / 1e6);
  return 0;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
