// Measures an all-reduce of float32 sums, or another collective operation, between processes that
// are connected by loopback TCP, between processes that share memory, or between threads. With two
// ranks and TCP, also measures an all-reduce by a bare loop over an additional socket
// (bare_loop.h). The bare loop shows how fast this transport can be at best. The operation and the
// bare loop alternate, so that both are measured under the same load of the machine. Each process
// is bound to a processor if there are enough of them, as Open MPI does by default.
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/thread.h"
#include "runtime/collectives/shared/shared_operations.h"
#include "runtime/collectives/shared/thread_communicator.h"
#include "tests/bench/bare_loop.h"
#include "tests/bench/ranks.h"
#include "tests/bench/report.h"

namespace tfjob::bench {
namespace {

using collectives::Communicator;
using collectives::Reduction;
using wire::UniqueFd;

constexpr int kTurns = 5;  // turns of the operation and of the bare loop; medians are reported

// Calls one of the operations, which have the same names as in the benchmarks of NCCL and MPI.
using Call = std::function<Status(Communicator&, std::span<std::byte> values)>;
const std::map<std::string, Call>& Operations() {
  static const auto& operations = *new std::map<std::string, Call>{
      {"all_reduce",
       [](Communicator& ranks, std::span<std::byte> values) {
         return ranks.AllReduce(values, DType::kFloat32, Reduction::kSum);
       }},
      {"reduce_scatter",
       [](Communicator& ranks, std::span<std::byte> values) {
         return ranks.ReduceScatter(values, DType::kFloat32, Reduction::kSum);
       }},
      {"all_gather",
       [](Communicator& ranks, std::span<std::byte> values) {
         return ranks.AllGather(values, sizeof(float));
       }},
      {"broadcast",
       [](Communicator& ranks, std::span<std::byte> values) { return ranks.Broadcast(values, 0); }},
      {"reduce",
       [](Communicator& ranks, std::span<std::byte> values) {
         return ranks.Reduce(values, DType::kFloat32, Reduction::kSum, 0);
       }},
      {"all_to_all",
       [](Communicator& ranks, std::span<std::byte> values) {
         return ranks.AllToAll(values, sizeof(float));
       }},
      {"barrier", [](Communicator& ranks, std::span<std::byte>) { return ranks.Barrier(); }},
  };
  return operations;
}

struct Options {
  int ranks = 2;
  std::vector<int64_t> bytes;
  std::string transport = "tcp";
  std::string operation = "all_reduce";
  int rounds = 0;  // rounds per turn; 0: as many as are possible in about 0.2 s
};

// Contains the measurements of a rank for one size.
struct Results {
  Result ours, bare;
  int64_t spun = 0;  // number of waits that ended while the rank was spinning
};

// Checks one run of the operation: sums 1, 2, … over the ranks, checks every element, and then sets
// all values to 0.
template <typename Run>
void CheckSum(const Communicator& communicator, std::span<std::byte> bytes, const Run& run) {
  const std::span<float> values(reinterpret_cast<float*>(bytes.data()),
                                bytes.size() / sizeof(float));
  const int ranks = communicator.size();
  std::ranges::fill(values, static_cast<float>(communicator.rank() + 1));
  run();
  const auto sum = static_cast<float>(ranks * (ranks + 1) / 2);
  ENFORCE(std::ranges::count(values, sum) == std::ssize(values), "the sum is wrong");
  std::ranges::fill(values, 0.f);
}

int RoundsFor(const Options& options, int64_t bytes) {
  if (options.rounds > 0) return options.rounds;
  return static_cast<int>(std::clamp<int64_t>((int64_t{200} << 20) / (bytes + 1), 4, 4000));
}

int64_t SpunWaits(const Communicator& communicator) {
  const auto* shared = dynamic_cast<const collectives::SharedOperations*>(&communicator);
  return shared != nullptr ? shared->board().spun() : 0;
}

// Measures one size on one rank. `bare` is the socket of the bare loop, or −1 if there is no bare
// loop.
Results MeasureSize(const Options& options, Communicator& communicator, int bare, int64_t bytes) {
  const auto memory = communicator.Allocate(static_cast<size_t>(bytes));
  Must(memory.status());
  const std::span<std::byte> values = (*memory)->bytes();
  BareLoop loop(bare, communicator.rank(), values);
  const Call& operation = Operations().at(options.operation);
  const auto ours = [&] { Must(operation(communicator, values)); };
  const auto theirs = [&] { loop.Run(); };
  const int rounds = RoundsFor(options, bytes);
  if (options.operation == "all_reduce") CheckSum(communicator, values, ours);
  Turn(communicator, std::min(rounds, 10), ours);  // warms up TCP windows and memory pages
  if (bare >= 0) {
    CheckSum(communicator, values, theirs);
    Turn(communicator, std::min(rounds, 10), theirs);
  }
  const int64_t spun = SpunWaits(communicator);
  std::vector<Result> turns, bare_turns;
  for (int turn = 0; turn < kTurns; ++turn) {
    turns.push_back(Turn(communicator, rounds, ours));
    if (bare >= 0) bare_turns.push_back(Turn(communicator, rounds, theirs));
  }
  Results results;
  results.spun = SpunWaits(communicator) - spun;
  results.ours = Median(std::move(turns));
  if (bare >= 0) results.bare = Median(std::move(bare_turns));
  return results;
}

// Runs the ranks as threads, or as processes that are forked after all sockets have been connected.
class Ranks {
 public:
  explicit Ranks(const Options& options) : options_(options) {
    const auto ranks = static_cast<size_t>(options.ranks);
    if (options.transport == "threads") {
      communicators_ = collectives::MakeThreadCommunicators(options.ranks);
    } else {
      sockets_ = ConnectRanks(ranks, options.transport);
    }
    if (HasBareLoop()) bare_ = ConnectOverLoopback();
    for (int rank = 0; rank < options.ranks; ++rank) Start(rank);
    sockets_.clear();
    bare_ = {};
  }
  ~Ranks() {
    for (const pid_t process : processes_) waitpid(process, nullptr, 0);
    for (Thread& thread : threads_) thread.Join();
  }

