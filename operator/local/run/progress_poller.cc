#include "operator/local/run/progress_poller.h"

#include "runtime/base/thread_pool.h"

namespace tfjob::local {
namespace {

constexpr Duration kAnswerTime = 500ms;

}  // namespace

ProgressPoller::ProgressPoller(std::vector<std::string> addresses, Duration interval)
    : interval_(interval), thread_([this, addresses = std::move(addresses)] { Poll(addresses); }) {}

ProgressPoller::~ProgressPoller() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  stop_.NotifyAll();
  thread_.join();
}

std::map<std::string, progress::Progress> ProgressPoller::Latest() {
  MutexLock lock(mutex_);
  return latest_;
}

bool ProgressPoller::Record(const std::string& address, StatusOr<progress::Progress> progress) {
  MutexLock lock(mutex_);
  if (progress.ok()) latest_.insert_or_assign(address, *std::move(progress));
  return !stopping_;
}

bool ProgressPoller::Pause() {
  MutexLock lock(mutex_);
  if (!stopping_) stop_.WaitFor(mutex_, interval_);
  return !stopping_;
}

void ProgressPoller::Poll(const std::vector<std::string>& addresses) {
  SetThreadName("progress");
  std::vector<std::unique_ptr<progress::ProgressClient>> clients;
  for (const std::string& address : addresses) {
    clients.push_back(std::make_unique<progress::ProgressClient>(address));
  }
  do {
    for (size_t i = 0; i < clients.size(); ++i) {
      if (!Record(addresses[i], clients[i]->Fetch(kAnswerTime))) return;
    }
  } while (Pause());
}

}  // namespace tfjob::local
