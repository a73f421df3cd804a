// Defines what a job's parameter servers hold and how they update it. The strategy builds the
// definition from the model and the training file; it is the same in all tasks of the job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/state/training_state.h"

namespace tfjob::ps {

enum class Mode : uint8_t { kAsynchronous = 0, kSynchronous = 1 };
enum class Placement : uint8_t {
  kRoundRobin = 0,  // in order, variable by variable
  kBalanced = 1,    // largest first, each to the server with the fewest bytes
};

struct Definition {
  state::TrainingState state;
  Mode mode = Mode::kAsynchronous;
  // Synchronous only. The chief's value at the time it filled the servers applies.
  int replicas_to_aggregate = 1;
  Placement placement = Placement::kRoundRobin;
  // A larger variable is split by rows (its first axis) into shards of at most this many bytes. A
  // shard is the unit of placement and transfer.
  int64_t max_shard_bytes = int64_t{4} << 20;

  bool operator==(const Definition&) const = default;
};

// Returns InvalidArgument, naming the variable or the option, for an invalid state,
// replicas_to_aggregate < 1 or max_shard_bytes < 1.
Status Validate(const Definition& definition);

// The message that the chief sends to each server. It includes the addresses of all servers
// ("host:port" by index), since a server with the sparse form of TF_CONFIG knows only its own.
struct Assignment {
  Definition definition;
  std::vector<std::string> servers;
};
// Convert an assignment to and from the text that is sent.
std::string Serialize(const Assignment& assignment);
StatusOr<Assignment> ParseAssignment(const std::string& bytes);

// Returns a 64-bit digest of what all tasks must agree on, equal on every machine. It leaves out
// replicas_to_aggregate, which follows from the number of workers: a worker added by scaling sees
// more workers than there were when the others started.
uint64_t Fingerprint(const Definition& definition);

}  // namespace tfjob::ps
