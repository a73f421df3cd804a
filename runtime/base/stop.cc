#include "runtime/base/stop.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/mutex.h"

namespace tfjob {
namespace {

constexpr int kStopSignals[] = {SIGTERM, SIGINT};

std::atomic<StopSource*> signalled{nullptr};
// The maximum number of ScopedStopOnSignals objects whose sources receive requests. The sources of
// further objects receive none.
constexpr int kMostScopes = 256;
std::atomic<StopSource*> scoped_sources[kMostScopes];
std::atomic<int> last_stop_signal{0};

void OnSignal(int number) {
  const int kept_errno = errno;
  signal(number, SIG_DFL);  // if the same signal arrives again, it kills the process
  last_stop_signal.store(number);
  if (StopSource* source = signalled.load()) source->Request(number);
  for (const std::atomic<StopSource*>& scoped : scoped_sources) {
    if (StopSource* source = scoped.load()) source->Request(number);
  }
  errno = kept_errno;
}

// Shared by all objects of ScopedStopOnSignals. The sources are never destroyed, because a signal
// handler in another thread may still use them.
struct StopScopes {
  Mutex mutex;
  int count ABSL_GUARDED_BY(mutex) = 0;
  bool taken[std::size(kStopSignals)] ABSL_GUARDED_BY(mutex) = {};
  std::vector<StopSource*> unused ABSL_GUARDED_BY(mutex), requested ABSL_GUARDED_BY(mutex);
};

StopScopes& AllStopScopes() {
  static StopScopes* const kScopes = new StopScopes;
  return *kScopes;
}

StopSource* TakeScopedSource() {
  StopScopes& scopes = AllStopScopes();
  MutexLock lock(scopes.mutex);
  if (scopes.unused.empty()) return new StopSource;
  StopSource* source = scopes.unused.back();
  scopes.unused.pop_back();
  return source;
}

// Returns whether the action of the signal is OnSignal (if `own`) or the default action
// (otherwise).
bool HasAction(int number, bool own) {
  struct sigaction present = {};
  sigaction(number, nullptr, &present);
  if ((present.sa_flags & SA_SIGINFO) != 0) return false;
  return own ? present.sa_handler == OnSignal : present.sa_handler == SIG_DFL;
}

// Waits until one of the descriptors is readable or `timeout` has passed. A negative descriptor is
// ignored.
void AwaitReadable(int first, int second, Duration timeout) {
  const auto end = std::chrono::steady_clock::now() + std::min<Duration>(timeout, 24h);
  pollfd wanted[] = {{.fd = first, .events = POLLIN, .revents = 0},
                     {.fd = second, .events = POLLIN, .revents = 0}};
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
    if (left <= 0ms || poll(wanted, 2, static_cast<int>(left.count())) > 0) return;
  }
}

void WakeUp(int descriptor) {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(descriptor, &one, sizeof(one));
}

}  // namespace

Event::Event() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  ENFORCE(descriptor_ >= 0, "eventfd");
}

Event::~Event() {
  close(descriptor_);
}

void Event::Set() {
  WakeUp(descriptor_);
}

void Event::Clear() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t taken = read(descriptor_, &count, sizeof(count));
}

void Event::WaitFor(Duration timeout) const {
  AwaitReadable(descriptor_, -1, timeout);
}

StopSource::StopSource() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  ENFORCE(event_ >= 0, "eventfd");
}

StopSource::~StopSource() {
  close(event_);
}

void StopSource::Request(int signal_number) {
  int none = 0;
  signal_.compare_exchange_strong(none, signal_number);
  WakeUp(event_);
}

bool StopSource::WaitFor(Duration timeout) const {
  AwaitReadable(event_, -1, timeout);
  return requested();
}

bool StopSource::WaitFor(Duration timeout, const Event& event) const {
  AwaitReadable(event_, event.descriptor_, timeout);
  return requested();
}

void StopOnSignals(StopSource& source) {
  signalled.store(&source);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  for (int number : kStopSignals) sigaction(number, &action, nullptr);
}

ScopedStopOnSignals::ScopedStopOnSignals() : source_(TakeScopedSource()) {
  StopScopes& scopes = AllStopScopes();
  MutexLock lock(scopes.mutex);
  for (int i = 0; i < kMostScopes && slot_ < 0; ++i) {
    if (scoped_sources[i].load() != nullptr) continue;
    scoped_sources[i].store(source_);
    slot_ = i;
  }
  if (scopes.count++ > 0) return;
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  action.sa_flags = SA_RESTART;
  for (size_t i = 0; i < std::size(kStopSignals); ++i) {
    scopes.taken[i] = HasAction(kStopSignals[i], /*own=*/false);
    if (scopes.taken[i]) sigaction(kStopSignals[i], &action, nullptr);
  }
}

ScopedStopOnSignals::~ScopedStopOnSignals() {
  StopScopes& scopes = AllStopScopes();
  MutexLock lock(scopes.mutex);
  if (slot_ >= 0) scoped_sources[slot_].store(nullptr);
  (source_->requested() ? scopes.requested : scopes.unused).push_back(source_);
  if (--scopes.count > 0) return;
  for (size_t i = 0; i < std::size(kStopSignals); ++i) {
    if (scopes.taken[i] && HasAction(kStopSignals[i], /*own=*/true))
      signal(kStopSignals[i], SIG_DFL);
  }
}

int LastStopSignal() {
  return last_stop_signal.load();
}

int ExitCode(const Status& status, const StopSource& stop) {
  if (status.ok()) return 0;
  if (stop.requested() && absl::IsCancelled(status)) return 128 + stop.signal();
  switch (status.code()) {
    case StatusCode::kUnavailable:
    case StatusCode::kDeadlineExceeded:
    case StatusCode::kAborted:
    case StatusCode::kResourceExhausted:
      return 138;
    case StatusCode::kInvalidArgument:
      return 2;
    default:
      return 1;
  }
}

}  // namespace tfjob
