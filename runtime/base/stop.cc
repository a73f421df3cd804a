#include "runtime/base/stop.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "runtime/base/check.h"

namespace tfjob {
namespace {

constexpr int kStopSignals[] = {SIGTERM, SIGINT};

std::atomic<StopSource*> signalled{nullptr};

void OnSignal(int number) {
  const int kept_errno = errno;
  signal(number, SIG_DFL);  // if the same signal arrives again, it ends the process
  if (StopSource* source = signalled.load()) source->Request(number);
  errno = kept_errno;
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

ScopedStopOnSignals::ScopedStopOnSignals(StopSource& source) {
  signalled.store(&source);
  for (size_t i = 0; i < std::size(kStopSignals); ++i) {
    struct sigaction action = {}, before = {};
    action.sa_handler = OnSignal;
    sigaction(kStopSignals[i], nullptr, &before);
    const bool plain = (before.sa_flags & SA_SIGINFO) == 0;
    taken_[i] = plain && before.sa_handler == SIG_DFL;
    if (taken_[i]) sigaction(kStopSignals[i], &action, nullptr);
  }
}

ScopedStopOnSignals::~ScopedStopOnSignals() {
  for (size_t i = 0; i < std::size(kStopSignals); ++i) {
    if (taken_[i]) signal(kStopSignals[i], SIG_DFL);
  }
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
