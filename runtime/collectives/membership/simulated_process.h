// Defines the processes and streams of a SimulatedGroup (simulated_group.h).
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <utility>

#include "runtime/collectives/membership/leader.h"
#include "runtime/collectives/membership/member.h"
#include "runtime/collectives/membership/socket_intake.h"

namespace tfjob::collectives {

// A stream between a member's process and the leader's. In each direction, frames arrive in the
// order in which they were sent.
struct Stream {
  int task = 0;
  int64_t member_process = 0, leader_process = 0;
  SessionId session = 0;
  bool cut = false;                // no more frames arrive
  bool ended[2] = {false, false};  // whether the member [0] and the leader [1] have noticed the cut
  Duration last[2] = {};           // arrival of the latest frame at the member [0], leader [1]
};

// The variables of a process. Variables with the same id are equal bit for bit.
struct Variables {
  int64_t step = -1;
  int64_t generation = 0;
  int64_t id = 0;
  int64_t claim = 0;  // see Joining
  auto version() const { return std::make_pair(generation, step); }
};

struct Process {
  int64_t incarnation = 0;
  int task = 0;
  int listed = 0;       // the number of tasks in TF_CONFIG
  std::set<int> known;  // the tasks whose addresses the process knows
  Duration next_call{0};
  bool begins_again = false;  // see Joining
  bool trains = false;        // joins again when its generation ends
  bool left = false;  // has announced that it takes no further steps; the others do not wait
  Duration paused_until{0};
  std::unique_ptr<Leader> leader;  // set while the process leads
  std::unique_ptr<GroupMember> member;
  std::unique_ptr<SocketIntake> intake;
  std::shared_ptr<Stream> stream;  // the stream to the leader; null: none
  bool dialling = false;
  int occupied = -1;  // see TaskView
  Duration rests_until{0}, pause{0};
  std::set<int> dialling_data;  // ranks
  Variables variables;
  int64_t looks_for = 0, found = 0;  // claims; 0: none
  DataChannel channel;               // the channel of the member's generation
};

}  // namespace tfjob::collectives
