#include "runtime/collectives/shared/shared_process_space.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

namespace tfjob::collectives {
namespace {

// Parts are page-aligned, so that each rank can reserve its own part.
constexpr size_t kPartAlignment = 4096;

// A rank's part of a segment.
class SegmentMemory final : public Communicator::Memory {
 public:
  SegmentMemory(std::shared_ptr<Segment> segment, std::span<std::byte> bytes)
      : segment_(std::move(segment)), bytes_(bytes) {}
  std::span<std::byte> bytes() const override { return bytes_; }

 private:
  const std::shared_ptr<Segment> segment_;
  const std::span<std::byte> bytes_;
};

}  // namespace

ProcessSpace::ProcessSpace(std::unique_ptr<PeerSockets> sockets) : sockets_(std::move(sockets)) {}

Place ProcessSpace::PlaceOf(std::span<std::byte> values) {
  const auto begin = reinterpret_cast<uintptr_t>(values.data());
  for (const Allocation& allocation : allocations_) {
    if (allocation.segment.expired()) continue;
    const auto own = reinterpret_cast<uintptr_t>(allocation.data) +
                     static_cast<size_t>(sockets_->rank()) * allocation.part;
    if (begin < own || values.size() > allocation.part) continue;
    if (begin - own > allocation.part - values.size()) continue;
    return {.allocation = allocation.number, .offset = begin - own};
  }
  return {};
}

std::byte* ProcessSpace::Find(int rank, const Place& place, size_t bytes) {
  const auto found = std::ranges::find(allocations_, place.allocation, &Allocation::number);
  if (found == allocations_.end() || found->segment.expired() || bytes > found->part ||
      place.offset > found->part - bytes) {
    return nullptr;
  }
  return found->data + static_cast<size_t>(rank) * found->part + place.offset;
}

StatusOr<size_t> ProcessSpace::PartOf(size_t bytes) const {
  const auto ranks = static_cast<size_t>(sockets_->ranks());
  if (bytes > PTRDIFF_MAX / ranks - kPartAlignment) {
    return ResourceExhausted("Allocate of ", bytes, " bytes on each of ", ranks,
                             " ranks: more than this machine can address");
  }
  return (bytes / kPartAlignment + 1) * kPartAlignment;
}

Status ProcessSpace::Offer(size_t bytes) {
  if (sockets_->rank() != 0) return OkStatus();
  ASSIGN_OR_RETURN(const size_t part, PartOf(bytes));
  const size_t all = part * static_cast<size_t>(sockets_->ranks());
  ASSIGN_OR_RETURN(offered_, Segment::Make(all));
  const SegmentMessage message{.kind = SegmentMessage::kAllocation,
                               .ranks = static_cast<uint32_t>(sockets_->ranks()),
                               .number = static_cast<uint32_t>(taken_ + 1),
                               .bytes = all};
  for (int rank = 1; rank < sockets_->ranks(); ++rank) {
    RETURN_IF_ERROR(Annotate(SendMessage(sockets_->of(rank), message, offered_->descriptor()),
                             StrCat("sending shared memory to rank ", rank)));
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<Segment>> ProcessSpace::Receive(uint64_t number, size_t bytes) {
  // Do not wait: rank 0 sent the message before it posted its notice, so the message has already
  // arrived, or never will.
  ASSIGN_OR_RETURN(ReceivedMessage received, ReceiveMessage(sockets_->of(0), Duration(0)));
  const SegmentMessage& message = received.message;
  if (message.magic != SegmentMessage::kMagic || message.kind != SegmentMessage::kAllocation ||
      message.number != static_cast<uint32_t>(number) || message.bytes != bytes ||
      !received.descriptor.valid()) {
    return InvalidArgument("expected the ", bytes, " bytes of allocation ", number, ", got ",
                           message.bytes, " bytes of allocation ", message.number,
                           received.descriptor.valid() ? "" : " without their descriptor");
  }
  return Segment::Open(std::move(received.descriptor), bytes);
}

StatusOr<std::unique_ptr<Communicator::Memory>> ProcessSpace::Take(size_t bytes) {
  ASSIGN_OR_RETURN(const size_t part, PartOf(bytes));
  const uint64_t number = taken_ + 1;
  StatusOr<std::unique_ptr<Segment>> taken = std::move(offered_);
  if (sockets_->rank() != 0) taken = Receive(number, part * static_cast<size_t>(sockets_->ranks()));
  if (!taken.ok()) return Annotate(taken.status(), "taking shared memory from rank 0");
  const std::shared_ptr<Segment> segment = std::move(taken).value();
  // Every rank reserves its own part, so that the memory is charged to the rank's own cgroup.
  const size_t begin = static_cast<size_t>(sockets_->rank()) * part;
  RETURN_IF_ERROR(segment->Reserve(begin, part));
  segment->CloseDescriptor();
  ++taken_;
  std::erase_if(allocations_, [](const Allocation& old) { return old.segment.expired(); });
  allocations_.push_back(
      {.number = number, .segment = segment, .data = segment->bytes().data(), .part = part});
  return std::make_unique<SegmentMemory>(segment, segment->bytes().subspan(begin, bytes));
}

}  // namespace tfjob::collectives
