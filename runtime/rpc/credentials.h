// Defines the secret that two tasks use to prove their identities to each other before any other
// exchange (runtime/wire). The subsequent data is not encrypted.
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
