// Forms groups of tasks that train together without parameter servers. Membership changes only from
// one generation to the next: when a task of a generation is lost, its communicator aborts on every
// other task, and the tasks join again.
//
// The leader (the chief, or worker 0 if the cluster has no chief) decides who belongs to a
// generation. There is only one, named by TF_CONFIG, so two groups can never train at the same
// time. While the leader is away, the others wait for it, and keep the state.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/state/peer.h"

namespace tfjob::collectives {

// A task of a generation.
struct Member {
  std::string task;     // "worker 1"
  std::string address;  // "host:port"
  int64_t incarnation = 0;
  int64_t step = -1;  // the step of the state that it brought; -1: none
};

// The tasks that train together, by rank: the leader first, then the others in the order of
// TF_CONFIG.
struct Generation {
  int64_t number = 0;  // increases with every generation of a job's attempt
  std::vector<Member> members;
  int rank = 0;  // of this task
  std::unique_ptr<Communicator> communicator;
  // The lowest rank among those whose state has the highest step. If its step is -1, no task has a
  // state. All tasks with another step take over the state of this rank.
  int source = 0;
};

// Describes a task that joins a generation.
struct Joining {
  int64_t step = -1;  // of the state that it holds; -1: none
  // Describes what must be equal in all tasks: the model, the optimizer, the buckets. One line per
  // item, "NAME: VALUE", so that an error can name the first that differs.
  std::string agreement;
};

// Owned by one thread, except that any thread may call Peers.
class Group {
 public:
  virtual ~Group() = default;
  // Waits until a generation forms, and returns it. The caller must have dropped the last
  // generation's communicator, or else it is aborted. Reports PeerEvents during the wait: every
  // 10 s, who is missing. Returns
  //   Cancelled           if the job has ended, or this task was asked to stop;
  //   FailedPrecondition  if this task does not fit the group; the message names both sides;
  //   state::RunFailure   if the run has failed.
  virtual StatusOr<Generation> Join(const Joining& joining) = 0;
  // Announces that this task makes no further steps. The others do not wait for it.
  virtual Status Leave() = 0;
  // On the leader only: ends the job for all others, including tasks that start later. `failure` is
  // OK or state::RunFailure.
  virtual Status Finish(const Status& failure) = 0;
  virtual std::vector<state::PeerState> Peers() = 0;
};

}  // namespace tfjob::collectives
