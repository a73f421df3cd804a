// Decides which data connections a task accepts for its generations. Keeps connections that arrive
// before the leader's order to form the generation, because another member may receive this order
// earlier.
//
// Members of lower rank dial members of higher rank. A caller's rank follows from its identity,
// which it has proven, so no caller can take another member's place. At most one socket is kept per
// task.
//
// Pure, except that it owns sockets. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collectives/membership/membership_messages.h"
#include "runtime/wire/socket.h"

namespace tfjob::collectives {

// Identifies the generation that a data connection belongs to.
struct DataChannel {
  int64_t leader_incarnation = 0;
  int64_t generation = 0;
  auto operator<=>(const DataChannel&) const = default;
};
std::string Print(const DataChannel& channel);  // "group-1700000000000000-12"
// Returns nullopt if `text` cannot be a result of Print.
std::optional<DataChannel> ParseDataChannel(const std::string& text);

// The process at the other end of a connection.
struct DataPeer {
  std::string task;  // "worker 1"
  int64_t incarnation = 0;
};

class SocketIntake {
 public:
  // `tasks` contains the names of all tasks that train.
  SocketIntake(std::vector<std::string> tasks, std::string self);

  // Returns OK if the connection should be accepted; otherwise, returns FailedPrecondition with the
  // reason.
  Status Admit(const DataPeer& peer, const DataChannel& channel) const;
  // Takes ownership of a connection that Admit has accepted.
  void Accept(const DataPeer& peer, const DataChannel& channel, wire::UniqueFd socket);

  // Starts a generation in which this task has rank `rank`.
  void Begin(const DataChannel& channel, const std::vector<Member>& members, int rank);
  // Ends the generation. Later connections for it are refused.
  void End() { expected_.clear(); }
  // Returns the sockets of the generation that have arrived since the last call, by rank.
  std::vector<std::pair<int, wire::UniqueFd>> Take();

 private:
  struct Kept {
    int64_t incarnation = 0;
    DataChannel channel;
    wire::UniqueFd socket;
  };
  struct Expected {
    int rank = 0;
    int64_t incarnation = 0;
    bool arrived = false;
  };

  const std::vector<std::string> tasks_;
  const std::string self_;
  DataChannel channel_;                       // the latest generation's channel
  std::map<std::string, Expected> expected_;  // by task: the members of lower rank
  std::map<std::string, Kept> kept_;          // by task
};

}  // namespace tfjob::collectives
