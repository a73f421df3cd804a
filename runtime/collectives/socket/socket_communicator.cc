#include "runtime/collectives/socket/socket_communicator.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/collectives/socket/machine_memory.h"
#include "runtime/collectives/socket/socket_operation.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::collectives {
namespace {

// The number of plans to keep for reuse, because a program calls the same operations in every step.
constexpr size_t kMostPlans = 1024;

Call ReductionCall(Operation operation, std::span<std::byte> values, DType dtype,
                   Reduction reduction, int root = 0) {
  return {.operation = operation,
          .bytes = static_cast<int64_t>(values.size()),
          .element_bytes = static_cast<int64_t>(SizeOf(dtype)),
          .dtype = dtype,
          .reduction = reduction,
          .root = root};
}

class PlanningCommunicator final : public SocketCommunicator {
 public:
  PlanningCommunicator(SocketCommunicatorOptions options, wire::UniqueFd wake)
      : costs_(options.costs),
        all_reduce_(options.all_reduce),
        order_(options.order),
        machine_(std::move(options.shared)),
        sockets_(options.rank, std::move(options.sockets), std::move(options.tasks),
                 std::move(wake), options.announce_after),
        limits_(static_cast<size_t>(sockets_.ranks())) {
    sockets_.set_learn([this](PlanRun& run, int rank) { return machine_.Learn(run, rank); });
  }
  ~PlanningCommunicator() override { sockets_.Leave(); }

  int rank() const override { return sockets_.rank(); }
  int size() const override { return sockets_.ranks(); }
  std::string_view transport() const override {
    return machine_.hosts().HasTwoLevels() ? "shared memory and tcp" : "tcp";
  }

  StatusOr<std::unique_ptr<Memory>> Allocate(size_t bytes) override;
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
  Status CheckPeers() override { return sockets_.CheckPeers(); }

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
  const std::optional<Algorithm> all_reduce_;
  const SumOrder order_;
  MachineMemory machine_;
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

StatusOr<PlanRun*> PlanningCommunicator::RunOf(const Call& call) {
  const auto found = runs_.find(call);
  if (found != runs_.end()) return &found->second;
  RETURN_IF_ERROR(CheckCall(call, size()));
  if (runs_.size() >= kMostPlans) runs_.clear();
  const Hosts& hosts = machine_.hosts();
  Algorithm algorithm = ChooseAlgorithm(call, size(), costs_, hosts, order_);
  if (all_reduce_ && call.operation == Operation::kAllReduce) {
    algorithm = *all_reduce_;
    RETURN_IF_ERROR(CheckAlgorithm(call, size(), algorithm, hosts));
  }
  PlanRun run(MakePlan(call, rank(), size(), costs_, algorithm, hosts));
  const auto scratch = static_cast<size_t>(run.plan().scratch_bytes);
  if (scratch > scratch_->size()) {
    scratch_ = std::make_unique<Buffer>(scratch, Buffer::Contents::kUndefined);
  }
  return &runs_.emplace(call, std::move(run)).first->second;
}

Status PlanningCommunicator::Execute(const Call& call, std::span<std::byte> values) {
  RETURN_IF_ERROR(sockets_.Begin(call));
  auto run = RunOf(call);
  if (!run.ok()) return sockets_.End(run.status());
  const std::span<std::byte> scratch{scratch_->data(), scratch_->size()};
  if ((*run)->plan().algorithm == Algorithm::kTwoLevels) {
    machine_.Start(**run, values, scratch);
  } else {
    (*run)->Start(values, scratch);
  }
  return sockets_.End(sockets_.Drive(**run));
}

StatusOr<std::unique_ptr<Communicator::Memory>> PlanningCommunicator::Allocate(size_t bytes) {
  const Call call{.operation = Operation::kAllocate, .bytes = static_cast<int64_t>(bytes)};
  RETURN_IF_ERROR(sockets_.Begin(call));
  auto run = RunOf(call);
  if (!run.ok()) return sockets_.End(run.status());
  if (Status status = machine_.Offer(bytes); !status.ok()) return sockets_.End(status);
  (*run)->Start({}, {scratch_->data(), scratch_->size()});
  if (Status status = sockets_.Drive(**run); !status.ok()) return sockets_.End(status);
  StatusOr<std::unique_ptr<Memory>> memory = machine_.Take(bytes);
  RETURN_IF_ERROR(sockets_.End(memory.status()));
  return memory;
}

Status PlanningCommunicator::CompareLimits() const {
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
StatusOr<size_t> PlanningCommunicator::TotalOf(size_t most_bytes) const {
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

Status PlanningCommunicator::AllGatherVariable(std::span<const std::byte> own, size_t most_bytes,
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

StatusOr<std::unique_ptr<SocketCommunicator>> MakeSocketCommunicator(
    SocketCommunicatorOptions options) {
  const auto ranks = static_cast<int>(options.sockets.size());
  ENFORCE(options.rank >= 0 && options.rank < ranks, "a rank of the group");
  ENFORCE(options.tasks.empty() || options.tasks.size() == options.sockets.size(),
          "one name per rank");
  for (int rank = 0; rank < ranks; ++rank) {
    ENFORCE(rank == options.rank || options.sockets[static_cast<size_t>(rank)].valid(),
            "one socket per other rank");
  }
  const SharedLevel& shared = options.shared;
  ENFORCE(!shared.hosts.known() || shared.hosts.ranks() == ranks, "the machines of all ranks");
  ENFORCE(!shared.space ||
              shared.window->bytes().size() >= 2 * static_cast<size_t>(options.costs.chunk_bytes),
          "a window of two chunks");
  wire::UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return ErrnoStatus(errno, "eventfd");
  return std::make_unique<PlanningCommunicator>(std::move(options), std::move(wake));
}

}  // namespace tfjob::collectives
