// Draws, from a seed, which tasks of a job are killed or stopped, when, and for how long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/cluster/cluster.h"

namespace tfjob::processes {

struct Fault {
  // The fault is due once the job has completed this fraction of its steps, and `delay` after the
  // previous fault (after the job's start, if it is the first one).
  double part = 0;
  Duration delay{0};
  cluster::Task victim;
  // How long the task is stopped (SIGSTOP, then SIGCONT). If 0, the task is killed (SIGKILL)
  // instead.
  Duration stop{0};

  bool kill() const { return stop == Duration::zero(); }
};

// Returns one to three faults. Each kills or stops one of `tasks`. A stop is either short or longer
// than the lease, after which other tasks consider a silent task lost. Equal seeds give equal
// plans.
std::vector<Fault> DrawFaults(uint64_t seed, const std::vector<cluster::Task>& tasks);

// Prints a plan: "after 31 % of the steps, kill ps 0; 0.8 s later, stop worker 1 for 11.4 s".
std::string ToString(const std::vector<Fault>& faults);

}  // namespace tfjob::processes
