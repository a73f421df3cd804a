// Implements the operations of a communicator for ranks that exchange values through memory.
//
// Small spans travel through slots. A rank copies its values into its slot, posts its notice, and
// reads the slots of the others. Every rank has two slots, which alternate as notices do
// (shared_board.h). A few bytes travel in the notice itself.
//
// Large spans that all ranks can see are used in place: every rank works on its slice of all spans.
// The round before this work ensures that all values are complete, and the round after it that all
// results are complete. Other large spans travel through the slots in pieces.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/shared/shared_board.h"
#include "runtime/collectives/shared/shared_space.h"

namespace tfjob::collectives {

class SharedOperations final : public Communicator {
 public:
  // The size of a slot. With few ranks, both slots of all ranks stay in the second-level cache.
  static constexpr size_t kSlotBytes = size_t{64} << 10;

  // Returns the number of bytes that the ranks share: a board and the ranks' slots.
  static size_t MemoryBytes(int ranks);

  // `memory` is aligned to 128. Its first Board::Bytes(ranks) bytes must be zero before the first
  // rank starts. `owner` keeps the memory alive.
  SharedOperations(std::shared_ptr<void> owner, std::byte* memory, int rank, int ranks,
                   Sharing sharing, std::unique_ptr<SharedSpace> space);
  ~SharedOperations() override;

  // Waits until all ranks have called AwaitAll. Does not count as an operation. Returns
  // DeadlineExceeded at the deadline, if there is one. If `interrupt` returns an error, returns
  // that error.
  Status AwaitAll(std::optional<Duration> deadline = std::nullopt,
                  const Interrupt& interrupt = nullptr);

  Board& board() { return board_; }
  const Board& board() const { return board_; }

  int rank() const override { return board_.rank(); }
  int size() const override { return board_.ranks(); }
  std::string_view transport() const override { return space_->transport(); }
  StatusOr<std::unique_ptr<Memory>> Allocate(size_t bytes) override;
  Status AllReduce(std::span<std::byte> values, DType dtype, Reduction reduction) override;
  Status ReduceScatter(std::span<std::byte> values, DType dtype, Reduction reduction) override;
  Status AllGather(std::span<std::byte> values, size_t element_bytes) override;
  Status AllGatherVariable(std::span<const std::byte> own, size_t most_bytes,
                           std::vector<std::byte>& all, std::vector<size_t>& sizes) override;
  Status Broadcast(std::span<std::byte> values, int root) override;
  Status Reduce(std::span<std::byte> values, DType dtype, Reduction reduction, int root) override;
  Status AllToAll(std::span<std::byte> values, size_t element_bytes) override;
  Status Barrier() override;
  void Abort(const Status& why) override { board_.Abort(why); }
  Waiting CurrentWait() const override { return board_.Seen(); }

 private:
  enum class Kind : uint8_t {
    kNone,
    kAllocate,
    kAllReduce,
    kReduceScatter,
    kAllGather,
    kAllGatherVariable,
    kBroadcast,
    kReduce,
    kAllToAll,
    kBarrier
  };
  // Describes an operation. All fields must be equal on all ranks, except that `bytes` may differ
  // for kAllGatherVariable.
  struct Call {
    Kind kind = Kind::kNone;
    DType dtype = DType::kUInt8;
    Reduction reduction = Reduction::kSum;
    int root = 0;
    uint64_t bytes = 0;
    uint64_t element = 1;  // bytes; for kAllGatherVariable, the limit on all ranks' bytes
    bool operator==(const Call&) const = default;
  };
  // A part of every rank's contribution that fits in a slot.
  struct Piece {
    size_t offset = 0;
    size_t bytes = 0;
  };
  using PieceFunction = absl::FunctionRef<void(Piece)>;
  // An operation is defined by its contribution and three functions. `put` copies a piece of the
  // contribution into this rank's slot; `get` reads that piece from the slots of the others;
  // `in_place` does the same for the whole operation, in the spans of all ranks.
  struct Steps {
    size_t contribution = 0;  // the largest contribution of any rank, in bytes
    size_t piece = kSlotBytes;
    PieceFunction put;
    PieceFunction get;
    absl::FunctionRef<void()> in_place;
  };
  // Determines how an operation continues after its first round.
  enum class Route : uint8_t {
    kInPlace,
    kPieces,      // the first piece is in the slots
    kPiecesAgain  // no slot is filled, because some ranks expected to work in place
  };

  static const char* NameOf(Kind kind);
  static std::string Describe(const Call& call);
  static bool Reduces(Kind kind);
  static Call Unpack(uint32_t packed);
  static uint32_t Pack(const Call& call);

  // Announces the call. If the operation cannot take place, aborts it on all ranks with the reason,
  // and returns the reason.
  Status Enter(const Call& call);
  Status CheckArguments(const Call& call) const;
  Status Fail(const Status& why);
  // Posts the call, and compares it with the calls of the others.
  Status MeetFor(const Call& call, const Place& place);
  Status Meet();
  // Chooses a route from the notices of all ranks, so that all ranks choose the same one.
  StatusOr<Route> Choose(const Call& call, const Place& own);

  Status Run(const Call& call, std::span<std::byte> values, const Steps& steps);
  Status RunPieces(bool first_is_there, const Steps& steps);

  // Returns the memory of a rank's contribution to the current round.
  std::byte* SlotOf(int rank, size_t bytes);
  // Replaces `target`, a part of this rank's values, with the reduction of all ranks' parts.
  // part_of(r) is the same part of rank r's values.
  void Combine(const Call& call, std::span<std::byte> target,
               absl::FunctionRef<std::byte*(int)> part_of);
  // Reduces this rank's slice of all spans, and writes the result to the spans of the ranks for
  // which `receives` returns true.
  void ReduceInPlace(const Call& call, absl::FunctionRef<bool(int)> receives);
  void SwapInPlace(size_t slice_bytes);
  // Fills this rank's slot with a piece of every other rank's slice.
  void PutSlices(const Call& call, std::span<const std::byte> values, Piece piece);

  const std::shared_ptr<void> owner_;
  std::byte* const slots_;
  Board board_;
  const std::unique_ptr<SharedSpace> space_;
  Status failure_;                 // the error of the first operation that failed
  std::vector<std::byte*> spans_;  // the spans of all ranks, for an operation in place
  std::vector<std::span<const std::byte>> operands_;
};

}  // namespace tfjob::collectives
