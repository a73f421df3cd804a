// Draws, from a seed, which tasks of a job are killed, stopped or cut off from the network, when,
// and for how long.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/cluster/cluster.h"

namespace tfjob::processes {

struct Fault {
  // The fault is due when the job has completed this fraction of its steps, and `delay` has passed
  // since the previous fault or, for the first fault, since the job's start.
  double part = 0;
  Duration delay{0};
  cluster::Task victim;
  // The time for which the task is stopped (SIGSTOP, then SIGCONT) or, with `cuts_off`, its host is
  // cut off from the network. If 0, the task is killed (SIGKILL) instead.
  Duration stop{0};
  bool cuts_off = false;

  bool kill() const { return stop == Duration::zero(); }
};

// Returns one to three faults. Each fault kills or stops one of `tasks` or, in half of the cases if
// `cuts_off`, cuts it off. A stop or cut is either short, or longer than the lease, after which
// other tasks consider a silent task lost. Equal seeds produce equal plans.
std::vector<Fault> DrawFaults(uint64_t seed, const std::vector<cluster::Task>& tasks,
                              bool cuts_off = false);

// Returns a plan as text: "after 31 % of the steps, kill ps 0; 0.8 s later, stop worker 1 for 11.4
// s; 2.1 s later, cut off worker 0 for 3.2 s".
std::string ToString(const std::vector<Fault>& faults);

}  // namespace tfjob::processes
