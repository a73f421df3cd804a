// Implements a device whose own memory the host cannot access, for tests and for developers. It
// runs its operations on the host's processors, but late, and in a random order among those that
// streams and events allow. A seed determines the order: the same calls with the same seed run in
// the same order. It needs no special hardware, and enforces the rules of device_runtime.h. The
// process aborts with a message if
//   - the host accesses device memory, or pinned memory that an operation may use;
//   - an operation uses ordinary host memory, freed memory, or bytes outside its memory;
//   - two operations use the same memory, at least one writes it, and no stream or event orders
//     them;
//   - memory is freed while an operation may use it;
//   - while a stream is capturing a sequence, it records an event, waits for an event or replays a
//     sequence, or any thread allocates or frees memory or synchronises with the device.
//
// An operation runs on any thread that submits an operation or synchronises. Only one operation
// runs at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/device/device_runtime.h"

namespace tfjob::device {

class FakeMemory;
class FakeStream;
class FakeEvent;

// A range of memory that an operation uses.
struct Access {
  const void* address = nullptr;
  size_t bytes = 0;
  bool writes = false;
};

// An operation. Its function `run` receives one address per range, in the order of the ranges, and
// accesses each range's contents at that address. The operation does not run before `ready` returns
// true; an empty function is always ready. `run` and `ready` must not call the runtime.
struct Operation {
  std::string name;
  std::vector<Access> accesses;
  std::function<void(std::span<void* const> storage)> run;
  std::function<bool()> ready = {};
};

// An operation on the timeline of a device. It starts as soon as all operations that it waits for
// have ended, including those that the host had already waited for when it submitted the operation.
struct TimedOperation {
  std::string name;
  size_t stream = 0;
  double start = 0, end = 0;  // in seconds
};

struct FakeOptions {
  uint64_t seed = 1;
  size_t memory_bytes = size_t{1} << 40;  // for device and pinned memory combined
  // Allocates the memory in which the contents of device memory are stored for operations; `name`
  // is for messages. If empty, the contents are stored in ordinary memory.
  std::function<std::shared_ptr<std::byte>(size_t bytes, const std::string& name)> allocate;
  // Returns how long an operation takes. If set, the device keeps a timeline.
  std::function<double(const Operation&)> seconds;
  // Every thread stands for a process, so a capture restricts only the thread that began it.
  bool threads_are_processes = false;
};

// Thread-safe.
class FakeRuntime final : public DeviceRuntime, public std::enable_shared_from_this<FakeRuntime> {
 public:
  static std::shared_ptr<FakeRuntime> Create(FakeOptions options = {});
  ~FakeRuntime() override;

  // Submits an operation to a stream of this device.
  void Submit(Operation operation, Stream& stream);

  // Runs at most one operation. Returns whether all operations that the event covers have run; the
  // host has then waited for them.
  bool HasRun(const Event& event);

  // Returns the names of the operations in a sequence of a FakeRuntime.
  static std::vector<std::string> NamesIn(const Sequence& sequence);
  // Returns the operations in the order of their submission, or nothing if FakeOptions::seconds is
  // empty.
  std::vector<TimedOperation> timeline();

  bool immediate() const override { return false; }
  StatusOr<Memory> Allocate(MemoryKind kind, size_t bytes, Buffer::Contents contents,
                            std::string_view name) override;
  StatusOr<std::unique_ptr<Stream>> NewStream() override;
  StatusOr<std::unique_ptr<Event>> NewEvent() override;
  void Copy(void* to, const void* from, size_t bytes, Stream& stream) override;
  void Record(Event& event, Stream& stream) override;
  void Wait(Stream& stream, const Event& event) override;
  Status Synchronize(const Event& event) override;
  Status Synchronize() override;
  Status Read(void* to, const void* from, size_t bytes) override;
  Status Write(void* to, const void* from, size_t bytes) override;
  Status BeginCapture(Stream& stream) override;
  StatusOr<std::unique_ptr<Sequence>> EndCapture(Stream& stream) override;
  void Replay(const Sequence& sequence, Stream& stream) override;

 private:
  friend class FakeStream;

  // The number of operations per stream, indexed by the stream's number. Depending on the use,
  // counts the operations that have been submitted, have run, or must run before another operation.
  using Clock = std::vector<uint64_t>;
  // An operation that the host has not waited for.
  struct Submitted {
    std::shared_ptr<const Operation> operation;
    size_t stream = 0;
    Clock before;  // the operations that must have run first
    uint64_t number = 0;
  };

  explicit FakeRuntime(const FakeOptions& options);

  static void Merge(Clock& to, const Clock& from);
  static bool Covers(const Clock& clock, const Clock& other);
  static bool Covers(const Clock& clock, size_t stream, uint64_t number);

  FakeStream& Own(Stream& stream) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SubmitLocked(std::shared_ptr<const Operation> operation, FakeStream& stream)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Time(const Submitted& submitted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CheckOrder(const Submitted& submitted) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns false if no operation can run now.
  bool RunOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitLocked(const Clock& clock) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AwaitAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Retire(size_t stream);
  void RefuseWhileCapturing(std::string_view what) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t Draw() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Mutex mutex_;
  CondVar submitted_more_;
  uint64_t random_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<FakeMemory> memory_ ABSL_PT_GUARDED_BY(mutex_);
  std::vector<std::deque<Submitted>> queues_ ABSL_GUARDED_BY(mutex_);  // not yet run; by stream
  std::vector<Submitted> unknown_ ABSL_GUARDED_BY(mutex_);  // have run, but were not waited for
  std::vector<size_t> free_streams_ ABSL_GUARDED_BY(mutex_);
  Clock submitted_ ABSL_GUARDED_BY(mutex_);
  Clock done_ ABSL_GUARDED_BY(mutex_);
  Clock host_ ABSL_GUARDED_BY(mutex_);  // the operations that the host has waited for
  std::vector<std::thread::id> capturing_ ABSL_GUARDED_BY(mutex_);  // one entry per capture
  const bool threads_are_processes_;
  const std::function<double(const Operation&)> seconds_;
  std::vector<TimedOperation> timeline_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::vector<double>> ends_ ABSL_GUARDED_BY(mutex_);  // by stream and number
};

}  // namespace tfjob::device
