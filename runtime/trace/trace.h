// Records the activity of each thread of this process over time. The time spans that a thread
// records nest, like calls. Recording is off until Start is called. While it is off, a Span costs
// one load.
//
//   Start();
//   {
//     const Span step(Category::kStep, "step 10");
//     …
//   }
//   const Trace trace = Stop();
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace tfjob::trace {

enum class Category : uint8_t { kStep, kOp, kCopy, kExchange, kData, kState };
std::string_view Name(Category category);  // "step", "op", …

// A string of at most N - 1 bytes. A longer string is truncated.
template <size_t N>
class Label {
 public:
  void Set(std::string_view text) {
    size_ = static_cast<uint8_t>(text.copy(chars_.data(), N - 1));
    static_assert(N <= 256);
  }
  std::string_view view() const { return {chars_.data(), size_}; }

 private:
  std::array<char, N> chars_;
  uint8_t size_ = 0;
};

struct Event {
  int64_t start_ns = 0;  // since Start
  int64_t duration_ns = 0;
  Category category = Category::kStep;
  Label<64> name;
  Label<32> kind;  // of an op, its type: "MatMul"; otherwise empty
};

struct ThreadEvents {
  std::string thread;         // the thread's name
  int64_t id = 0;             // the thread's ordinal in this process, from 1
  std::vector<Event> events;  // in the order of their ends
  int64_t dropped = 0;        // events beyond kMaxEvents
};

// The number of events kept per thread (30 MiB).
inline constexpr size_t kMaxEvents = size_t{1} << 18;

struct Trace {
  std::vector<ThreadEvents> threads;  // those that have recorded an event, by id
};

// Returns whether spans are recorded. Thread-safe, like all functions below.
bool Recording();
// Starts recording. Discards the events of an earlier recording that was not stopped.
void Start();
// Stops recording, and returns the events since Start. Spans that have not ended are left out.
Trace Stop();

// Records the time from its construction to its destruction on the calling thread, provided that
// recording was on the whole time.
class Span {
 public:
  Span(Category category, std::string_view name, std::string_view kind = {}) {
    if (Recording()) Begin(category, name, kind);
  }
  ~Span() {
    if (recording_ != 0) End();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  void Begin(Category category, std::string_view name, std::string_view kind);
  void End();

  int64_t recording_ = 0;  // the recording's ordinal; 0 if there was none
  Event event_;
};

// While an object of this class exists, the calling thread records no spans. Use it for work that
// would otherwise count as the computation of a step, or that would produce too many short spans.
class Paused {
 public:
  Paused();
  ~Paused();
  Paused(const Paused&) = delete;
  Paused& operator=(const Paused&) = delete;

 private:
  const bool outer_;  // whether the thread was already paused
};

}  // namespace tfjob::trace
