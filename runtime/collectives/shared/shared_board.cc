#include "runtime/collectives/shared/shared_board.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstring>
#include <ctime>

#include "runtime/base/env.h"
#include "runtime/collectives/peer_reason.h"

namespace tfjob::collectives {
namespace {

// The time for which a rank spins before it sleeps. If a rank is late by less than this time, the
// others wait for it without a system call, because waking a thread would take longer.
constexpr std::chrono::microseconds kSpin{20};
constexpr int kLoadsPerLookAtTheClock = 32;
// If other programs use the processors, a spinning rank keeps its processor from the rank that is
// late. A rank that has spun without success therefore does not spin in its next wait. If spinning
// fails again and again, the rank does not spin in the next 3, 7, … waits, up to this many.
constexpr int32_t kMostSkipped = 127;

void PauseProcessor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Returns the time until the deadline, for a futex.
timespec TimeUntil(Duration deadline) {
  const Duration left = std::max(deadline - RealClock().Monotonic(), Duration(0));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(left);
  const auto rest = std::chrono::duration_cast<std::chrono::nanoseconds>(left - seconds);
  return {.tv_sec = seconds.count(), .tv_nsec = rest.count()};
}

}  // namespace

// Why a rank aborted. Written only once, before the rank's number is stored in Head::aborted.
struct Board::Record {
  std::atomic<uint32_t> code;
  std::atomic<uint32_t> length;
  std::array<char, 504> text;
};

struct alignas(128) Board::Head {
  std::atomic<uint32_t> aborted;  // 1 + the rank that aborted first; 0: none
};

struct alignas(128) Board::Desk {
  std::array<Notice, 2> notices;
  Record record;
};

bool MaySpin(int ranks) {
  return AvailableProcessors() >= ranks;
}

size_t Board::Bytes(int ranks) {
  return sizeof(Head) + static_cast<size_t>(ranks) * sizeof(Desk);
}

Board::Board(std::byte* memory, int rank, int ranks, Sharing sharing)
    : memory_(memory), rank_(rank), ranks_(ranks), sharing_(sharing), spin_(MaySpin(ranks)) {}

Board::Head& Board::head() const {
  return *reinterpret_cast<Head*>(memory_);
}

Board::Desk& Board::DeskOf(int rank) const {
  return reinterpret_cast<Desk*>(memory_ + sizeof(Head))[rank];
}

Notice& Board::Of(int rank) {
  return DeskOf(rank).notices[round_ & 1];
}

bool Board::Posted(uint32_t rounds) const {
  // Both sides count modulo 2³⁰.
  const uint32_t wanted = (round_ / 2 + 1) * Notice::kOneRound;
  return static_cast<int32_t>((rounds & ~(Notice::kOneRound - 1)) - wanted) >= 0;
}

Status Board::Meet(std::optional<Duration> deadline, const Interrupt& interrupt) {
  Notice& own = Own();
  if (own.rounds.fetch_add(Notice::kOneRound) & Notice::kSleepers) Wake(own);
  // Start with this rank's successor, so that sleeping ranks are spread over all notices.
  for (int i = 1; i < ranks_; ++i) {
    RETURN_IF_ERROR(Await((rank_ + i) % ranks_, deadline, interrupt));
  }
  return OkStatus();
}

Status Board::Await(int rank, std::optional<Duration> deadline, const Interrupt& interrupt) {
  Notice& notice = Of(rank);
  if (Posted(notice.rounds.load(std::memory_order_acquire))) return OkStatus();
  ++waits_;
  since_.store(RealClock().Monotonic().count(), std::memory_order_relaxed);
  on_.store(rank, std::memory_order_release);  // a thread that sees this also sees since_
  const bool met = Spin(notice);
  spun_ += met ? 1 : 0;
  Status interrupted;
  const bool posted = met || (interrupt ? SleepUnless(interrupt, notice, deadline, interrupted)
                                        : Sleep(notice, deadline));
  on_.store(-1, std::memory_order_relaxed);
  if (posted) return OkStatus();
  if (aborted()) return Reason();
  RETURN_IF_ERROR(interrupted);
  return DeadlineExceeded("rank ", rank, " did not begin to exchange in time");
}

bool Board::Spin(const Notice& notice) {
  if (!spin_ || skip_-- > 0) return false;
  const auto end = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < kLoadsPerLookAtTheClock; ++i) {
      if (Posted(notice.rounds.load(std::memory_order_acquire))) {
        in_vain_ = skip_ = 0;
        return true;
      }
      PauseProcessor();
    }
  } while (std::chrono::steady_clock::now() < end);
  in_vain_ = skip_ = std::min(2 * in_vain_ + 1, kMostSkipped);
  return false;
}

