// Provides the memory that ranks in different processes share. Every allocation is one segment with
// an equal part for each rank. A separate segment per rank would not protect the ranks, since every
// rank writes its results to the spans of all others, and would need a mapping and a descriptor per
// pair of ranks.
#pragma once

#include <memory>
#include <vector>

#include "runtime/collectives/shared/shared_segment.h"
#include "runtime/collectives/shared/shared_sockets.h"
#include "runtime/collectives/shared/shared_space.h"

namespace tfjob::collectives {

class ProcessSpace final : public SharedSpace {
 public:
  explicit ProcessSpace(std::unique_ptr<PeerSockets> sockets);

  PeerSockets& sockets() { return *sockets_; }

  std::string_view transport() const override { return "shared memory"; }
  Place PlaceOf(std::span<std::byte> values) override;
  std::byte* Find(int rank, const Place& place, size_t bytes) override;
  // On rank 0, creates the segment, and sends it to the other ranks over their sockets.
  Status Offer(size_t bytes) override;
  StatusOr<std::unique_ptr<Communicator::Memory>> Take(size_t bytes) override;

 private:
  // The segment is owned by the Memory that Take returned. The entry is removed some time after
  // that Memory has been destroyed.
  struct Allocation {
    uint64_t number = 0;  // from 1, in allocation order
    std::weak_ptr<Segment> segment;
    std::byte* data = nullptr;
    size_t part = 0;  // the size of each rank's part, in bytes
  };

  StatusOr<size_t> PartOf(size_t bytes) const;
  StatusOr<std::unique_ptr<Segment>> Receive(uint64_t number, size_t bytes);

  const std::unique_ptr<PeerSockets> sockets_;
  uint64_t taken_ = 0;  // allocations
  std::vector<Allocation> allocations_;
  std::unique_ptr<Segment> offered_;  // set on rank 0 between Offer and Take
};

}  // namespace tfjob::collectives
