// Defines the tasks of a simulated job: the state of each task, and the simulation's records about
// it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/ps/protocol/coordinator.h"
#include "runtime/ps/protocol/participant.h"
#include "runtime/ps/protocol/simulated_batches.h"

namespace tfjob::ps::protocol {

// The history of a state: the contributions to each step.
using Lineage = std::vector<std::vector<Name>>;

// An event at a time. The earliest event compares greatest, because std::priority_queue returns the
// greatest element first.
struct SimulatedEvent {
  Duration at;
  uint64_t order;
  std::function<void()> act;
  bool operator<(const SimulatedEvent& other) const {
    return std::tie(at, order) > std::tie(other.at, other.order);
  }
};

struct SimulatedServer {
  bool alive = false;
  int64_t incarnation = 0;
  std::unique_ptr<Participant> participant;
  std::unique_ptr<Coordinator> coordinator;  // on server 0
  Lineage lineage;                           // history of its state
  std::map<Worker, int64_t> newest;          // newest incarnations seen
  // Maps a name to the contributions that were summed under it since the last commit, including the
  // contribution of that name.
  std::map<Name, std::vector<Name>> sums;
  int64_t summed_epoch = 0, summed_step = 0;
  std::map<Worker, int64_t> drawn;  // on server 0: positions in the data, as it reports them
  UsedBatches used;                 // the batches that the lineage contains
  std::set<Worker> joined;
  Duration gather_until{0};
  bool committed = false;
};

struct SimulatedWorker {
  bool alive = false;
  bool ended = false;  // no more data
  int64_t incarnation = 0;
  Duration stuck_until{0};
  int64_t epoch = 0;  // 0: must pull values first
  int64_t step = 0;
  uint64_t sequence = 0;
  int64_t drawn = 0;  // position in its data, as server 0 last reported it
  bool awaiting = false;
  std::map<int, std::pair<int64_t, int64_t>> answers;  // server → epoch and step of its answer
};

}  // namespace tfjob::ps::protocol
