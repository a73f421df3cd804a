// Synchronises ranks that see the same memory: threads of one process, or processes that map one
// segment. The ranks proceed in rounds. In each round, every rank posts a notice, which describes
// its call and may contain a few values, and then waits for the notices of all others. Waiting
// threads sleep on a futex, after a short spin if that is allowed (MaySpin).
//
// There are two sets of notices and of slots (shared_operations.h), which alternate from round to
// round. Once a rank has seen the notices of all ranks for a round, all ranks have finished the
// work that followed the previous round, so the memory of the previous round may be overwritten.
//
// Between processes, no word that another rank writes is trusted: it may have any value and may
// change at any time. Such a word is read only once, into a copy, which is then checked.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/interrupt.h"

namespace tfjob::collectives {

// Whether the memory is shared by threads of one process or by several processes. A futex shared
// only by threads is cheaper.
enum class Sharing : uint8_t { kThreads, kProcesses };

// Returns whether ranks on one machine may spin: only if this process may use at least one
// processor per rank. Otherwise, a spinning rank would keep the processor from the rank that it
// waits for.
bool MaySpin(int ranks);

// The notice that a rank posts in a round. Only the rank itself writes the notice, except for the
// flags in `rounds`. A notice is plain memory that starts as zeros, so that it can be mapped.
struct alignas(128) Notice {
  static constexpr size_t kValueBytes = 88;

  std::atomic<uint32_t> rounds;  // a futex: 4 × the number of rounds posted here + the flags below
  std::atomic<uint32_t> call;    // kind, type, reduction and root of the operation
  std::atomic<uint64_t> bytes;
  std::atomic<uint64_t> element;  // bytes of one element, or another argument
  std::atomic<uint64_t> allocation;
  std::atomic<uint64_t> offset;
  std::array<std::byte, kValueBytes> values;

  static constexpr uint32_t kSleepers = 1;  // some rank sleeps until `rounds` changes
  static constexpr uint32_t kAborted = 2;
  static constexpr uint32_t kOneRound = 4;
};
static_assert(sizeof(Notice) == 128);
static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// One rank's view of the board. Only the thread of the rank's operations may use it, but any thread
// may call Abort, aborted, Reason and Seen.
class Board {
 public:
  static constexpr int kMostRanks = 128;
  // Returns the size of a board in bytes. Its memory must initially be zero, and must be aligned to
  // 128.
  static size_t Bytes(int ranks);

  Board(std::byte* memory, int rank, int ranks, Sharing sharing);
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  // Allows or forbids this rank to spin. Before the first call, it may spin if MaySpin(ranks).
  void set_spin(bool spin) { spin_ = spin; }

  // Starts a round. Own, Of and parity refer to this round until the next Begin.
  void Begin() { ++round_; }
  // Returns 0 and 1 alternately, from round to round.
  int parity() const { return static_cast<int>(round_ & 1); }
  Notice& Own() { return Of(rank_); }
  Notice& Of(int rank);

  // Posts this rank's notice, and waits for the notices of all other ranks. After an abort, returns
  // the reason for the abort, unless all notices of the round have been posted. Returns
  // DeadlineExceeded at the deadline, if there is one (a time on the clock
  // RealClock().Monotonic()). If `interrupt` returns an error, returns that error.
  Status Meet(std::optional<Duration> deadline = std::nullopt,
              const Interrupt& interrupt = nullptr);

  // Makes all current and future waits of all ranks return. If several ranks abort, the first
  // reason is kept. When Abort returns, the reason is set, even if another thread has aborted
  // first.
  void Abort(const Status& why);
  bool aborted() const;
  // Returns the reason given by the rank that aborted first.
  Status Reason() const;

  // Announces the operation that this rank is in.
  void Announce(const char* name);
  Waiting Seen() const;
  // Return the number of waits for late ranks that ended during spinning, and the total number of
  // waits for late ranks.
  int64_t spun() const { return spun_; }
  int64_t waits() const { return waits_; }

 private:
  struct Record;
  struct Head;
  struct Desk;

  Desk& DeskOf(int rank) const;
  Head& head() const;
  // Returns whether a notice has been posted for the current round, given the value of its word
  // `rounds`.
  bool Posted(uint32_t rounds) const;
  Status Await(int rank, std::optional<Duration> deadline, const Interrupt& interrupt);
  // Spins, unless spinning has failed recently. Returns whether the notice has been posted.
  bool Spin(const Notice& notice);
  // Returns true when the notice has been posted, and false after an abort or at the deadline.
  bool Sleep(Notice& notice, std::optional<Duration> deadline);
  // Like Sleep, but also returns if `interrupt` returns an error; `interrupted` is then set to this
  // error.
  bool SleepUnless(const Interrupt& interrupt, Notice& notice, std::optional<Duration> deadline,
                   Status& interrupted);
  void Wake(Notice& notice) const;

  std::byte* const memory_;
  const int rank_;
  const int ranks_;
  const Sharing sharing_;
  bool spin_;
  int32_t skip_ = 0;             // how many of the next waits do not spin
  int32_t in_vain_ = 0;          // the value to which skip_ was last set
  uint32_t round_ = UINT32_MAX;  // so that the first Begin sets it to 0
  int64_t spun_ = 0;
  int64_t waits_ = 0;

  Mutex mutex_;
  bool told_ ABSL_GUARDED_BY(mutex_) = false;  // this rank has called Abort

  // The values that Seen returns.
  std::atomic<int64_t> operation_{0};
  std::atomic<const char*> name_{""};
  std::atomic<int> on_{-1};
  std::atomic<Duration::rep> since_{0};
};

}  // namespace tfjob::collectives
