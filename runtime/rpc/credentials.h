// Defines what a task proves to its peers, and demands from them, before it exchanges anything with
// them (runtime/wire). The exchange itself is not encrypted.
#pragma once

#include <optional>

#include "runtime/wire/job_key.h"

namespace tfjob::rpc {

struct Credentials {
  // Proves that a process belongs to the job. nullopt: the job has no key, and any peer is
  // accepted.
  std::optional<wire::JobKey> key;

  static Credentials Insecure() { return {}; }
};

}  // namespace tfjob::rpc
