// Connects ranks on this machine, and measures their operations. Used by benchmarks of collective
// operations.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/wire/dial.h"

namespace tfjob::bench {

inline void Must(const Status& status) {
  ENFORCE(status.ok(), status.ToString());
}

// Contains two connected sockets.
struct Pair {
  wire::UniqueFd near, far;
};
Pair ConnectOverLoopback();

// Contains the sockets of all ranks: [a][b] is the socket of rank a that is connected to rank b.
using Sockets = std::vector<std::vector<wire::UniqueFd>>;
// Connects all ranks to each other, for the transport "tcp" or "shm".
Sockets ConnectRanks(size_t ranks, const std::string& transport);
// Creates the communicator of a process. All ranks must call this function, each in a separate
// process. Closes the sockets of all other ranks. Otherwise, the connections of a rank that has
// died would remain open.
std::unique_ptr<collectives::Communicator> MakeCommunicator(int rank, Sockets sockets,
                                                            const std::string& transport);

// Binds the calling thread, and the threads that it starts, to one processor, so that each rank
// computes like a machine with one processor. Otherwise, the kernel may wake a rank's threads on
// the processor of the rank that sends to it, and both ranks share this processor for milliseconds.
// Does nothing if there are more ranks than processors.
void BindToProcessor(int rank, int ranks);

// Runs work(rank, sockets) in one process per rank, and returns what the ranks have returned, in
// rank order. The processes are forked, so the caller must not have started threads. The program
// ends if a rank fails.
template <typename Results, typename Work>
std::vector<Results> RunRanks(Sockets sockets, const Work& work) {
  static_assert(std::is_trivially_copyable_v<Results>);
  std::vector<wire::UniqueFd> pipes;
  std::vector<pid_t> processes;
  for (size_t rank = 0; rank < sockets.size(); ++rank) {
    int ends[2];
    ENFORCE(pipe(ends) == 0, "pipe");
    const pid_t process = fork();
    ENFORCE(process >= 0, "fork");
    if (process == 0) {
      const Results results = work(static_cast<int>(rank), std::move(sockets));
      ENFORCE(write(ends[1], &results, sizeof results) == ssize_t{sizeof results}, "pipe");
      _exit(0);
    }
    close(ends[1]);
    pipes.emplace_back(ends[0]);
    processes.push_back(process);
  }
  sockets.clear();  // so that the connections of a rank that has died are closed
  std::vector<Results> all(pipes.size());
  for (size_t rank = 0; rank < pipes.size(); ++rank) {
    ENFORCE(read(pipes[rank].get(), &all[rank], sizeof(Results)) == ssize_t{sizeof(Results)},
            "a rank has failed; see above");
  }
  for (const pid_t process : processes) waitpid(process, nullptr, 0);
  return all;
}

// Returns the median of the values. There must be at least one.
inline double MedianOf(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

// Contains the measurements of a rank.
struct Result {
  double seconds = 0;  // time per operation
  double cpu_seconds = 0;
};

double Now();
double ThreadCpuSeconds();

// Measures `rounds` calls between two barriers.
template <typename Run>
Result Turn(collectives::Communicator& communicator, int rounds, const Run& run) {
  Must(communicator.Barrier());
  const double start = Now(), cpu = ThreadCpuSeconds();
  for (int i = 0; i < rounds; ++i) run();
  const double cpu_seconds = ThreadCpuSeconds() - cpu;
  return {(Now() - start) / rounds, cpu_seconds};
}

// Returns the median of the times, and the sum of the CPU times.
Result Median(std::vector<Result> turns);

}  // namespace tfjob::bench
