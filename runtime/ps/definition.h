// What a job's parameter servers hold and how they update it: equal in all tasks of the job, made
// by the strategy from the model and the training file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/tensor/dtype.h"
#include "runtime/tensor/shape.h"

namespace tfjob::ps {

// What a task's value sent for a variable does to it.
enum class Update : uint8_t {
  kGradient = 0,   // the optimizer's step; float32 and float64 only
  kAssign = 1,     // replaces it (moving statistics); synchronous: the mean of the set
  kAssignAdd = 2,  // adds to it; synchronous: the mean of the set
};

struct Variable {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;
  Update update = Update::kGradient;

  bool operator==(const Variable&) const = default;
};

enum class Mode : uint8_t { kAsynchronous = 0, kSynchronous = 1 };
enum class Placement : uint8_t {
  kRoundRobin = 0,  // variable by variable, in order
  kBalanced = 1,    // the next largest on the server with the fewest bytes
};

struct Definition {
  std::vector<Variable> variables;
  optimizer::Optimizer optimizer;
  Mode mode = Mode::kAsynchronous;
  // Synchronous only. The chief's counts, as of when it filled the servers.
  int replicas_to_aggregate = 1;
  Placement placement = Placement::kRoundRobin;
  // A variable with more bytes is cut by rows (its first axis) into shards of at most so many; a
  // shard travels as one piece.
  int64_t max_shard_bytes = int64_t{4} << 20;

  bool operator==(const Definition&) const = default;
};

// InvalidArgument names the variable or the option: two variables of one name, a gradient of an
// integer, replicas_to_aggregate < 1, max_shard_bytes < 1, an invalid optimizer.
Status Validate(const Definition& definition);

// As text on the wire, and back. The chief tells each server of all servers too ("host:port" by index):
// under TF_CONFIG's sparse form a server knows itself alone.
struct Assignment {
  Definition definition;
  std::vector<std::string> servers;
};
std::string Serialize(const Assignment& assignment);
StatusOr<Assignment> ParseAssignment(const std::string& bytes);

// A 64-bit digest of what all tasks must agree on, equal on every machine: everything but
// replicas_to_aggregate, which follows the number of workers, and a worker that is added by scaling
// sees more of them than the others were started with.
uint64_t Fingerprint(const Definition& definition);

}  // namespace tfjob::ps
