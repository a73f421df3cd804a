#include "runtime/device/fake_runtime.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "runtime/device/cpu_runtime.h"
#include "runtime/device/fake_memory.h"

namespace tfjob::device {

class FakeStream final : public Stream {
 public:
  FakeStream(std::shared_ptr<FakeRuntime> runtime, size_t number)
      : runtime(std::move(runtime)), number(number) {}
  ~FakeStream() override { runtime->Retire(number); }

  const std::shared_ptr<FakeRuntime> runtime;
  const size_t number;
  std::vector<uint64_t> clock;  // the operations that must run before the next one
  bool captures = false;
  std::vector<std::shared_ptr<const Operation>> captured;
};

class FakeEvent final : public Event {
 public:
  std::vector<uint64_t> clock;
};

namespace {

// How often a wait checks whether operations are ready.
constexpr std::chrono::microseconds kPollReady{100};

class FakeSequence final : public Sequence {
 public:
  std::vector<std::shared_ptr<const Operation>> operations;
};

bool Overlap(const Access& a, const Access& b) {
  const auto* const from_a = static_cast<const std::byte*>(a.address);
  const auto* const from_b = static_cast<const std::byte*>(b.address);
  return (a.writes || b.writes) && from_a < from_b + b.bytes && from_b < from_a + a.bytes;
}

}  // namespace

std::shared_ptr<FakeRuntime> FakeRuntime::Create(FakeOptions options) {
  return std::shared_ptr<FakeRuntime>(new FakeRuntime(options));
}

FakeRuntime::FakeRuntime(const FakeOptions& options)
    : random_(options.seed),
      memory_(std::make_unique<FakeMemory>(options.memory_bytes, options.allocate)),
      threads_are_processes_(options.threads_are_processes),
      seconds_(options.seconds) {}

FakeRuntime::~FakeRuntime() = default;

// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
uint64_t FakeRuntime::Draw() {
  uint64_t z = random_ += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

void FakeRuntime::Merge(Clock& to, const Clock& from) {
  if (to.size() < from.size()) to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) to[i] = std::max(to[i], from[i]);
}

bool FakeRuntime::Covers(const Clock& clock, size_t stream, uint64_t number) {
  return number == 0 || (stream < clock.size() && clock[stream] >= number);
}

bool FakeRuntime::Covers(const Clock& clock, const Clock& other) {
  for (size_t i = 0; i < other.size(); ++i) {
    if (!Covers(clock, i, other[i])) return false;
  }
  return true;
}

FakeStream& FakeRuntime::Own(Stream& stream) {
  auto* const own = dynamic_cast<FakeStream*>(&stream);
  if (own == nullptr || own->runtime.get() != this) Defect("the stream belongs to another device");
  return *own;
}

void FakeRuntime::RefuseWhileCapturing(std::string_view what) {
  const bool refused = threads_are_processes_
                           ? std::ranges::count(capturing_, std::this_thread::get_id()) > 0
                           : !capturing_.empty();
  if (refused) Defect(StrCat(what, " while a stream captures"));
}

StatusOr<Memory> FakeRuntime::Allocate(MemoryKind kind, size_t bytes, Buffer::Contents contents,
                                       std::string_view name) {
  MutexLock lock(mutex_);
  RefuseWhileCapturing(StrCat("allocation of ", name));
  if (kind == MemoryKind::kHost) return CpuRuntime()->Allocate(kind, bytes, contents, name);
  ASSIGN_OR_RETURN(void* const address, memory_->Allocate(kind, bytes, contents, name));
  return Memory(address, [self = shared_from_this()](void* memory) {
    MutexLock free_lock(self->mutex_);
    self->RefuseWhileCapturing("free of memory");
    self->memory_->Free(memory);
  });
}

StatusOr<std::unique_ptr<Stream>> FakeRuntime::NewStream() {
  MutexLock lock(mutex_);
  size_t number = queues_.size();
  if (free_streams_.empty()) {
    queues_.emplace_back();
    submitted_.push_back(0);
    done_.push_back(0);
  } else {
    number = free_streams_.back();
    free_streams_.pop_back();
  }
  return std::make_unique<FakeStream>(shared_from_this(), number);
}

StatusOr<std::unique_ptr<Event>> FakeRuntime::NewEvent() {
  return std::make_unique<FakeEvent>();
}

void FakeRuntime::Retire(size_t stream) {
  MutexLock lock(mutex_);
  Clock clock(queues_.size());
  clock[stream] = submitted_[stream];
  AwaitLocked(clock);
  free_streams_.push_back(stream);
}

void FakeRuntime::Submit(Operation operation, Stream& stream) {
  MutexLock lock(mutex_);
  auto shared = std::make_shared<const Operation>(std::move(operation));
  FakeStream& own = Own(stream);
  if (own.captures) {
    own.captured.push_back(std::move(shared));
  } else {
    SubmitLocked(std::move(shared), own);
  }
}

void FakeRuntime::SubmitLocked(std::shared_ptr<const Operation> operation, FakeStream& stream) {
  for (const Access& access : operation->accesses) {
    FakeMemory::Use(memory_->Get(access.address, access.bytes, operation->name), access.writes, 1);
  }
  Merge(stream.clock, host_);
  Submitted submitted{std::move(operation), stream.number, stream.clock,
                      ++submitted_[stream.number]};
  CheckOrder(submitted);
  if (seconds_) Time(submitted);
  stream.clock.resize(std::max(stream.clock.size(), stream.number + 1));
  stream.clock[stream.number] = submitted.number;
  unknown_.push_back(submitted);
  queues_[stream.number].push_back(std::move(submitted));
  submitted_more_.NotifyAll();
  if (Draw() % 4 == 0) RunOne();
}

void FakeRuntime::Time(const Submitted& submitted) {
  ends_.resize(queues_.size());
  double start = 0;
  for (size_t i = 0; i < submitted.before.size(); ++i) {
    if (submitted.before[i] > 0) start = std::max(start, ends_[i][submitted.before[i] - 1]);
  }
  std::vector<double>& own = ends_[submitted.stream];
  if (!own.empty()) start = std::max(start, own.back());
  own.push_back(start + seconds_(*submitted.operation));
  timeline_.push_back({submitted.operation->name, submitted.stream, start, own.back()});
}

std::vector<TimedOperation> FakeRuntime::timeline() {
  MutexLock lock(mutex_);
  return timeline_;
}

std::vector<std::string> FakeRuntime::NamesIn(const Sequence& sequence) {
  std::vector<std::string> names;
  for (const auto& operation : static_cast<const FakeSequence&>(sequence).operations)
    names.push_back(operation->name);
  return names;
}

void FakeRuntime::CheckOrder(const Submitted& submitted) {
  for (const Submitted& other : unknown_) {
    if (other.stream == submitted.stream || Covers(submitted.before, other.stream, other.number))
      continue;
    for (const Access& a : submitted.operation->accesses) {
      for (const Access& b : other.operation->accesses) {
        if (!Overlap(a, b)) continue;
        const Block& block = memory_->Get(a.address, a.bytes, submitted.operation->name);
        Defect(StrCat(submitted.operation->name, a.writes ? " writes " : " reads ", block.name,
                      ", which ", other.operation->name, b.writes ? " writes" : " reads",
                      ", and no stream or event orders the two"));
      }
    }
  }
}

// Chooses a random stream among those whose first operation may run now, and runs that operation.
bool FakeRuntime::RunOne() {
  std::vector<size_t> ready;
  for (size_t i = 0; i < queues_.size(); ++i) {
    if (queues_[i].empty() || !Covers(done_, queues_[i].front().before)) continue;
    const Operation& operation = *queues_[i].front().operation;
    if (!operation.ready || operation.ready()) ready.push_back(i);
  }
  if (ready.empty()) return false;
  const size_t stream = ready[Draw() % ready.size()];
  const Submitted next = std::move(queues_[stream].front());
  queues_[stream].pop_front();
  std::vector<void*> storage;
  for (const Access& access : next.operation->accesses) {
    const Block& block = memory_->Get(access.address, access.bytes, next.operation->name);
    storage.push_back(block.storage +
                      (static_cast<const std::byte*>(access.address) - block.address));
  }
  next.operation->run(storage);
  done_[stream] = next.number;
  return true;
}

void FakeRuntime::AwaitLocked(const Clock& clock) {
  RefuseWhileCapturing("synchronisation");
  // If no operation is ready, another thread must submit one, or must make one ready.
  while (!Covers(done_, clock)) {
    if (!RunOne()) (void)submitted_more_.WaitFor(mutex_, kPollReady);
  }
  Merge(host_, clock);
  auto kept = unknown_.begin();
  for (Submitted& submitted : unknown_) {
    if (!Covers(host_, submitted.stream, submitted.number)) {
      if (&submitted != &*kept) *kept = std::move(submitted);
      ++kept;
      continue;
    }
    for (const Access& access : submitted.operation->accesses) {
      FakeMemory::Use(memory_->Get(access.address, access.bytes, submitted.operation->name),
                      access.writes, -1);
    }
  }
  unknown_.erase(kept, unknown_.end());
}

void FakeRuntime::AwaitAll() {
  AwaitLocked(Clock(submitted_));
}

void FakeRuntime::Copy(void* to, const void* from, size_t bytes, Stream& stream) {
  if (bytes == 0) return;
  Submit({"copy",
          {{to, bytes, true}, {from, bytes, false}},
          [bytes](std::span<void* const> storage) { std::memcpy(storage[0], storage[1], bytes); }},
         stream);
}

void FakeRuntime::Record(Event& event, Stream& stream) {
  MutexLock lock(mutex_);
  FakeStream& own = Own(stream);
  if (own.captures) Defect("an event is recorded in a sequence");
  static_cast<FakeEvent&>(event).clock = own.clock;
}

void FakeRuntime::Wait(Stream& stream, const Event& event) {
  MutexLock lock(mutex_);
  FakeStream& own = Own(stream);
  if (own.captures) Defect("a sequence waits for an event");
  Merge(own.clock, static_cast<const FakeEvent&>(event).clock);
}

bool FakeRuntime::HasRun(const Event& event) {
  MutexLock lock(mutex_);
  const Clock& clock = static_cast<const FakeEvent&>(event).clock;
  if (!Covers(done_, clock)) RunOne();
  if (!Covers(done_, clock)) return false;
  AwaitLocked(clock);
  return true;
}

Status FakeRuntime::Synchronize(const Event& event) {
  MutexLock lock(mutex_);
  AwaitLocked(static_cast<const FakeEvent&>(event).clock);
  return OkStatus();
}

Status FakeRuntime::Synchronize() {
  MutexLock lock(mutex_);
  AwaitAll();
  return OkStatus();
}

Status FakeRuntime::Read(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return OkStatus();
  MutexLock lock(mutex_);
  AwaitAll();
  const Block& block = memory_->Get(from, bytes, "read");
  std::memcpy(to, block.storage + (static_cast<const std::byte*>(from) - block.address), bytes);
  return OkStatus();
}

Status FakeRuntime::Write(void* to, const void* from, size_t bytes) {
  if (bytes == 0) return OkStatus();
  MutexLock lock(mutex_);
  AwaitAll();
  const Block& block = memory_->Get(to, bytes, "write");
  std::memcpy(block.storage + (static_cast<const std::byte*>(to) - block.address), from, bytes);
  return OkStatus();
}

Status FakeRuntime::BeginCapture(Stream& stream) {
  MutexLock lock(mutex_);
  FakeStream& own = Own(stream);
  if (own.captures) return FailedPrecondition("the stream captures already");
  own.captures = true;
  capturing_.push_back(std::this_thread::get_id());
  return OkStatus();
}

StatusOr<std::unique_ptr<Sequence>> FakeRuntime::EndCapture(Stream& stream) {
  MutexLock lock(mutex_);
  FakeStream& own = Own(stream);
  if (!own.captures) return FailedPrecondition("the stream does not capture");
  own.captures = false;
  capturing_.erase(std::ranges::find(capturing_, std::this_thread::get_id()));
  auto sequence = std::make_unique<FakeSequence>();
  sequence->operations = std::exchange(own.captured, {});
  return sequence;
}

void FakeRuntime::Replay(const Sequence& sequence, Stream& stream) {
  MutexLock lock(mutex_);
  FakeStream& own = Own(stream);
  if (own.captures) Defect("a sequence is replayed in a sequence");
  for (const auto& operation : static_cast<const FakeSequence&>(sequence).operations)
    SubmitLocked(operation, own);
}

}  // namespace tfjob::device
