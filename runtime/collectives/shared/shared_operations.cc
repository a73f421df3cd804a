#include "runtime/collectives/shared/shared_operations.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "runtime/collectives/reduction.h"

namespace tfjob::collectives {
namespace {

// Up to this size, a span is copied into a slot even if all ranks can see it, because a second
// round costs more than the copy.
constexpr size_t kMostCopied = size_t{32} << 10;
// The numbers of bytes to reduce or swap at once. They are small enough that such a part of each
// rank's span stays in the first-level cache until the result has been written back.
constexpr size_t kReducedAtOnce = size_t{8} << 10;
constexpr size_t kSwappedAtOnce = size_t{4} << 10;

void Copy(std::byte* target, const std::byte* source, size_t bytes) {
  if (bytes > 0) std::memcpy(target, source, bytes);
}

// A part of a span, in bytes.
struct Range {
  size_t begin = 0;
  size_t bytes = 0;
};

Range SliceBytes(uint64_t bytes, uint64_t element, int rank, int ranks) {
  const Slice slice = SliceOf(static_cast<int64_t>(bytes / element), rank, ranks);
  return {static_cast<size_t>(slice.begin) * element, static_cast<size_t>(slice.count) * element};
}

// Returns how many bytes of a contribution lie in the piece of `bytes` bytes at `offset`.
size_t Within(size_t contribution, size_t offset, size_t bytes) {
  return contribution > offset ? std::min(contribution - offset, bytes) : 0;
}

// Returns the largest size of a piece such that a slot can contain one piece of every slice.
size_t PieceOfSlice(int ranks) {
  return SharedOperations::kSlotBytes / static_cast<size_t>(ranks) / 64 * 64;
}

}  // namespace

size_t SharedOperations::MemoryBytes(int ranks) {
  return Board::Bytes(ranks) + static_cast<size_t>(ranks) * 2 * kSlotBytes;
}

SharedOperations::SharedOperations(std::shared_ptr<void> owner, std::byte* memory, int rank,
                                   int ranks, Sharing sharing, std::unique_ptr<SharedSpace> space)
    : owner_(std::move(owner)),
      slots_(memory + Board::Bytes(ranks)),
      board_(memory, rank, ranks, sharing),
      space_(std::move(space)),
      spans_(static_cast<size_t>(ranks)),
      operands_(static_cast<size_t>(ranks)) {}

SharedOperations::~SharedOperations() {
  Abort(Cancelled("rank ", rank(), " has left the group"));
}

const char* SharedOperations::NameOf(Kind kind) {
  static constexpr std::array kNames{
      "no operation",      "Allocate",  "AllReduce", "ReduceScatter", "AllGather",
      "AllGatherVariable", "Broadcast", "Reduce",    "AllToAll",      "Barrier"};
  const auto index = static_cast<size_t>(kind);
  return index < kNames.size() ? kNames[index] : "an unknown operation";
}

std::string SharedOperations::Describe(const Call& call) {
  const char* name = NameOf(call.kind);
  switch (call.kind) {
    case Kind::kAllReduce:
    case Kind::kReduceScatter:
      return StrCat(name, "(", call.bytes, " bytes of ", Name(call.dtype), ", ",
                    Name(call.reduction), ")");
    case Kind::kReduce:
      return StrCat(name, "(", call.bytes, " bytes of ", Name(call.dtype), ", ",
                    Name(call.reduction), ", root ", call.root, ")");
    case Kind::kAllGather:
    case Kind::kAllToAll:
      return StrCat(name, "(", call.bytes, " bytes, elements of ", call.element, ")");
    case Kind::kAllGatherVariable:
      return StrCat(name, "(at most ", call.element, " bytes)");
    case Kind::kBroadcast:
      return StrCat(name, "(", call.bytes, " bytes, root ", call.root, ")");
    case Kind::kAllocate:
      return StrCat(name, "(", call.bytes, " bytes)");
    default:
      return name;
  }
}

bool SharedOperations::Reduces(Kind kind) {
  return kind == Kind::kAllReduce || kind == Kind::kReduceScatter || kind == Kind::kReduce;
}

uint32_t SharedOperations::Pack(const Call& call) {
  return static_cast<uint32_t>(call.kind) | static_cast<uint32_t>(call.dtype) << 8 |
         static_cast<uint32_t>(call.reduction) << 16 | static_cast<uint32_t>(call.root) << 24;
}

SharedOperations::Call SharedOperations::Unpack(uint32_t packed) {
  return {.kind = static_cast<Kind>(packed & 0xff),
          .dtype = static_cast<DType>(packed >> 8 & 0xff),
          .reduction = static_cast<Reduction>(packed >> 16 & 0xff),
          .root = static_cast<int>(packed >> 24)};
}

Status SharedOperations::Fail(const Status& why) {
  board_.Abort(why);
  if (failure_.ok()) failure_ = board_.Reason();
  return failure_;
}

Status SharedOperations::CheckArguments(const Call& call) const {
  if (Reduces(call.kind)) {
    RETURN_IF_ERROR(CheckReduction(NameOf(call.kind), call.dtype, call.reduction));
  }
  if (call.root < 0 || call.root >= size()) {
    return InvalidArgument(NameOf(call.kind), " with root ", call.root, ": there are ", size(),
                           " ranks, counted from 0");
  }
  if (call.kind == Kind::kAllGatherVariable) return OkStatus();
  if (call.element == 0 || call.bytes % call.element != 0) {
    return InvalidArgument(NameOf(call.kind), " of ", call.bytes, " bytes in elements of ",
                           call.element, " bytes: expected a whole number of elements");
  }
  const auto ranks = static_cast<uint64_t>(size());
  if (call.kind == Kind::kAllToAll && call.bytes / call.element % ranks != 0) {
    return InvalidArgument("AllToAll of ", call.bytes / call.element,
                           " elements: expected a multiple of the ", ranks, " ranks");
  }
  return OkStatus();
}

Status SharedOperations::Enter(const Call& call) {
  if (!failure_.ok()) return failure_;
  board_.Announce(NameOf(call.kind));
  if (board_.aborted()) return Fail(board_.Reason());
  if (Status status = CheckArguments(call); !status.ok()) return Fail(status);
  return OkStatus();
}

Status SharedOperations::Meet() {
  if (Status status = board_.Meet(); !status.ok()) return Fail(status);
  return OkStatus();
}

Status SharedOperations::AwaitAll(std::optional<Duration> deadline, const Interrupt& interrupt) {
  board_.Begin();
  if (Status status = board_.Meet(deadline, interrupt); !status.ok()) return Fail(status);
  return OkStatus();
}

Status SharedOperations::MeetFor(const Call& call, const Place& place) {
  constexpr auto kRelaxed = std::memory_order_relaxed;  // Meet orders all accesses
  Notice& own = board_.Own();
  own.call.store(Pack(call), kRelaxed);
  own.bytes.store(call.bytes, kRelaxed);
  own.element.store(call.element, kRelaxed);
  own.allocation.store(place.allocation, kRelaxed);
  own.offset.store(place.offset, kRelaxed);
  RETURN_IF_ERROR(Meet());
  for (int rank = 0; rank < size(); ++rank) {
    const Notice& notice = board_.Of(rank);
    Call other = Unpack(notice.call.load(kRelaxed));
    other.bytes = call.kind == Kind::kAllGatherVariable ? call.bytes : notice.bytes.load(kRelaxed);
    other.element = notice.element.load(kRelaxed);
    if (other == call || rank == this->rank()) continue;
    return Fail(InvalidArgument("rank ", this->rank(), " called ", Describe(call), ", but rank ",
                                rank, " called ", Describe(other),
                                ": all ranks must call the same operations in the same order, with "
                                "the same arguments"));
  }
  return OkStatus();
}

StatusOr<SharedOperations::Route> SharedOperations::Choose(const Call& call, const Place& own) {
  bool all = own.allocation != 0, none = own.allocation == 0;
  for (int rank = 0; rank < size(); ++rank) {
    const Notice& notice = board_.Of(rank);
    const Place place = rank == this->rank() ? own : Place{notice.allocation, notice.offset};
    none = none && place.allocation == 0;
    all = all && place.allocation == own.allocation;
    if (!all) continue;
    std::byte* const span = space_->Find(rank, place, call.bytes);
    if (span == nullptr || (Reduces(call.kind) && place.offset % call.element != 0)) {
      return Fail(Internal("rank ", rank, " announced ", call.bytes, " bytes at offset ",
                           place.offset, " of shared allocation ", place.allocation,
                           ": expected a range of that allocation, aligned to its elements"));
    }
    spans_[static_cast<size_t>(rank)] = span;
  }
  return all ? Route::kInPlace : none ? Route::kPieces : Route::kPiecesAgain;
}

Status SharedOperations::Run(const Call& call, std::span<std::byte> values, const Steps& steps) {
  RETURN_IF_ERROR(Enter(call));
  const Place own = values.size() > kMostCopied ? space_->PlaceOf(values) : Place{};
  board_.Begin();
  if (own.allocation == 0) steps.put({0, std::min(steps.contribution, steps.piece)});
  RETURN_IF_ERROR(MeetFor(call, own));
  ASSIGN_OR_RETURN(const Route route, Choose(call, own));
  if (route != Route::kInPlace) return RunPieces(route == Route::kPieces, steps);
  steps.in_place();
  return AwaitAll();
}

Status SharedOperations::RunPieces(bool first_is_there, const Steps& steps) {
  for (size_t offset = 0; offset == 0 || offset < steps.contribution; offset += steps.piece) {
    const Piece piece{offset, std::min(steps.piece, steps.contribution - offset)};
    if (offset > 0 || !first_is_there) {
      board_.Begin();
      steps.put(piece);
      RETURN_IF_ERROR(Meet());
    }
    steps.get(piece);
  }
  return OkStatus();
}

std::byte* SharedOperations::SlotOf(int rank, size_t bytes) {
  if (bytes <= Notice::kValueBytes) return board_.Of(rank).values.data();
  return slots_ + static_cast<size_t>(2 * rank + board_.parity()) * kSlotBytes;
}

void SharedOperations::Combine(const Call& call, std::span<std::byte> target,
                               absl::FunctionRef<std::byte*(int)> part_of) {
  for (int rank = 0; rank < size(); ++rank) {
    operands_[static_cast<size_t>(rank)] = {rank == this->rank() ? target.data() : part_of(rank),
                                            target.size()};
  }
  CombineAll(call.dtype, call.reduction, target, operands_);
}

void SharedOperations::ReduceInPlace(const Call& call, absl::FunctionRef<bool(int)> receives) {
  const Range slice = SliceBytes(call.bytes, call.element, rank(), size());
  for (size_t done = 0; done < slice.bytes; done += kReducedAtOnce) {
    const size_t begin = slice.begin + done;
    const size_t bytes = std::min(kReducedAtOnce, slice.bytes - done);
    const auto part_of = [&](int other) { return spans_[static_cast<size_t>(other)] + begin; };
    std::byte* const own = part_of(rank());
    Combine(call, {own, bytes}, part_of);
    for (int other = 0; other < size(); ++other) {
      if (other != rank() && receives(other)) Copy(part_of(other), own, bytes);
    }
  }
}

StatusOr<std::unique_ptr<Communicator::Memory>> SharedOperations::Allocate(size_t bytes) {
  const Call call{.kind = Kind::kAllocate, .bytes = bytes};
  RETURN_IF_ERROR(Enter(call));
  if (Status status = space_->Offer(bytes); !status.ok()) return Fail(status);
  board_.Begin();
  RETURN_IF_ERROR(MeetFor(call, {}));
  StatusOr<std::unique_ptr<Memory>> memory = space_->Take(bytes);
  if (!memory.ok()) return Fail(memory.status());
  return memory;
}

Status SharedOperations::AllReduce(std::span<std::byte> values, DType dtype, Reduction reduction) {
  const Call call{.kind = Kind::kAllReduce,
                  .dtype = dtype,
                  .reduction = reduction,
                  .bytes = values.size(),
                  .element = SizeOf(dtype)};
  const auto put = [&](Piece piece) {
    Copy(SlotOf(rank(), piece.bytes), values.data() + piece.offset, piece.bytes);
  };
  const auto get = [&](Piece piece) {
    Combine(call, values.subspan(piece.offset, piece.bytes),
            [&](int other) { return SlotOf(other, piece.bytes); });
  };
  const auto in_place = [&] { ReduceInPlace(call, [](int) { return true; }); };
  return Run(call, values,
             {.contribution = values.size(), .put = put, .get = get, .in_place = in_place});
}

Status SharedOperations::Reduce(std::span<std::byte> values, DType dtype, Reduction reduction,
                                int root) {
  const Call call{.kind = Kind::kReduce,
                  .dtype = dtype,
                  .reduction = reduction,
                  .root = root,
                  .bytes = values.size(),
                  .element = SizeOf(dtype)};
  const auto put = [&](Piece piece) {
    if (rank() == root) return;
    Copy(SlotOf(rank(), piece.bytes), values.data() + piece.offset, piece.bytes);
  };
  const auto get = [&](Piece piece) {
    if (rank() != root) return;
    Combine(call, values.subspan(piece.offset, piece.bytes),
            [&](int other) { return SlotOf(other, piece.bytes); });
  };
  const auto in_place = [&] { ReduceInPlace(call, [&](int other) { return other == root; }); };
  return Run(call, values,
             {.contribution = values.size(), .put = put, .get = get, .in_place = in_place});
}

void SharedOperations::PutSlices(const Call& call, std::span<const std::byte> values, Piece piece) {
  std::byte* slot = SlotOf(rank(), piece.bytes * static_cast<size_t>(size()));
  for (int other = 0; other < size(); ++other, slot += piece.bytes) {
    if (other == rank()) continue;
    const Range slice = SliceBytes(call.bytes, call.element, other, size());
    Copy(slot, values.data() + slice.begin + piece.offset,
         Within(slice.bytes, piece.offset, piece.bytes));
  }
}

Status SharedOperations::ReduceScatter(std::span<std::byte> values, DType dtype,
                                       Reduction reduction) {
  const Call call{.kind = Kind::kReduceScatter,
                  .dtype = dtype,
                  .reduction = reduction,
                  .bytes = values.size(),
                  .element = SizeOf(dtype)};
  const Range own = SliceBytes(call.bytes, call.element, rank(), size());
  const auto put = [&](Piece piece) { PutSlices(call, values, piece); };
  const auto get = [&](Piece piece) {
    const size_t bytes = Within(own.bytes, piece.offset, piece.bytes);
    if (bytes == 0) return;
    Combine(call, values.subspan(own.begin + piece.offset, bytes), [&](int other) {
      return SlotOf(other, piece.bytes * static_cast<size_t>(size())) +
             piece.bytes * static_cast<size_t>(rank());
    });
  };
  const auto in_place = [&] { ReduceInPlace(call, [](int) { return false; }); };
  return Run(call, values,
             {.contribution = SliceBytes(call.bytes, call.element, 0, size()).bytes,
              .piece = PieceOfSlice(size()),
              .put = put,
              .get = get,
              .in_place = in_place});
}

Status SharedOperations::AllToAll(std::span<std::byte> values, size_t element_bytes) {
  const Call call{.kind = Kind::kAllToAll, .bytes = values.size(), .element = element_bytes};
  const auto ranks = static_cast<size_t>(size());
  const size_t slice = values.size() / ranks;
  const auto put = [&](Piece piece) { PutSlices(call, values, piece); };
  const auto get = [&](Piece piece) {
    for (int other = 0; other < size(); ++other) {
      if (other == rank()) continue;
      Copy(values.data() + static_cast<size_t>(other) * slice + piece.offset,
           SlotOf(other, piece.bytes * ranks) + piece.bytes * static_cast<size_t>(rank()),
           piece.bytes);
    }
  };
  const auto in_place = [&] { SwapInPlace(slice); };
  return Run(call, values,
             {.contribution = slice,
              .piece = PieceOfSlice(size()),
              .put = put,
              .get = get,
              .in_place = in_place});
}

// Swaps the slices of each pair of ranks. Each rank of the pair swaps half of the bytes.
void SharedOperations::SwapInPlace(size_t slice_bytes) {
  std::array<std::byte, kSwappedAtOnce> kept;
  for (int other = 0; other < size(); ++other) {
    if (other == rank()) continue;
    std::byte* const own =
        spans_[static_cast<size_t>(rank())] + static_cast<size_t>(other) * slice_bytes;
    std::byte* const theirs =
        spans_[static_cast<size_t>(other)] + static_cast<size_t>(rank()) * slice_bytes;
    const size_t middle = slice_bytes / 2;
    const size_t end = rank() < other ? middle : slice_bytes;
    for (size_t at = rank() < other ? 0 : middle; at < end; at += kept.size()) {
      const size_t bytes = std::min(kept.size(), end - at);
      Copy(kept.data(), own + at, bytes);
      Copy(own + at, theirs + at, bytes);
      Copy(theirs + at, kept.data(), bytes);
    }
  }
}

Status SharedOperations::AllGather(std::span<std::byte> values, size_t element_bytes) {
  const Call call{.kind = Kind::kAllGather, .bytes = values.size(), .element = element_bytes};
  if (element_bytes == 0) return Enter(call);
  const auto slice_of = [&](int other) {
    return SliceBytes(call.bytes, call.element, other, size());
  };
  const auto put = [&](Piece piece) {
    const Range own = slice_of(rank());
    Copy(SlotOf(rank(), piece.bytes), values.data() + own.begin + piece.offset,
         Within(own.bytes, piece.offset, piece.bytes));
  };
  const auto get = [&](Piece piece) {
    for (int other = 0; other < size(); ++other) {
      if (other == rank()) continue;
      const Range slice = slice_of(other);
      Copy(values.data() + slice.begin + piece.offset, SlotOf(other, piece.bytes),
           Within(slice.bytes, piece.offset, piece.bytes));
    }
  };
  const auto in_place = [&] {
    for (int other = 0; other < size(); ++other) {
      if (other == rank()) continue;
      const Range slice = slice_of(other);
      Copy(values.data() + slice.begin, spans_[static_cast<size_t>(other)] + slice.begin,
           slice.bytes);
    }
  };
  return Run(call, values,
             {.contribution = slice_of(0).bytes, .put = put, .get = get, .in_place = in_place});
}

Status SharedOperations::AllGatherVariable(std::span<const std::byte> own, size_t most_bytes,
                                           std::vector<std::byte>& all,
                                           std::vector<size_t>& sizes) {
  const Call call{.kind = Kind::kAllGatherVariable, .bytes = own.size(), .element = most_bytes};
  const auto put = [&](Piece piece) {
    const size_t bytes = Within(own.size(), piece.offset, piece.bytes);
    if (bytes > 0) Copy(SlotOf(rank(), bytes), own.data() + piece.offset, bytes);
  };
  RETURN_IF_ERROR(Enter(call));
  board_.Begin();
  put({0, kSlotBytes});
  RETURN_IF_ERROR(MeetFor(call, {}));
  sizes.resize(static_cast<size_t>(size()));
  size_t total = 0;
  for (int other = 0; other < size(); ++other) {
    const size_t bytes = other == rank() ? own.size() : board_.Of(other).bytes.load();
    if (bytes > most_bytes - total) {
      return Fail(ResourceExhausted("AllGatherVariable: the ranks up to ", other,
                                    " have more than the ", most_bytes,
                                    " bytes that are allowed for all ranks together"));
    }
    sizes[static_cast<size_t>(other)] = bytes;
    total += bytes;
  }
  all.resize(total);
  const auto get = [&](Piece piece) {
    std::byte* target = all.data();
    for (int other = 0; other < size(); target += sizes[static_cast<size_t>(other)], ++other) {
      const size_t bytes = Within(sizes[static_cast<size_t>(other)], piece.offset, piece.bytes);
      if (bytes == 0) continue;
      Copy(target + piece.offset,
           other == rank() ? own.data() + piece.offset : SlotOf(other, bytes), bytes);
    }
  };
  return RunPieces(true, {.contribution = *std::max_element(sizes.begin(), sizes.end()),
                          .put = put,
                          .get = get,
                          .in_place = [] {}});
}

Status SharedOperations::Broadcast(std::span<std::byte> values, int root) {
  const Call call{.kind = Kind::kBroadcast, .root = root, .bytes = values.size()};
  const auto put = [&](Piece piece) {
    if (rank() == root) {
      Copy(SlotOf(root, piece.bytes), values.data() + piece.offset, piece.bytes);
    }
  };
  const auto get = [&](Piece piece) {
    if (rank() != root) {
      Copy(values.data() + piece.offset, SlotOf(root, piece.bytes), piece.bytes);
    }
  };
  const auto in_place = [&] {
    if (rank() != root) Copy(values.data(), spans_[static_cast<size_t>(root)], values.size());
  };
  return Run(call, values,
             {.contribution = values.size(), .put = put, .get = get, .in_place = in_place});
}

Status SharedOperations::Barrier() {
  const Call call{.kind = Kind::kBarrier};
  RETURN_IF_ERROR(Enter(call));
  board_.Begin();
  return MeetFor(call, {});
}

}  // namespace tfjob::collectives
