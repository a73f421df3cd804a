#include "runtime/collectives/socket/socket_communicator.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/collectives/reduction.h"
#include "runtime/collectives/socket/socket_operation.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::collectives {
namespace {

// The number of plans to keep for reuse, because a program calls the same operations in every step.
constexpr size_t kMostPlans = 1024;

class PlainMemory : public Communicator::Memory {
 public:
  explicit PlainMemory(size_t bytes) : buffer_(bytes) {}
  std::span<std::byte> bytes() const override { return {buffer_.data(), buffer_.size()}; }

 private:
  mutable Buffer buffer_;
};

Status CheckCall(const Call& call, int ranks) {
  const bool reduces = call.operation == Operation::kAllReduce ||
                       call.operation == Operation::kReduceScatter ||
                       call.operation == Operation::kReduce;
  if (reduces && !CanReduce(call.dtype)) {
    return InvalidArgument(Name(call.operation), " of ", Name(call.dtype),
                           ": expected float32, float64, int32 or int64");
  }
  if (call.root < 0 || call.root >= ranks) {
    return InvalidArgument(Name(call.operation), " with root ", call.root, ": there are ", ranks,
                           " ranks, counted from 0");
  }
  if (call.element_bytes <= 0 || call.bytes % call.element_bytes != 0) {
    return InvalidArgument(Name(call.operation), " of ", call.bytes, " bytes in elements of ",
                           call.element_bytes, " bytes: expected a whole number of elements");
  }
  if (call.operation == Operation::kAllToAll && call.bytes / call.element_bytes % ranks != 0) {
    return InvalidArgument("AllToAll of ", call.bytes / call.element_bytes,
                           " elements: expected a multiple of the ", ranks, " ranks");
  }
  return OkStatus();
}

Call ReductionCall(Operation operation, std::span<std::byte> values, DType dtype,
                   Reduction reduction, int root = 0) {
  return {.operation = operation,
          .bytes = static_cast<int64_t>(values.size()),
          .element_bytes = static_cast<int64_t>(SizeOf(dtype)),
          .dtype = dtype,
          .reduction = reduction,
          .root = root};
}

class SocketCommunicator final : public Communicator {
 public:
  SocketCommunicator(SocketCommunicatorOptions options, wire::UniqueFd wake)
      : costs_(options.costs),
        sockets_(options.rank, std::move(options.sockets), std::move(options.tasks),
                 std::move(wake), options.announce_after),
        limits_(static_cast<size_t>(sockets_.ranks())) {}
  ~SocketCommunicator() override { sockets_.Leave(); }

  int rank() const override { return sockets_.rank(); }
  int size() const override { return sockets_.ranks(); }
  std::string_view transport() const override { return "tcp"; }

  StatusOr<std::unique_ptr<Memory>> Allocate(size_t bytes) override {
    RETURN_IF_ERROR(
        Execute({.operation = Operation::kAllocate, .bytes = static_cast<int64_t>(bytes)}, {}));
    return std::make_unique<PlainMemory>(bytes);
  }
  Status AllReduce(std::span<std::byte> values, DType dtype, Reduction reduction) override {
    return Execute(ReductionCall(Operation::kAllReduce, values, dtype, reduction), values);
  }
  Status ReduceScatter(std::span<std::byte> values, DType dtype, Reduction reduction) override {
    return Execute(ReductionCall(Operation::kReduceScatter, values, dtype, reduction), values);
  }
  Status Reduce(std::span<std::byte> values, DType dtype, Reduction reduction, int root) override {
    return Execute(ReductionCall(Operation::kReduce, values, dtype, reduction, root), values);
  }
  Status AllGather(std::span<std::byte> values, size_t element_bytes) override {
    return Execute(Move(Operation::kAllGather, values, element_bytes), values);
  }
  Status AllToAll(std::span<std::byte> values, size_t element_bytes) override {
    return Execute(Move(Operation::kAllToAll, values, element_bytes), values);
  }
  Status Broadcast(std::span<std::byte> values, int root) override {
    Call call = Move(Operation::kBroadcast, values, 1);
    call.root = root;
    return Execute(call, values);
  }
  Status Barrier() override { return Execute({.operation = Operation::kBarrier}, {}); }
  Status AllGatherVariable(std::span<const std::byte> own, size_t most_bytes,
                           std::vector<std::byte>& all, std::vector<size_t>& sizes) override;

  void Abort(const Status& why) override { sockets_.Abort(why); }
  Waiting CurrentWait() const override { return sockets_.CurrentWait(); }

 private:
  static Call Move(Operation operation, std::span<std::byte> values, size_t element_bytes) {
    return {.operation = operation,
            .bytes = static_cast<int64_t>(values.size()),
            .element_bytes = static_cast<int64_t>(element_bytes)};
  }

