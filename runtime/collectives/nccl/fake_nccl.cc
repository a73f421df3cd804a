#include "runtime/collectives/nccl/fake_nccl.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/reduction.h"
#include "runtime/device/cuda/fake_driver.h"

namespace tfjob::collectives::nccl {
namespace {

using Storage = std::vector<std::byte>;

enum class FakeKind { kAllReduce, kReduceScatter, kAllGather, kBroadcast, kSend, kReceive };

// One call of a collective function.
struct FakeCall {
  FakeKind kind;
  const void* send = nullptr;
  void* receive = nullptr;
  size_t count = 0;  // elements, as in NCCL's functions
  NcclType type = kNcclUint8;
  NcclOperator combine = kNcclSum;
  int peer = 0;  // the root of a broadcast
};

// An operation of all ranks: a single call, or the calls of a group.
struct FakeOperation {
  explicit FakeOperation(int ranks)
      : calls(static_cast<size_t>(ranks)), staged(static_cast<size_t>(ranks)) {}
  Mutex mutex;
  std::vector<std::vector<FakeCall>> calls ABSL_GUARDED_BY(mutex);  // by rank
  // Copies of the values that the ranks send, by rank and call.
  std::vector<std::vector<Storage>> staged ABSL_GUARDED_BY(mutex);
  // The number of ranks whose streams have reached the operation, and the number of ranks on which
  // it has run.
  int reached ABSL_GUARDED_BY(mutex) = 0, done ABSL_GUARDED_BY(mutex) = 0;
};

// The ranks with one unique id.
struct FakeClique {
  explicit FakeClique(int ranks) : ranks(ranks) {}
  const int ranks;
  int joined = 0, finalized = 0;
  std::vector<std::shared_ptr<FakeOperation>> operations;
};

struct FakeCommunicator {
  std::shared_ptr<FakeClique> clique;
  int rank = 0;
  int64_t submitted = 0;
  std::shared_ptr<std::atomic<int>> running = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<std::atomic<bool>> aborted = std::make_shared<std::atomic<bool>>(false);
  // How often the current call will still be reported as in progress, and whether it waits for the
  // other ranks to join or to finalize.
  int polls = 0;
  bool joining = false, finalizing = false;
  bool finished = true;  // no call is in progress
  NcclFault fault = NcclFault::kNone;
};

struct FakeLibrary {
  FakeNcclOptions options;
  uint64_t random = 1;
  std::map<std::string, std::shared_ptr<FakeClique>> cliques;  // by unique id
  std::map<NcclHandle, std::unique_ptr<FakeCommunicator>> communicators;
  int ids = 0, asked = 0, aborts = 0;
  int64_t operations = 0;
};

Mutex library_mutex;
FakeLibrary& Library() {
  static FakeLibrary& library = *new FakeLibrary();
  return library;
}

// The group of the calling thread.
struct FakeGroup {
  int depth = 0;
  NcclHandle handle = nullptr;
  NcclStream stream = nullptr;
  std::vector<FakeCall> calls;
};
thread_local FakeGroup group;

[[noreturn]] void NcclDefect(const std::string& what) {
  std::fprintf(stderr, "fake NCCL: %s\n", what.c_str());
  std::abort();
}

size_t SizeOfType(NcclType type) {
  switch (type) {
    case kNcclUint8:
      return 1;
    case kNcclFloat16:
    case kNcclBFloat16:
      return 2;
    case kNcclInt32:
    case kNcclFloat32:
      return 4;
    default:
      return 8;
  }
}

DType FromNccl(NcclType type) {
  switch (type) {
    case kNcclFloat32:
      return DType::kFloat32;
    case kNcclFloat64:
      return DType::kFloat64;
    case kNcclBFloat16:
      return DType::kBFloat16;
    case kNcclFloat16:
      return DType::kFloat16;
    case kNcclInt32:
      return DType::kInt32;
    default:
      return DType::kInt64;
  }
}

Reduction FromNcclOperator(NcclOperator combine) {
  switch (combine) {
    case kNcclMaximum:
      return Reduction::kMaximum;
    case kNcclMinimum:
      return Reduction::kMinimum;
    case kNcclAverage:
      return Reduction::kMean;
    default:
      return Reduction::kSum;
  }
}

// Return the number of bytes that a rank sends or receives in a call.
size_t SentBytes(const FakeCall& call, int ranks) {
  const size_t bytes = call.count * SizeOfType(call.type);
  return call.kind == FakeKind::kReduceScatter ? bytes * static_cast<size_t>(ranks) : bytes;
}
size_t ReceivedBytes(const FakeCall& call, int ranks) {
  const size_t bytes = call.count * SizeOfType(call.type);
  return call.kind == FakeKind::kAllGather ? bytes * static_cast<size_t>(ranks) : bytes;
}

bool Alike(const FakeCall& a, const FakeCall& b) {
  return a.kind == b.kind && a.count == b.count && a.type == b.type && a.combine == b.combine &&
         a.peer == b.peer;
}
bool IsPointToPoint(const FakeCall& call) {
  return call.kind == FakeKind::kSend || call.kind == FakeKind::kReceive;
}

// Aborts if the calls of two ranks do not belong together. Sends and receives are compared later,
// when they are matched.
void CheckAlike(const std::vector<FakeCall>& a, const std::vector<FakeCall>& b) {
  bool alike = a.size() == b.size();
  for (size_t i = 0; alike && i < a.size(); ++i) {
    alike = IsPointToPoint(a[i]) ? IsPointToPoint(b[i]) : Alike(a[i], b[i]);
  }
  if (!alike) NcclDefect("two ranks called different operations");
}

// Returns what rank `from` sends to `to` in its n-th send to that rank.
const Storage& SentTo(const FakeOperation& operation, int from, int to, int n)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(operation.mutex) {
  const auto& calls = operation.calls[static_cast<size_t>(from)];
  for (size_t i = 0; i < calls.size(); ++i) {
    if (calls[i].kind != FakeKind::kSend || calls[i].peer != to || n-- > 0) continue;
    return operation.staged[static_cast<size_t>(from)][i];
  }
  NcclDefect("a receive without a send");
}

// Returns what every rank sends in call `index`, by rank.
std::vector<std::span<const std::byte>> SentIn(const FakeOperation& operation, size_t index)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(operation.mutex) {
  std::vector<std::span<const std::byte>> sent;
  for (const std::vector<Storage>& calls : operation.staged) sent.push_back(calls[index]);
  return sent;
}

// Writes the result of call `index` of a rank to `target`.
void Complete(const FakeOperation& operation, int rank, size_t index, std::span<std::byte> target)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(operation.mutex) {
  const auto& calls = operation.calls[static_cast<size_t>(rank)];
  const FakeCall& call = calls[index];
  switch (call.kind) {
    case FakeKind::kAllReduce:
    case FakeKind::kReduceScatter: {
      const size_t begin =
          call.kind == FakeKind::kAllReduce ? 0 : static_cast<size_t>(rank) * target.size();
      std::vector<std::span<const std::byte>> values = SentIn(operation, index);
      for (auto& value : values) value = value.subspan(begin, target.size());
      return CombineAll(FromNccl(call.type), FromNcclOperator(call.combine), target, values);
    }
    case FakeKind::kAllGather: {
      auto to = target.begin();
      for (const auto& sent : SentIn(operation, index)) to = std::ranges::copy(sent, to).out;
      return;
    }
    case FakeKind::kBroadcast:
      std::ranges::copy(SentIn(operation, index)[static_cast<size_t>(call.peer)], target.begin());
      return;
    case FakeKind::kReceive: {
      int earlier = 0;
      for (size_t i = 0; i < index; ++i) {
        earlier += calls[i].kind == FakeKind::kReceive && calls[i].peer == call.peer ? 1 : 0;
      }
      const Storage& sent = SentTo(operation, call.peer, rank, earlier);
      if (sent.size() != target.size()) NcclDefect("a receive of another size than its send");
      std::ranges::copy(sent, target.begin());
      return;
    }
    case FakeKind::kSend:
      return;
  }
}

int DrawPolls(FakeLibrary& library) {
  library.random = library.random * 6364136223846793005 + 1442695040888963407;
  return static_cast<int>((library.random >> 33) %
                          static_cast<uint64_t>(library.options.most_polls + 1));
}

FakeCommunicator& Find(FakeLibrary& library, NcclHandle handle) {
  const auto found = library.communicators.find(handle);
  if (found == library.communicators.end()) NcclDefect("a communicator that does not exist");
  return *found->second;
}

// Returns the state of the call in progress.
NcclResult StateOf(FakeCommunicator& own) {
  if (own.fault == NcclFault::kRemoteError) return kNcclRemoteError;
  if (own.fault == NcclFault::kSlowCall) return kNcclInProgress;
  if (own.joining && own.clique->joined < own.clique->ranks) return kNcclInProgress;
  if (own.finalizing && own.clique->finalized < own.clique->ranks) return kNcclInProgress;
  if (own.polls > 0) return --own.polls, kNcclInProgress;
  own.joining = own.finalizing = false;
  if (own.finished && own.fault == NcclFault::kLostRank) return kNcclRemoteError;
  own.finished = true;
  return kNcclSuccess;
}

// Returns the communicator for a call that must not overlap with another one.
FakeCommunicator& Idle(FakeLibrary& library, NcclHandle handle) {
  FakeCommunicator& own = Find(library, handle);
  const bool busy =
      own.polls > 0 || own.joining || own.finalizing || own.fault == NcclFault::kSlowCall;
  if (busy) NcclDefect("a call while another one is in progress");
  return own;
}

// Submits the two halves of an operation to the rank's stream: one that reads what the rank sends,
// and one that waits for all ranks and writes what the rank receives.
void SubmitHalves(const std::shared_ptr<FakeOperation>& operation, const FakeCommunicator& own,
                  const std::vector<FakeCall>& calls, NcclStream stream) {
  const int rank = own.rank, ranks = own.clique->ranks;
  const bool hangs = own.fault == NcclFault::kHang || own.fault == NcclFault::kLostRank;
  device::Operation first{.name = "NCCL's first half"}, second{.name = "NCCL's second half"};
  std::vector<size_t> receivers;
  for (size_t i = 0; i < calls.size(); ++i) {
    const bool sends = calls[i].send != nullptr && calls[i].kind != FakeKind::kReceive;
    first.accesses.push_back({calls[i].send, sends ? SentBytes(calls[i], ranks) : 0, false});
    if (!sends) first.accesses.pop_back();
    if (calls[i].kind == FakeKind::kSend) continue;
    receivers.push_back(i);
    second.accesses.push_back({calls[i].receive, ReceivedBytes(calls[i], ranks), true});
  }
  first.run = [operation, rank, calls, ranks](std::span<void* const> storage) {
    MutexLock lock(operation->mutex);
    size_t next = 0;
    for (const FakeCall& call : calls) {
      Storage& staged = operation->staged[static_cast<size_t>(rank)].emplace_back();
      if (call.kind == FakeKind::kReceive) continue;
      const auto* const from = static_cast<const std::byte*>(storage[next++]);
      staged.assign(from, from + SentBytes(call, ranks));
    }
    ++operation->reached;
  };
  const auto aborted = own.aborted;
  const auto running = own.running;
  ++*running;
  second.ready = [operation, aborted, ranks, hangs] {
    if (*aborted) return true;
    MutexLock lock(operation->mutex);
    return !hangs && operation->reached == ranks;
  };
  second.run = [operation, aborted, running, rank, ranks, calls,
                receivers](std::span<void* const> storage) {
    --*running;
    if (*aborted) return;
    MutexLock lock(operation->mutex);
    for (size_t i = 0; i < receivers.size(); ++i) {
      Complete(*operation, rank, receivers[i],
               {static_cast<std::byte*>(storage[i]), ReceivedBytes(calls[receivers[i]], ranks)});
    }
    if (++operation->done == ranks) operation->staged.clear();
  };
  (void)device::cuda::SubmitToFakeDriver(std::move(first), stream);
  (void)device::cuda::SubmitToFakeDriver(std::move(second), stream);
}

NcclResult Launch(NcclHandle handle, std::vector<FakeCall> calls, NcclStream stream) {
  std::shared_ptr<FakeOperation> operation;
  FakeCommunicator* own = nullptr;
  {
    MutexLock lock(library_mutex);
    FakeLibrary& library = Library();
    own = &Idle(library, handle);
    ++library.operations;
    const NcclFault fault = library.options.fault(own->rank, ++own->submitted);
    if (own->fault != NcclFault::kLostRank) own->fault = fault;  // a loss stays reported
    own->polls = DrawPolls(library);
    own->finished = own->polls == 0 && own->fault != NcclFault::kSlowCall;
    if (own->fault == NcclFault::kRemoteError) return kNcclInProgress;
    auto& operations = own->clique->operations;
    const auto index = static_cast<size_t>(own->submitted) - 1;
    if (operations.size() <= index) {
      operations.push_back(std::make_shared<FakeOperation>(own->clique->ranks));
    }
    operation = operations[index];
  }
  {
    MutexLock lock(operation->mutex);
    for (const std::vector<FakeCall>& others : operation->calls) {
      if (!others.empty()) CheckAlike(others, calls);
    }
    operation->calls[static_cast<size_t>(own->rank)] = calls;
  }
  // This does not hold the lock, because the fake device evaluates the conditions of operations
  // while it holds its own.
  SubmitHalves(operation, *own, calls, stream);
  return own->finished ? kNcclSuccess : kNcclInProgress;
}

NcclResult Add(NcclHandle handle, NcclStream stream, const FakeCall& call) {
  if (group.depth == 0) return Launch(handle, {call}, stream);
  group.handle = handle;
  group.stream = stream;
  group.calls.push_back(call);
  return kNcclSuccess;
}

NcclResult FakeGetVersion(int* version) {
  MutexLock lock(library_mutex);
  FakeLibrary& library = Library();
  *version = library.options.version(library.asked++);
  return kNcclSuccess;
}

const char* FakeGetErrorString(NcclResult result) {
  switch (result) {
    case kNcclRemoteError:
      return "remote process exited or there was a network error";
    case kNcclInvalidArgument:
      return "invalid argument";
    default:
      return "another error";
  }
}

NcclResult FakeGetUniqueId(NcclUniqueId* id) {
  MutexLock lock(library_mutex);
  std::snprintf(id->bytes.data(), id->bytes.size(), "clique %d", ++Library().ids);
  return kNcclSuccess;
}

NcclResult FakeCommInitRankConfig(NcclHandle* handle, int ranks, NcclUniqueId id, int rank,
                                  NcclConfig* config) {
  const NcclConfig expected;
  if (config->magic != expected.magic || config->size != sizeof(NcclConfig) ||
      config->blocking != 0 || rank < 0 || rank >= ranks) {
    return kNcclInvalidArgument;
  }
  MutexLock lock(library_mutex);
  FakeLibrary& library = Library();
  auto& clique = library.cliques[std::string(id.bytes.data(), id.bytes.size())];
  if (clique == nullptr) clique = std::make_shared<FakeClique>(ranks);
  if (clique->ranks != ranks) return kNcclInvalidArgument;
  auto own = std::make_unique<FakeCommunicator>();
  own->clique = clique;
  own->rank = rank;
  own->fault = library.options.fault(rank, 0);
  own->joining = true;
  own->polls = DrawPolls(library);
  ++clique->joined;
  *handle = reinterpret_cast<NcclHandle>(own.get());
  library.communicators[*handle] = std::move(own);
  return kNcclInProgress;
}

NcclResult FakeCommGetAsyncError(NcclHandle handle, NcclResult* result) {
  MutexLock lock(library_mutex);
  *result = StateOf(Find(Library(), handle));
  return kNcclSuccess;
}

NcclResult FakeCommFinalize(NcclHandle handle) {
  MutexLock lock(library_mutex);
  FakeCommunicator& own = Idle(Library(), handle);
  own.finalizing = true;
  own.polls = DrawPolls(Library());
  ++own.clique->finalized;
  return kNcclInProgress;
}

NcclResult FakeCommDestroy(NcclHandle handle) {
  MutexLock lock(library_mutex);
  const FakeCommunicator& own = Idle(Library(), handle);
  if (*own.running > 0) NcclDefect("a communicator is destroyed before its operations have run");
  Library().communicators.erase(handle);
  return kNcclSuccess;
}

NcclResult FakeCommAbort(NcclHandle handle) {
  MutexLock lock(library_mutex);
  *Find(Library(), handle).aborted = true;
  Library().communicators.erase(handle);
  ++Library().aborts;
  return kNcclSuccess;
}

NcclResult FakeGroupStart() {
  ++group.depth;
  return kNcclSuccess;
}

NcclResult FakeGroupEnd() {
  if (--group.depth > 0 || group.calls.empty()) return kNcclSuccess;
  return Launch(group.handle, std::exchange(group.calls, {}), group.stream);
}

NcclResult FakeAllReduce(const void* send, void* receive, size_t count, NcclType type,
                         NcclOperator combine, NcclHandle handle, NcclStream stream) {
  return Add(handle, stream, {FakeKind::kAllReduce, send, receive, count, type, combine, 0});
}

NcclResult FakeReduceScatter(const void* send, void* receive, size_t count, NcclType type,
                             NcclOperator combine, NcclHandle handle, NcclStream stream) {
  return Add(handle, stream, {FakeKind::kReduceScatter, send, receive, count, type, combine, 0});
}

NcclResult FakeAllGather(const void* send, void* receive, size_t count, NcclType type,
                         NcclHandle handle, NcclStream stream) {
  return Add(handle, stream, {FakeKind::kAllGather, send, receive, count, type, kNcclSum, 0});
}

NcclResult FakeBroadcast(const void* send, void* receive, size_t count, NcclType type, int root,
                         NcclHandle handle, NcclStream stream) {
  return Add(handle, stream, {FakeKind::kBroadcast, send, receive, count, type, kNcclSum, root});
}

NcclResult FakeSend(const void* send, size_t count, NcclType type, int peer, NcclHandle handle,
                    NcclStream stream) {
  return Add(handle, stream, {FakeKind::kSend, send, nullptr, count, type, kNcclSum, peer});
}

NcclResult FakeReceive(void* receive, size_t count, NcclType type, int peer, NcclHandle handle,
                       NcclStream stream) {
  return Add(handle, stream, {FakeKind::kReceive, nullptr, receive, count, type, kNcclSum, peer});
}

}  // namespace

const NcclApi& FakeNccl(FakeNcclOptions options) {
  static const NcclApi& api = *[] {
    auto* const filled = new NcclApi();
#define TFJOB_NCCL_FAKE(name, ...) filled->name = Fake##name;
    TFJOB_NCCL_FUNCTIONS(TFJOB_NCCL_FAKE)
#undef TFJOB_NCCL_FAKE
    return filled;
  }();
  MutexLock lock(library_mutex);
  if (!Library().communicators.empty()) NcclDefect("a communicator still exists");
  Library() = FakeLibrary{.options = std::move(options)};
  Library().random = Library().options.seed;
  return api;
}

FakeNcclCounts FakeNcclState() {
  MutexLock lock(library_mutex);
  return {.communicators = static_cast<int>(Library().communicators.size()),
          .aborts = Library().aborts,
          .operations = Library().operations};
}

}  // namespace tfjob::collectives::nccl
