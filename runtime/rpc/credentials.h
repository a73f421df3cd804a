// Defines the proof that a task gives to its peers, and demands from them, before any other
// exchange (runtime/wire). The data that follows is not encrypted.
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
