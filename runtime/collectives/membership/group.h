// Forms groups of tasks that train together without parameter servers. Membership changes only from
// one generation to the next. When a task of a generation is lost, the generation's communicator
// aborts on every other task, and these tasks join again.
//
// The leader (the chief, or worker 0 if the cluster has no chief) decides who belongs to a
// generation. While the leader is missing, the other tasks keep their state. They wait for the
// leader or, if the group may shrink, follow another leader until it returns. A generation from
// which tasks are missing needs a majority of the last generation (quorum.h), so two groups never
// train at the same time. In an elastic group, tasks that were not listed at the beginning may
// join, and tasks may leave for good.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/state/peer.h"
#include "runtime/state/work_phase.h"

namespace tfjob::collectives {

// A task of a generation, and the state that it brought.
struct Member {
  std::string task;     // "worker 1"
  std::string address;  // "host:port"
  int64_t incarnation = 0;
  int64_t step = -1;  // see Joining
  int64_t state_generation = 0;
};

// The tasks that train together, by rank: the leader first, then the others in the order of
// TF_CONFIG. A group may continue without tasks that it has lost, so it may have more or fewer
// members than the previous generation.
struct Generation {
  int64_t number = 0;  // increases with every generation within a job's attempt
  std::vector<Member> members;
  int rank = 0;  // this task's rank
  std::unique_ptr<Communicator> communicator;
  // The lowest rank among the ranks with the newest state. If the step of this rank is -1, no task
  // has a state. All tasks with a different state (HasStateOf) take over the state of this rank.
  int source = 0;
};

// Returns whether two members of a generation have brought bit-identical states.
inline bool HasStateOf(const Member& member, const Member& other) {
  return member.step == other.step &&
         (member.step < 0 || member.state_generation == other.state_generation);
}

// Describes a task that joins a generation.
struct Joining {
  int64_t step = -1;  // the step of the task's state; -1: none
  // The number of the latest generation in which this task had the same state as all other members,
  // because it was the source, took over the source's state, or already had that state. A state
  // from a later generation is newer, even if its step is earlier or the same, because two
  // generations with different members may round differently when they compute the same step.
  int64_t state_generation = 0;
  // Describes the properties that must be equal in all tasks: the model, the optimizer, the
  // buckets. One line per property, "NAME: VALUE", so that an error can name the first property
  // that differs.
  std::string agreement;
  // True if a group of this job has trained before. Set only in the first task of an elastic
  // group.
  bool begins_again = false;
  // The group's claim, if this task has a state: the number that a task of the group has written to
  // the folder that all tasks of a group that may shrink must share. 0: unknown, or not written.
  int64_t claim = 0;
};

// Owned by one thread, except that any thread may call Peers, IsCurrent and Announce.
//
// A task ends its participation with one of three calls: Leave if it has taken its last step,
// Depart if its process exits earlier and a replacement will continue, or Fail if the run has
// failed for all tasks. Each of these calls may also follow a Join that has returned an error.
class Group {
 public:
  virtual ~Group() = default;
  // Waits until a generation forms, and returns it. Aborts the previous generation's communicator
  // if the caller still has it. During the wait, a PeerEvent every 10 s names the missing tasks.
  // Returns
  //   Cancelled           if the job has ended, or this task was asked to stop;
  //   FailedPrecondition  if this task is incompatible with the group; the message says how they
  //                       differ;
  //   state::RunFailure   if the run has failed;
  //   the error of GroupOptions::find_claim. The task has then departed, without having interrupted
  //                       the others.
  virtual StatusOr<Generation> Join(const Joining& joining) = 0;
  // Announces that this task works on something other than a step, for at most `limit` from now on,
  // or, with kNone, that it no longer does. The others then name this task and the phase if they
  // wait for it, and the limit for operations does not apply. Another call with the same phase
  // extends it. Phases that last only a moment are not sent. Any thread may call Announce. Returns
  // at once.
  virtual void Announce(state::WorkPhase phase, Duration limit) = 0;
  // On the leader (rank 0), returns whether a task outside the current generation is waiting. All
  // members should then finish their step, drop the communicator and join again. On other tasks,
  // always returns false. Returns at once.
  virtual bool TaskWaits() = 0;
  // Returns whether the generation that Join has returned is still running, as far as this task
  // knows. A task that computes for a long time between two operations can thus learn early that
  // the next operation would fail. Any thread may call IsCurrent. Returns at once.
  virtual bool IsCurrent(int64_t generation) = 0;
  // Reports that this task now has the state that the current generation continues with and, if the
  // group may shrink, that all members have exchanged data since the generation began. The time
  // limit for operations applies only after this call, because the task that provides the state may
  // first have to read it.
  virtual void StateIsShared() = 0;
  // Records the group's claim (Joining) after it has been written. On the leader, tasks without a
  // state must from then on find it before they may take part.
  virtual void NoteClaim(int64_t claim) = 0;
  // Returns a function that reports whether this task may now write to the group's folders, that
  // is, whether it led the last generation and the other tasks cannot have formed another one. If
  // the group is not allowed to shrink, the function always returns true. Any thread may call the
  // function, even after the group has been destroyed.
  virtual std::function<bool()> WriteGuard() = 0;
  // Announces that this task takes no further steps. The other tasks no longer wait for it.
  virtual Status Leave() = 0;
  // Announces that this process exits although the run continues. The group waits for the
  // replacement of this process, or continues without this task until the replacement joins. Aborts
  // the communicator if the caller still has it.
  virtual Status Depart() = 0;
  // Records that these members of a generation have announced to this task that they depart. They
  // no longer count as members, even if the leader that they notify exits as well. Returns at once.
  virtual void NoteDepartures(int64_t generation, const std::vector<Member>& members) = 0;
  // Ends the job for all other tasks, including those that start later. Call on the leader (rank 0)
  // only.
  virtual Status Finish() = 0;
  // Ends the job with this error (state::RunFailure) for all tasks, including those that start
  // later. On tasks other than the leader, asks the leader to end the job. Returns Unavailable if
  // the leader does not answer.
  virtual Status Fail(const Status& failure) = 0;
  virtual std::vector<state::PeerState> Peers() = 0;
};

}  // namespace tfjob::collectives
