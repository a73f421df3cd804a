#include "runtime/collectives/nccl/nccl_communicator.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/mutex.h"
#include "runtime/collectives/nccl/call_record.h"
#include "runtime/collectives/nccl/nccl_group.h"
#include "runtime/collectives/nccl/nccl_memory.h"
#include "runtime/collectives/nccl/operation_stream.h"
#include "runtime/collectives/plan/plan.h"

namespace tfjob::collectives::nccl {
namespace {

// The time between two polls. A GPU needs about as long to start an operation.
constexpr std::chrono::microseconds kPollEvery{50};
// How long a rank that leaves waits for NCCL to finish.
constexpr Duration kLeavePatience{500ms};

class NcclCommunicator final : public Communicator {
 public:
  explicit NcclCommunicator(NcclCommunicatorOptions options)
      : nccl_(*options.nccl),
        device_(std::move(options.device)),
        control_(std::move(options.control)),
        least_bytes_(options.least_bytes),
        memory_(device_),
        on_stream_(device_, options.patience),
        group_(nccl_),
        records_(static_cast<size_t>(size())) {}

  ~NcclCommunicator() override {
    device_->Enter();
    if (const Status awaited = AwaitDevice(); !awaited.ok()) Release();
    control_.reset();  // tells the other ranks that this one leaves
    const Duration deadline = RealClock().Monotonic() + kLeavePatience;
    group_.Leave([&]() -> Status {
      Sleep();
      return RealClock().Monotonic() < deadline ? OkStatus() : DeadlineExceeded("leaving");
    });
  }

  // Connects to the other ranks. Must be called before any operation.
  Status Connect(Duration patience, const Interrupt& interrupt);

  int rank() const override { return control_->rank(); }
  int size() const override { return control_->size(); }
  std::string_view transport() const override { return "nccl"; }

  StatusOr<std::unique_ptr<Memory>> Allocate(size_t bytes) override;
  Status AllReduce(std::span<std::byte> values, DType dtype, Reduction reduction) override;
  Status ReduceScatter(std::span<std::byte> values, DType dtype, Reduction reduction) override;
  Status AllGather(std::span<std::byte> values, size_t element_bytes) override;
  Status AllGatherVariable(std::span<const std::byte> own, size_t most_bytes,
                           std::vector<std::byte>& all, std::vector<size_t>& sizes) override;
  Status Broadcast(std::span<std::byte> values, int root) override;
  Status Reduce(std::span<std::byte> values, DType dtype, Reduction reduction, int root) override;
  Status AllToAll(std::span<std::byte> values, size_t element_bytes) override;
  Status Barrier() override {
    return Operate({.operation = Operation::kBarrier}, [this] { return control_->Barrier(); });
  }

  device::DeviceRuntime* device() const override { return device_.get(); }
  Status AllReduceOnDevice(const DeviceSum& sum) override;
  Status AwaitDevice() override;

  void Abort(const Status& why) override;
  Waiting CurrentWait() const override;

 private:
  // Submits an operation on the values at `values` to the stream.
  using Enqueue = std::function<NcclResult(std::byte* values)>;
  // The part of an operation's span that is copied back, and where it is on the GPU, in bytes from
  // the beginning of the values.
  struct Result {
    std::span<std::byte> values;
    size_t from = 0;
  };

  static Call ReductionCall(Operation operation, std::span<std::byte> values, DType dtype,
                            Reduction reduction, int root = 0) {
    return {.operation = operation,
            .bytes = static_cast<int64_t>(values.size()),
            .element_bytes = static_cast<int64_t>(SizeOf(dtype)),
            .dtype = dtype,
            .reduction = reduction,
            .root = root};
  }
  static Call MoveCall(Operation operation, std::span<std::byte> values, size_t element_bytes) {
    return {.operation = operation,
            .bytes = static_cast<int64_t>(values.size()),
            .element_bytes = static_cast<int64_t>(element_bytes)};
  }
  bool IsSmall(size_t bytes) const { return bytes < least_bytes_ || bytes == 0; }

  Status Operate(const Call& call, const std::function<Status()>& body);
  Status Begin(const Call& call);
  Status End(const Status& status);
  Status Meet(const Call& call, uint64_t own_bytes = 0, uint64_t most_bytes = 0);
  Status Submit(const Call& call, const std::function<NcclResult()>& enqueue);
  Status OnGpu(const Call& call, std::span<std::byte> values, size_t reserve,
               const Enqueue& enqueue, const Result& result);
  Status AwaitGpu(const Call& call);
  Status PauseIn(const Call& call);
  Status Failure() const;
  void Sleep();
  void Release();

