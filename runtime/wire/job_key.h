// Defines a job's key, which proves that a process belongs to the job. The operator derives each
// job's key (the HMAC of the job's UID under the operator's own key), and passes it to the job's
// tasks in the environment variable TFJOB_KEY.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::wire {

using Nonce = std::array<uint8_t, 32>;
using Proof = std::array<uint8_t, 32>;

// Contains 32 secret bytes. There is deliberately no function that returns them, so they are never
// printed. The destructor overwrites the memory.
class JobKey {
 public:
  // Parses exactly 64 lower-case hexadecimal digits. The error does not contain `hex`.
  static StatusOr<JobKey> Parse(std::string_view hex);
  JobKey(const JobKey&) = default;
  JobKey& operator=(const JobKey&) = default;
  ~JobKey();

  // Returns the HMAC-SHA256 (RFC 2104) of the concatenated parts under this key.
  Proof Sign(std::initializer_list<std::string_view> parts) const;

 private:
  JobKey() = default;
  std::array<uint8_t, 32> bytes_{};
};

// Compares two proofs in constant time.
bool Equal(const Proof& left, std::string_view right);

// Returns 32 fresh random bytes from OpenSSL's generator, which the kernel seeds.
Nonce NewNonce();

// Reads TFJOB_KEY and erases it from this process's environment, so that neither child processes
// nor /proc/<pid>/environ contain it. Returns nullopt if the variable is not set, and
// InvalidArgument if its value is not a key. Call once, before threads start.
StatusOr<std::optional<JobKey>> TakeJobKey();

}  // namespace tfjob::wire