bool Board::Sleep(Notice& notice, std::optional<Duration> deadline) {
  uint32_t rounds = notice.rounds.load(std::memory_order_acquire);
  while (true) {
    if (Posted(rounds)) return true;
    if (rounds & Notice::kAborted) return false;
    if (deadline && RealClock().Monotonic() >= *deadline) return false;
    if (!(rounds & Notice::kSleepers)) {
      if (!notice.rounds.compare_exchange_weak(rounds, rounds | Notice::kSleepers)) continue;
      rounds |= Notice::kSleepers;
    }
    const timespec left = TimeUntil(deadline.value_or(Duration(0)));
    // The call returns at once if the word has changed since it was read.
    syscall(SYS_futex, &notice.rounds,
            sharing_ == Sharing::kThreads ? FUTEX_WAIT_PRIVATE : FUTEX_WAIT, rounds,
            deadline ? &left : nullptr, nullptr, 0);
    rounds = notice.rounds.load(std::memory_order_acquire);
  }
}

bool Board::SleepUnless(const Interrupt& interrupt, Notice& notice,
                        std::optional<Duration> deadline, Status& interrupted) {
  while (true) {
    interrupted = interrupt();
    if (!interrupted.ok()) return false;
    const Duration slice = RealClock().Monotonic() + kInterruptPoll;
    if (Sleep(notice, deadline ? std::min(*deadline, slice) : slice)) return true;
    if (aborted() || (deadline && RealClock().Monotonic() >= *deadline)) return false;
  }
}

void Board::Wake(Notice& notice) const {
  // Clear the flag before the call, so that a flag that another rank sets during the call is not
  // lost.
  notice.rounds.fetch_and(~Notice::kSleepers);
  syscall(SYS_futex, &notice.rounds,
          sharing_ == Sharing::kThreads ? FUTEX_WAKE_PRIVATE : FUTEX_WAKE, INT_MAX, nullptr,
          nullptr, 0);
}

void Board::Abort(const Status& why) {
  {
    MutexLock lock(mutex_);
    if (told_) return;
    told_ = true;
    Record& record = DeskOf(rank_).record;
    const std::string_view text = Message(why).substr(0, record.text.size());
    std::memcpy(record.text.data(), text.data(), text.size());
    record.length = static_cast<uint32_t>(text.size());
    record.code = static_cast<uint32_t>(why.code());
    // Hold the lock, so that the reason is set by the time another thread's call of Abort returns.
    uint32_t none = 0;
    head().aborted.compare_exchange_strong(none, static_cast<uint32_t>(rank_) + 1);
  }
  for (int rank = 0; rank < ranks_; ++rank) {
    for (Notice& notice : DeskOf(rank).notices) {
      notice.rounds.fetch_or(Notice::kAborted);
      Wake(notice);
    }
  }
}

bool Board::aborted() const {
  return head().aborted.load(std::memory_order_acquire) != 0;
}

Status Board::Reason() const {
  const uint32_t first = head().aborted.load(std::memory_order_acquire);
  if (first == 0 || first > static_cast<uint32_t>(ranks_)) {
    return Internal("the shared memory of the ranks is damaged: rank ", first, " of ", ranks_,
                    " has aborted, counted from 1");
  }
  const Record& record = DeskOf(static_cast<int>(first) - 1).record;
  const size_t length = std::min<size_t>(record.length, record.text.size());
  // Copy the reason, because a peer could change it while it is being checked.
  std::array<char, sizeof(record.text)> text;
  std::memcpy(text.data(), record.text.data(), length);
  return ReasonOfPeer(record.code, {text.data(), length}, StatusCode::kInternal);
}

void Board::Announce(const char* name) {
  operation_.store(operation_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  name_.store(name, std::memory_order_relaxed);
}

Waiting Board::Seen() const {
  return {.operation = operation_.load(std::memory_order_relaxed),
          .name = name_.load(std::memory_order_relaxed),
          .on = on_.load(std::memory_order_acquire),  // before since_
          .since = Duration(since_.load(std::memory_order_relaxed))};
}

}  // namespace tfjob::collectives