  // Returns the combined results of all ranks for the next size: the time of the slowest rank, and
  // the sum of the CPU times.
  Results Next() {
    Results all;
    for (const UniqueFd& pipe : pipes_) {
      Results one;
      ENFORCE(read(pipe.get(), &one, sizeof one) == ssize_t{sizeof one},
              "a rank has failed; see above");
      all.spun += one.spun;
      for (Result Results::* what : {&Results::ours, &Results::bare}) {
        (all.*what).seconds = std::max((all.*what).seconds, (one.*what).seconds);
        (all.*what).cpu_seconds += (one.*what).cpu_seconds;
      }
    }
    return all;
  }

  bool HasBareLoop() const {
    return options_.ranks == 2 && options_.transport == "tcp" && options_.operation == "all_reduce";
  }

 private:
  void Start(int rank) {
    int ends[2];
    ENFORCE(pipe(ends) == 0, "pipe");
    if (options_.transport == "threads") {
      pipes_.emplace_back(ends[0]);
      threads_.emplace_back("rank", [this, rank, report = ends[1]] {
        Work(*communicators_[static_cast<size_t>(rank)], report);
        close(report);
      });
      return;
    }
    const pid_t process = fork();
    ENFORCE(process >= 0, "fork");
    if (process == 0) {
      BindToProcessor(rank, options_.ranks);
      Work(*MakeCommunicator(rank, std::move(sockets_), options_.transport), ends[1]);
      _exit(0);
    }
    close(ends[1]);
    pipes_.emplace_back(ends[0]);
    processes_.push_back(process);
  }

  void Work(Communicator& communicator, int report) {
    int bare = -1;
    if (HasBareLoop()) bare = (communicator.rank() == 0 ? bare_.near : bare_.far).get();
    for (const int64_t bytes : options_.bytes) {
      const Results results = MeasureSize(options_, communicator, bare, bytes);
      ENFORCE(write(report, &results, sizeof results) == ssize_t{sizeof results}, "pipe");
    }
    // Wait until all ranks have finished their measurements.
    Must(communicator.Barrier());
  }

  const Options& options_;
  Sockets sockets_;
  Pair bare_;
  std::vector<UniqueFd> pipes_;
  std::vector<pid_t> processes_;
  std::vector<std::unique_ptr<Communicator>> communicators_;
  std::vector<Thread> threads_;
};

// Returns the minimum number of bytes that each rank must send, as a fraction of the operation's
// bytes.
double BusFactor(const Options& options) {
  const double ranks = options.ranks;
  if (options.operation == "all_reduce") return 2 * (ranks - 1) / ranks;
  return options.operation == "broadcast" || options.operation == "reduce" ? 1
                                                                           : (ranks - 1) / ranks;
}

void Print(const Options& options, int64_t bytes, const char* what, const Result& result,
           int64_t spun) {
  const double ranks = options.ranks, size = static_cast<double>(bytes);
  const double rounds = RoundsFor(options, bytes) * kTurns;
  Report("allreduce")
      .Add("what", what)
      .Add("operation", options.operation)
      .Add("transport", options.transport)
      .Add("ranks", options.ranks)
      .Add("bytes", bytes)
      .Add("bus_bytes_per_s", BusFactor(options) * size / result.seconds)
      .Add("seconds", result.seconds)
      .Add("cpu_seconds_per_gb", result.cpu_seconds / (rounds * size * ranks * 1e-9))
      .Add("spun", spun)
      .Print({result.seconds * rounds, result.cpu_seconds});
}

int Main(int argc, char** argv) {
  CLI::App app("All-reduce, or another collective operation, between processes or threads");
  Options options;
  app.add_option("--ranks", options.ranks, "processes or threads")->check(CLI::Range(2, 64));
  app.add_option("--bytes", options.bytes, "one or more sizes; 64 B to 64 MiB without")
      ->transform(CLI::AsSizeValue(false));
  app.add_option("--transport", options.transport, "how the ranks exchange values")
      ->check(CLI::IsMember({"tcp", "shm", "threads"}));
  std::vector<std::string> operations;
  for (const auto& [name, operation] : Operations()) operations.push_back(name);
  app.add_option("--operation", options.operation, "the collective operation")
      ->check(CLI::IsMember(operations));
  app.add_option("--rounds", options.rounds, "operations per turn");
  CLI11_PARSE(app, argc, argv);
  if (options.bytes.empty()) {
    options.bytes = {64,      1 << 10, 4 << 10,  32 << 10, 256 << 10,
                     1 << 20, 8 << 20, 25 << 20, 64 << 20};
  }
  // All-to-all requires the same number of elements for every rank.
  const int64_t unit = int64_t{sizeof(float)} * options.ranks;
  for (int64_t& bytes : options.bytes) bytes = std::max(unit, bytes / unit * unit);
  Ranks ranks(options);
  for (const int64_t bytes : options.bytes) {
    const Results results = ranks.Next();
    Print(options, bytes, "tfjob", results.ours, results.spun);
    if (ranks.HasBareLoop()) Print(options, bytes, "bare loop", results.bare, 0);
  }
  return 0;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::Main(argc, argv);
}