  Status Execute(const Call& call, std::span<std::byte> values);
  StatusOr<PlanRun*> RunOf(const Call& call);
  Status CompareLimits() const;
  StatusOr<size_t> TotalOf(size_t most_bytes) const;

  const Costs costs_;
  SocketOperations sockets_;
  std::map<Call, PlanRun> runs_;
  PlanRun variable_;  // the plan of the last AllGatherVariable
  std::unique_ptr<Buffer> scratch_ = std::make_unique<Buffer>(0);
  // The sizes that a rank passes to AllGatherVariable.
  struct Limits {
    uint64_t bytes = 0;
    uint64_t most_bytes = 0;
  };
  std::vector<Limits> limits_;  // by rank
};

StatusOr<PlanRun*> SocketCommunicator::RunOf(const Call& call) {
  const auto found = runs_.find(call);
  if (found != runs_.end()) return &found->second;
  RETURN_IF_ERROR(CheckCall(call, size()));
  if (runs_.size() >= kMostPlans) runs_.clear();
  PlanRun run(MakePlan(call, rank(), size(), costs_));
  const auto scratch = static_cast<size_t>(run.plan().scratch_bytes);
  if (scratch > scratch_->size()) {
    scratch_ = std::make_unique<Buffer>(scratch, Buffer::Contents::kUndefined);
  }
  return &runs_.emplace(call, std::move(run)).first->second;
}

Status SocketCommunicator::Execute(const Call& call, std::span<std::byte> values) {
  RETURN_IF_ERROR(sockets_.Begin(call));
  auto run = RunOf(call);
  if (!run.ok()) return sockets_.End(run.status());
  (*run)->Start(values, {scratch_->data(), scratch_->size()});
  return sockets_.End(sockets_.Drive(**run));
}

Status SocketCommunicator::CompareLimits() const {
  const auto called = [this](int who) {
    return StrCat("rank ", who, " called AllGatherVariable(at most ",
                  limits_[static_cast<size_t>(who)].most_bytes, " bytes)");
  };
  for (int other = 0; other < size(); ++other) {
    if (limits_[static_cast<size_t>(other)].most_bytes ==
        limits_[static_cast<size_t>(rank())].most_bytes) {
      continue;
    }
    return InvalidArgument(called(std::min(rank(), other)), ", but ",
                           called(std::max(rank(), other)), "; all ranks must pass the same limit");
  }
  return OkStatus();
}

// Returns the sum of the sizes, or ResourceExhausted if it exceeds `most_bytes`. The sum must not
// overflow, because the sizes come from peers.
StatusOr<size_t> SocketCommunicator::TotalOf(size_t most_bytes) const {
  RETURN_IF_ERROR(CompareLimits());
  size_t total = 0;
  for (const Limits& limits : limits_) {
    if (limits.bytes > most_bytes - total) {
      return ResourceExhausted("AllGatherVariable: the ranks have more than ", most_bytes,
                               " bytes");
    }
    total += limits.bytes;
  }
  return total;
}

Status SocketCommunicator::AllGatherVariable(std::span<const std::byte> own, size_t most_bytes,
                                             std::vector<std::byte>& all,
                                             std::vector<size_t>& sizes) {
  limits_[static_cast<size_t>(rank())] = {own.size(), most_bytes};
  const auto words = std::as_writable_bytes(std::span(limits_));
  RETURN_IF_ERROR(Execute(Move(Operation::kAllGatherVariable, words, sizeof(Limits)), words));
  RETURN_IF_ERROR(sockets_.Begin({.operation = Operation::kAllGatherVariable}));
  auto total = TotalOf(most_bytes);
  if (!total.ok()) return sockets_.End(total.status());
  sizes.clear();
  for (const Limits& limits : limits_) sizes.push_back(static_cast<size_t>(limits.bytes));
  all.resize(*total);
  size_t begin = 0;
  for (int other = 0; other < rank(); ++other) begin += sizes[static_cast<size_t>(other)];
  std::ranges::copy(own, all.begin() + static_cast<ptrdiff_t>(begin));
  variable_.PlanVariableGather(sizes, rank());
  variable_.Start(all, {});
  return sockets_.End(sockets_.Drive(variable_));
}

}  // namespace

StatusOr<std::unique_ptr<Communicator>> MakeSocketCommunicator(SocketCommunicatorOptions options) {
  const auto ranks = static_cast<int>(options.sockets.size());
  ENFORCE(options.rank >= 0 && options.rank < ranks, "a rank of the group");
  ENFORCE(options.tasks.empty() || options.tasks.size() == options.sockets.size(),
          "one name per rank");
  for (int rank = 0; rank < ranks; ++rank) {
    ENFORCE(rank == options.rank || options.sockets[static_cast<size_t>(rank)].valid(),
            "one socket per other rank");
  }
  wire::UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoStatus(errno, "eventfd");
  return std::make_unique<SocketCommunicator>(std::move(options), std::move(wake));
}

}  // namespace tfjob::collectives
