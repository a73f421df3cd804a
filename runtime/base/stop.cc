#include "runtime/base/stop.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/check.h"

namespace tfjob {
namespace {

std::atomic<StopSource*> signalled{nullptr};

void OnSignal(int number) {
  const int kept_errno = errno;
  signal(number, SIG_DFL);  // if the same signal comes again, it ends the process
  if (StopSource* source = signalled.load()) source->Request(number);
  errno = kept_errno;
}

}  // namespace

StopSource::StopSource() : event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  ENFORCE(event_ >= 0, "eventfd");
}

StopSource::~StopSource() {
  close(event_);
}

void StopSource::Request(int signal_number) {
  int none = 0;
  signal_.compare_exchange_strong(none, signal_number);
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(event_, &one, sizeof(one));
}

bool StopSource::WaitFor(Duration timeout) const {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!requested()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (left <= 0ms) break;
    pollfd readable{.fd = event_, .events = POLLIN, .revents = 0};
    poll(&readable, 1, static_cast<int>(std::min<int64_t>(left.count(), 1 << 30)));
  }
  return requested();
}

void StopOnSignals(StopSource& source) {
  signalled.store(&source);
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  for (int number : {SIGTERM, SIGINT}) sigaction(number, &action, nullptr);
}

}  // namespace tfjob
