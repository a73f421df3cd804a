#include "operator/local/run/progress_poller.h"

#include "runtime/base/thread_pool.h"

namespace tfjob::local {
namespace {

constexpr Duration kAnswerTime = 500ms;

}  // namespace

ProgressPoller::ProgressPoller(std::vector<std::string> addresses, KeyOf key_of, Duration interval)
    : key_of_(std::move(key_of)),
      interval_(interval),
      thread_([this, addresses = std::move(addresses)] { Poll(addresses); }) {}

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

StatusOr<progress::Progress> ProgressPoller::Fetch(
    const std::string& address, std::unique_ptr<progress::ProgressClient>& client) {
  if (client == nullptr) {
    ASSIGN_OR_RETURN(std::optional<wire::JobKey> key, key_of_(address));
    client = std::make_unique<progress::ProgressClient>(address, std::move(key));
  }
  StatusOr<progress::Progress> progress = client->Fetch(kAnswerTime);
  if (absl::IsFailedPrecondition(progress.status())) client = nullptr;
  return progress;
}

void ProgressPoller::Poll(const std::vector<std::string>& addresses) {
  SetThreadName("progress");
  std::vector<std::unique_ptr<progress::ProgressClient>> clients(addresses.size());
  do {
    for (size_t i = 0; i < clients.size(); ++i) {
      if (!Record(addresses[i], Fetch(addresses[i], clients[i]))) return;
    }
  } while (Pause());
}

}  // namespace tfjob::local
