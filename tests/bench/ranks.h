// Connects ranks on this machine, and measures their operations. Used by benchmarks of collective
// operations.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
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
