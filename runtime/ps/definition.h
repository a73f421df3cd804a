// Defines the variables that a job's parameter servers store, and how the servers update them. The
// strategy builds the definition from the model and the training file. The definition is the same
// in all tasks of the job, except that replicas_to_aggregate may differ.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/optimizer/clipping.h"
#include "runtime/state/task_id.h"
#include "runtime/state/training_state.h"

namespace tfjob::ps {

enum class Mode : uint8_t { kAsynchronous = 0, kSynchronous = 1 };
enum class Placement : uint8_t {
  kRoundRobin = 0,  // assigns the shards to the servers cyclically
  kBalanced = 1,    // assigns the largest shards first, each to the server with the fewest bytes
};

struct Definition {
  state::TrainingState state;
  Mode mode = Mode::kAsynchronous;
  // Synchronous only: the number of gradients whose mean is one step. The servers use the value of
  // the chief that filled them.
  int replicas_to_aggregate = 1;
  // Synchronous only: the tasks whose gradients are expected, as far as the chief knows them. The
  // first step waits for them for up to `start_timeout`.
  std::vector<state::TaskId> tasks;
  Duration start_timeout{0};
  // Synchronous only: how the servers clip the mean of a step. Asynchronous contributions are
  // clipped by the tasks that compute them.
  optimizer::Clipping clipping;
  Placement placement = Placement::kRoundRobin;
  // The largest size of a shard, the unit of placement and transfer. A larger variable is split by
  // rows (along its first axis) into shards of at most this many bytes.
  int64_t max_shard_bytes = int64_t{4} << 20;
  // The indices in `state` of the variables whose gradients arrive as rows, in ascending order.
  // These variables are matrices whose rows have at most max_shard_bytes bytes.
  std::vector<int> row_gradients;
  // The indices in `state`, in ascending order, of the tables. Tasks read only those rows of a
  // table that a batch needs. Tables are matrices whose rows have at most max_shard_bytes and at
  // most kMaxTableRowBytes bytes. Tables that the optimizer changes are also in row_gradients.
  std::vector<int> tables;

  bool operator==(const Definition&) const = default;
};

// Returns whether the gradient of this variable arrives as rows.
bool HasRowGradient(const Definition& definition, int variable);
// Returns whether tasks read only rows of this variable.
bool IsTable(const Definition& definition, int variable);
// Returns the bytes per row of a variable that is a matrix.
int64_t RowBytes(const state::Variable& variable);

// Returns the number of norms by which a step's mean is clipped: 0 if it is not clipped by norm,
// otherwise one per variable, or one for all variables combined.
size_t NormsOf(const Definition& definition);

// Limits on the sizes in a definition. Within these limits, no product or sum of sizes exceeds 63
// bits.
inline constexpr int64_t kMaxVariableBytes = int64_t{1} << 40;
inline constexpr int64_t kMaxTableRowBytes = int64_t{1} << 20;
inline constexpr int64_t kMaxShards = int64_t{1} << 20;
inline constexpr size_t kMaxServers = size_t{1} << 14;
inline constexpr size_t kMaxTrainingTasks = size_t{1} << 16;
inline constexpr Duration kMaxStartTimeout = std::chrono::hours(24 * 365);

// Returns InvalidArgument, with a message that names the variable or the option, if
//   - the state is invalid,
//   - replicas_to_aggregate or max_shard_bytes is below 1,
//   - clipping has an impossible limit, or the mode is asynchronous and there is clipping,
//   - the optimizer has an option that servers do not support in this mode,
//   - row_gradients or tables contains a variable that does not meet the conditions above, or
//   - a variable, the number of shards or tasks, the name of a task or a timeout exceeds its limit.
Status Validate(const Definition& definition);

// The message that the chief sends to each server. It includes the addresses of all servers
// ("host:port" by index), because the sparse form of TF_CONFIG contains only a server's own
// address.
struct Assignment {
  Definition definition;
  std::vector<std::string> servers;
};
// Convert an assignment to and from the string that is sent. Parsing returns InvalidArgument if the
// string is not an assignment, if the definition is invalid, or if there are more than kMaxServers
// servers.
std::string Serialize(const Assignment& assignment);
StatusOr<Assignment> ParseAssignment(const std::string& bytes);

// Returns a 64-bit digest of the properties that all tasks must agree on. The digest is the same on
// every machine. It excludes start_timeout. It also excludes the tasks and replicas_to_aggregate,
// which defaults to their number, because a worker added by scaling sees more tasks than the
// workers that started before it.
uint64_t Fingerprint(const Definition& definition);

}  // namespace tfjob::ps
