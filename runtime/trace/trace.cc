#include "runtime/trace/trace.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>

#include "runtime/base/mutex.h"

namespace tfjob::trace {
namespace {

std::string ThreadName() {
  char name[16] = {};
  pthread_getname_np(pthread_self(), name, sizeof(name));
  return name;
}

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The events of one thread. This thread adds events, and the thread that calls Stop removes them.
struct Buffer {
  Mutex mutex;
  int64_t recording ABSL_GUARDED_BY(mutex) = 0;  // that the events belong to
  ThreadEvents contents ABSL_GUARDED_BY(mutex);
};

// Owns the buffers, which may outlive their threads.
struct Registry {
  std::atomic<int64_t> recording{0};  // the current recording's ordinal; 0 if there is none
  std::atomic<int64_t> start_ns{0};
  Mutex mutex;
  int64_t recordings ABSL_GUARDED_BY(mutex) = 0;
  int64_t threads ABSL_GUARDED_BY(mutex) = 0;
  std::vector<std::shared_ptr<Buffer>> buffers ABSL_GUARDED_BY(mutex);
};

Registry& TheRegistry() {
  static Registry* const registry = new Registry;  // never destroyed: threads may outlive main
  return *registry;
}

std::shared_ptr<Buffer> NewBuffer() {
  auto buffer = std::make_shared<Buffer>();
  Registry& registry = TheRegistry();
  const MutexLock lock(registry.mutex);
  const MutexLock contents(buffer->mutex);
  buffer->contents.thread = ThreadName();
  buffer->contents.id = ++registry.threads;
  registry.buffers.push_back(buffer);
  return buffer;
}

Buffer& BufferOfThisThread() {
  thread_local const std::shared_ptr<Buffer> buffer = NewBuffer();
  return *buffer;
}

thread_local bool thread_paused = false;

}  // namespace

std::string_view Name(Category category) {
  switch (category) {
    case Category::kStep:
      return "step";
    case Category::kOp:
      return "op";
    case Category::kCopy:
      return "copy";
    case Category::kExchange:
      return "exchange";
    case Category::kData:
      return "data";
    case Category::kState:
      return "state";
  }
  return "";
}

bool Recording() {
  return TheRegistry().recording.load(std::memory_order_relaxed) != 0;
}

void Start() {
  Registry& registry = TheRegistry();
  const MutexLock lock(registry.mutex);
  registry.start_ns = NowNs();
  registry.recording = ++registry.recordings;
}

Trace Stop() {
  Registry& registry = TheRegistry();
  const MutexLock lock(registry.mutex);
  const int64_t recording = registry.recording.exchange(0);
  Trace trace;
  for (const auto& buffer : registry.buffers) {
    const MutexLock contents(buffer->mutex);
    if (recording == 0 || buffer->recording != recording) continue;
    ThreadEvents& recorded = buffer->contents;
    trace.threads.push_back({.thread = recorded.thread,
                             .id = recorded.id,
                             .events = std::exchange(recorded.events, {}),
                             .dropped = std::exchange(recorded.dropped, 0)});
    buffer->recording = 0;
  }
  // Remove the buffers of threads that have exited.
  std::erase_if(registry.buffers, [](const auto& buffer) { return buffer.use_count() == 1; });
  return trace;
}

Paused::Paused() : outer_(thread_paused) {
  thread_paused = true;
}

Paused::~Paused() {
  thread_paused = outer_;
}

void Span::Begin(Category category, std::string_view name, std::string_view kind) {
  if (thread_paused) return;
  recording_ = TheRegistry().recording;
  event_.category = category;
  event_.name.Set(name);
  event_.kind.Set(kind);
  event_.start_ns = NowNs();
}

void Span::End() {
  const int64_t end = NowNs();
  Registry& registry = TheRegistry();
  Buffer& buffer = BufferOfThisThread();
  const MutexLock lock(buffer.mutex);
  if (registry.recording != recording_) return;
  if (buffer.recording != recording_) {
    buffer.contents.events.clear();
    buffer.contents.dropped = 0;
    buffer.recording = recording_;
  }
  event_.duration_ns = end - event_.start_ns;
  event_.start_ns -= registry.start_ns;
  if (buffer.contents.events.size() < kMaxEvents) {
    buffer.contents.events.push_back(event_);
  } else {
    ++buffer.contents.dropped;
  }
}

}  // namespace tfjob::trace
