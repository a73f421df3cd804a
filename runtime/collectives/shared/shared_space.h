// Defines the memory that the ranks on one machine use to exchange spans. Threads of one process
// can access all of each other's memory; processes can access only memory that they have mapped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"

namespace tfjob::collectives {

// The location of a rank's span in shared memory, in numbers that have the same meaning on all
// ranks.
struct Place {
  uint64_t allocation = 0;  // 0: only the rank itself can see the span
  uint64_t offset = 0;
};

// Used by the thread that runs the rank's operations.
class SharedSpace {
 public:
  virtual ~SharedSpace() = default;

  virtual std::string_view transport() const = 0;

  // Returns the place at which the other ranks find this rank's span.
  virtual Place PlaceOf(std::span<std::byte> values) = 0;
  // Returns the `bytes` bytes at a place that `rank` has posted, or null if not all of them are in
  // shared memory. `place.allocation` must be one that PlaceOf returned for a span that still
  // exists.
  virtual std::byte* Find(int rank, const Place& place, size_t bytes) = 0;

  // An allocation has two parts, Offer and Take. Between them, every rank waits until all others
  // have called Offer.
  virtual Status Offer(size_t bytes) = 0;
  virtual StatusOr<std::unique_ptr<Communicator::Memory>> Take(size_t bytes) = 0;
};

}  // namespace tfjob::collectives