  StatusOr<std::vector<size_t>> BeginsOf(size_t most_bytes) const;

  const NcclApi& nccl_;
  const std::shared_ptr<device::cuda::CudaRuntime> device_;
  std::unique_ptr<SocketCommunicator> control_;
  const size_t least_bytes_;
  NcclMemory memory_;
  OperationStream on_stream_;
  NcclGroup group_;
  std::vector<CallRecord> records_;  // by rank
  // The last sum on the device, if sums have been submitted that AwaitDevice has not waited for.
  std::optional<Call> pending_;

  mutable Mutex mutex_;
  CondVar changed_;
  Status failure_ ABSL_GUARDED_BY(mutex_);
  int64_t operation_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string_view name_ ABSL_GUARDED_BY(mutex_);
  bool on_gpu_ ABSL_GUARDED_BY(mutex_) = false;
};

Status NcclCommunicator::Connect(Duration patience, const Interrupt& interrupt) {
  struct Introduction {
    NcclUniqueId id;
    int version = 0;
  };
  std::vector<Introduction> ranks(static_cast<size_t>(size()));
  const Duration deadline = RealClock().Monotonic() + patience;
  const auto pause = [&]() -> Status {
    Sleep();
    RETURN_IF_ERROR(Ask(interrupt));
    RETURN_IF_ERROR(control_->CheckPeers());
    if (RealClock().Monotonic() < deadline) return OkStatus();
    return DeadlineExceeded("rank ", rank(), ": NCCL has not connected the ", size(),
                            " ranks within ", std::chrono::duration<double>(patience).count(),
                            " s");
  };
  const auto connect = [&]() -> Status {
    device_->Enter();
    RETURN_IF_ERROR(on_stream_.Open());
    Introduction& own = ranks[static_cast<size_t>(rank())];
    RETURN_IF_ERROR(ToStatus(nccl_, nccl_.GetVersion(&own.version), "ncclGetVersion"));
    if (rank() == 0)
      RETURN_IF_ERROR(ToStatus(nccl_, nccl_.GetUniqueId(&own.id), "ncclGetUniqueId"));
    RETURN_IF_ERROR(
        control_->AllGather(std::as_writable_bytes(std::span(ranks)), sizeof(Introduction)));
    for (int other = 0; other < size(); ++other) {
      const int version = ranks[static_cast<size_t>(other)].version;
      if (version == ranks[0].version) continue;
      return FailedPrecondition("rank 0 has NCCL ", NcclVersionText(ranks[0].version), ", rank ",
                                other, " has NCCL ", NcclVersionText(version),
                                "; install the same version in all tasks");
    }
    return group_.Connect(ranks[0].id, rank(), size(), pause);
  };
  return End(connect());
}

StatusOr<std::unique_ptr<Communicator::Memory>> NcclCommunicator::Allocate(size_t bytes) {
  std::unique_ptr<Memory> memory;
  const Call call{.operation = Operation::kAllocate, .bytes = static_cast<int64_t>(bytes)};
  RETURN_IF_ERROR(Operate(call, [&]() -> Status {
    RETURN_IF_ERROR(Meet(call));
    device_->Enter();
    ASSIGN_OR_RETURN(memory, memory_.Allocate(bytes));
    return OkStatus();
  }));
  return memory;
}

Status NcclCommunicator::AllReduce(std::span<std::byte> values, DType dtype, Reduction reduction) {
  const Call call = ReductionCall(Operation::kAllReduce, values, dtype, reduction);
  return Operate(call, [&]() -> Status {
    if (IsSmall(values.size())) return control_->AllReduce(values, dtype, reduction);
    RETURN_IF_ERROR(Meet(call));
    const auto count = static_cast<size_t>(call.bytes / call.element_bytes);
    const Enqueue enqueue = [&](std::byte* at) {
      return nccl_.AllReduce(at, at, count, TypeOf(dtype), OperatorOf(reduction), group_.handle(),
                             on_stream_.handle());
    };
    return OnGpu(call, values, values.size(), enqueue, {.values = values});
  });
}

// NCCL's slices have equal sizes. If this is impossible, every rank computes all slices.
Status NcclCommunicator::ReduceScatter(std::span<std::byte> values, DType dtype,
                                       Reduction reduction) {
  const Call call = ReductionCall(Operation::kReduceScatter, values, dtype, reduction);
  return Operate(call, [&]() -> Status {
    if (IsSmall(values.size())) return control_->ReduceScatter(values, dtype, reduction);
    RETURN_IF_ERROR(Meet(call));
    const int64_t count = call.bytes / call.element_bytes;
    const Slice slice = SliceOf(count, rank(), size());
    const auto begin = static_cast<size_t>(slice.begin * call.element_bytes);
    const auto bytes = static_cast<size_t>(slice.count * call.element_bytes);
    const Enqueue enqueue = [&](std::byte* at) {
      const auto type = TypeOf(dtype);
      const auto combine = OperatorOf(reduction);
      return count % size() == 0
                 ? nccl_.ReduceScatter(at, at + begin, static_cast<size_t>(slice.count), type,
                                       combine, group_.handle(), on_stream_.handle())
                 : nccl_.AllReduce(at, at, static_cast<size_t>(count), type, combine,
                                   group_.handle(), on_stream_.handle());
    };
    return OnGpu(call, values, values.size(), enqueue,
                 {.values = values.subspan(begin, bytes), .from = begin});
  });
}

Status NcclCommunicator::Reduce(std::span<std::byte> values, DType dtype, Reduction reduction,
                                int root) {
  const Call call = ReductionCall(Operation::kReduce, values, dtype, reduction, root);
  return Operate(call, [&]() -> Status {
    if (IsSmall(values.size())) return control_->Reduce(values, dtype, reduction, root);
    RETURN_IF_ERROR(Meet(call));
    const auto count = static_cast<size_t>(call.bytes / call.element_bytes);
    const Enqueue enqueue = [&](std::byte* at) {
      return nccl_.AllReduce(at, at, count, TypeOf(dtype), OperatorOf(reduction), group_.handle(),
                             on_stream_.handle());
    };
    return OnGpu(call, values, values.size(), enqueue,
                 {.values = rank() == root ? values : values.first(0)});
  });
}

Status NcclCommunicator::AllGather(std::span<std::byte> values, size_t element_bytes) {
  const Call call = MoveCall(Operation::kAllGather, values, element_bytes);
  return Operate(call, [&]() -> Status {
    if (IsSmall(values.size())) return control_->AllGather(values, element_bytes);
    RETURN_IF_ERROR(Meet(call));
    const int64_t count = call.bytes / call.element_bytes;
    std::vector<size_t> begins{0};
    for (int other = 0; other < size(); ++other) {
      begins.push_back(begins.back() +
                       static_cast<size_t>(SliceOf(count, other, size()).count) * element_bytes);
    }
    const Enqueue enqueue = [&](std::byte* at) {
      if (count % size() != 0) return group_.Gather(at, begins, on_stream_.handle());
      return nccl_.AllGather(at + begins[static_cast<size_t>(rank())], at, begins[1], kNcclUint8,
                             group_.handle(), on_stream_.handle());
    };
    return OnGpu(call, values, values.size(), enqueue, {.values = values});
  });
}

Status NcclCommunicator::AllGatherVariable(std::span<const std::byte> own, size_t most_bytes,
                                           std::vector<std::byte>& all,
                                           std::vector<size_t>& sizes) {
  const Call call{.operation = Operation::kAllGatherVariable};
  return Operate(call, [&]() -> Status {
    RETURN_IF_ERROR(Meet(call, own.size(), most_bytes));
    ASSIGN_OR_RETURN(const std::vector<size_t> begins, BeginsOf(most_bytes));
    if (IsSmall(begins.back())) return control_->AllGatherVariable(own, most_bytes, all, sizes);
    sizes.clear();
    for (const CallRecord& record : records_) {
      sizes.push_back(static_cast<size_t>(record.own_bytes));
    }
    all.resize(begins.back());
    std::ranges::copy(own,
                      all.begin() + static_cast<ptrdiff_t>(begins[static_cast<size_t>(rank())]));
    const Enqueue enqueue = [&](std::byte* at) {
      return group_.Gather(at, begins, on_stream_.handle());
    };
    return OnGpu(call, all, all.size(), enqueue, {.values = all});
  });
}

Status NcclCommunicator::Broadcast(std::span<std::byte> values, int root) {
  Call call = MoveCall(Operation::kBroadcast, values, 1);
  call.root = root;
  return Operate(call, [&]() -> Status {
    if (IsSmall(values.size())) return control_->Broadcast(values, root);
    RETURN_IF_ERROR(Meet(call));
    const Enqueue enqueue = [&](std::byte* at) {
      return nccl_.Broadcast(at, at, values.size(), kNcclUint8, root, group_.handle(),
                             on_stream_.handle());
    };
    return OnGpu(call, values, values.size(), enqueue, {.values = values});
  });
}

// The slices arrive in a second span, which follows the values.
Status NcclCommunicator::AllToAll(std::span<std::byte> values, size_t element_bytes) {
  const Call call = MoveCall(Operation::kAllToAll, values, element_bytes);
  return Operate(call, [&]() -> Status {
    if (IsSmall(values.size())) return control_->AllToAll(values, element_bytes);
    RETURN_IF_ERROR(Meet(call));
    const size_t slice = values.size() / static_cast<size_t>(size());
    const Enqueue enqueue = [&](std::byte* at) {
      return group_.Swap(at, at + values.size(), slice, size(), on_stream_.handle());
    };
    return OnGpu(call, values, 2 * values.size(), enqueue,
                 {.values = values, .from = values.size()});
  });
}

// Returns where each rank's bytes begin and, at the end, the total. The sum must not overflow,
// because the sizes come from peers.
StatusOr<std::vector<size_t>> NcclCommunicator::BeginsOf(size_t most_bytes) const {
  std::vector<size_t> begins{0};
  for (const CallRecord& record : records_) {
    if (record.own_bytes > most_bytes - begins.back()) {
      return ResourceExhausted("AllGatherVariable: the ranks have more than ", most_bytes,
                               " bytes");
    }
    begins.push_back(begins.back() + static_cast<size_t>(record.own_bytes));
  }
  return begins;
}

Status NcclCommunicator::Operate(const Call& call, const std::function<Status()>& body) {
  RETURN_IF_ERROR(Begin(call));
  const Status checked = CheckCall(call, size());
  return End(checked.ok() ? body() : checked);
}

Status NcclCommunicator::Begin(const Call& call) {
  MutexLock lock(mutex_);
  if (!failure_.ok()) return failure_;
  ++operation_;
  name_ = Name(call.operation);
  return OkStatus();
}

// Keeps the first error. After an error, ends NCCL's operations and tells the other ranks.
Status NcclCommunicator::End(const Status& status) {
  Status first;
  {
    MutexLock lock(mutex_);
    on_gpu_ = false;
    if (failure_.ok()) failure_ = status;
    first = failure_;
  }
  if (first.ok()) return first;
  control_->Abort(first);
  Release();
  return first;
}

// Makes the GPU stop using the memory of operations that have failed.
void NcclCommunicator::Release() {
  device_->Enter();
  group_.Abort();
  on_stream_.Drain([this] {
    MutexLock lock(mutex_);
    (void)changed_.WaitFor(mutex_, kPollEvery);
  });
}

Status NcclCommunicator::Meet(const Call& call, uint64_t own_bytes, uint64_t most_bytes) {
  const auto own = static_cast<size_t>(rank());
  records_[own] = CallRecord::Of(call, own_bytes, most_bytes);
  RETURN_IF_ERROR(
      control_->AllGather(std::as_writable_bytes(std::span(records_)), sizeof(CallRecord)));
  for (size_t other = 0; other < records_.size(); ++other) {
    if (records_[other].Matches(records_[own])) continue;
    const size_t lower = std::min(own, other), higher = std::max(own, other);
    return InvalidArgument("rank ", lower, " called ", records_[lower].Text(), ", but rank ",
                           higher, " called ", records_[higher].Text(),
                           "; all ranks must call the same operations in the same order");
  }
  return OkStatus();
}

// Records when the GPU starts the operations that are in progress, and when it has completed them.
Status NcclCommunicator::Submit(const Call& call, const std::function<NcclResult()>& enqueue) {
  on_stream_.Begin(/*first=*/!pending_);
  {
    MutexLock lock(mutex_);
    on_gpu_ = true;
  }
  RETURN_IF_ERROR(
      group_.Finish(enqueue(), StrCat("NCCL in ", ToString(call)), [&] { return PauseIn(call); }));
  on_stream_.End();
  return OkStatus();
}

Status NcclCommunicator::AllReduceOnDevice(const DeviceSum& sum) {
  const Call call = ReductionCall(Operation::kAllReduce, sum.values, sum.dtype, Reduction::kSum);
  return Operate(call, [&]() -> Status {
    RETURN_IF_ERROR(Meet(call));
    device_->Enter();
    for (const DeviceSum::Part& part : sum.parts)
      device_->Copy(sum.values.data() + part.begin, part.from, part.bytes, on_stream_.stream());
    const auto count = static_cast<size_t>(call.bytes / call.element_bytes);
    std::byte* const at = sum.values.data();
    RETURN_IF_ERROR(Submit(call, [&] {
      return nccl_.AllReduce(at, at, count, TypeOf(sum.dtype), kNcclSum, group_.handle(),
                             on_stream_.handle());
    }));
    pending_ = call;
    if (sum.host_copy.empty()) return OkStatus();
    device_->Copy(sum.host_copy.data(), at, sum.host_copy.size(), on_stream_.stream());
    on_stream_.End();
    return OkStatus();
  });
}

Status NcclCommunicator::AwaitDevice() {
  if (!pending_) return Failure();
  {
    MutexLock lock(mutex_);
    on_gpu_ = true;
  }
  Status status = Failure();
  if (status.ok()) status = AwaitGpu(*pending_);
  pending_.reset();
  return End(status);
}

Status NcclCommunicator::OnGpu(const Call& call, std::span<std::byte> values, size_t reserve,
                               const Enqueue& enqueue, const Result& result) {
  device_->Enter();
  ASSIGN_OR_RETURN(std::byte* const there, memory_.CopyIn(values, reserve, on_stream_.stream()));
  RETURN_IF_ERROR(Submit(call, [&] { return enqueue(there); }));
  RETURN_IF_ERROR(AwaitGpu(call));
  // The result is copied only now, so that an operation that was aborted never writes to the span.
  RETURN_IF_ERROR(memory_.CopyOut(result.values, there + result.from, on_stream_.stream()));
  on_stream_.End();
  RETURN_IF_ERROR(on_stream_.Synchronize());
  memory_.TakeOut(result.values);
  return OkStatus();
}

Status NcclCommunicator::AwaitGpu(const Call& call) {
  const std::string what = StrCat("NCCL in ", ToString(call));
  while (true) {
    ASSIGN_OR_RETURN(const bool done, on_stream_.HasRun());
    if (done) return OkStatus();
    RETURN_IF_ERROR(group_.Check(what));
    RETURN_IF_ERROR(PauseIn(call));
  }
}

// Pauses between two polls of an operation in progress.
Status NcclCommunicator::PauseIn(const Call& call) {
  Sleep();
  RETURN_IF_ERROR(Failure());
  RETURN_IF_ERROR(control_->CheckPeers());
  return on_stream_.CheckTime(rank(), call);
}

Status NcclCommunicator::Failure() const {
  MutexLock lock(mutex_);
  return failure_;
}

void NcclCommunicator::Sleep() {
  MutexLock lock(mutex_);
  if (failure_.ok()) (void)changed_.WaitFor(mutex_, kPollEvery);
}

void NcclCommunicator::Abort(const Status& why) {
  ENFORCE(!why.ok(), "an abort needs a reason");
  {
    MutexLock lock(mutex_);
    if (!failure_.ok()) return;
    failure_ = why;
    changed_.NotifyAll();
  }
  control_->Abort(why);
}

Waiting NcclCommunicator::CurrentWait() const {
  Waiting waiting = control_->CurrentWait();
  MutexLock lock(mutex_);
  waiting.operation = operation_;
  waiting.name = name_;
  if (on_gpu_) waiting.on = -1;
  return waiting;
}

}  // namespace

StatusOr<std::unique_ptr<Communicator>> MakeNcclCommunicator(NcclCommunicatorOptions options) {
  ENFORCE(options.nccl != nullptr && options.device != nullptr && options.control != nullptr,
          "a library, a GPU and connections to the other ranks");
  const Interrupt interrupt = std::move(options.interrupt);
  const Duration patience = options.connect_patience;
  auto communicator = std::make_unique<NcclCommunicator>(std::move(options));
  RETURN_IF_ERROR(communicator->Connect(patience, interrupt));
  return std::unique_ptr<Communicator>(std::move(communicator));
}

}  // namespace tfjob::collectives::nccl
