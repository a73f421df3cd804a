#include "operator/local/process/runner.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "operator/local/process/log.h"
#include "operator/local/process/orphans.h"
#include "operator/local/process/pod_spec.h"
#include "runtime/base/file.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::process {
namespace {

constexpr uint64_t kWakeToken = 0;

const objects::Pod* PodOf(const client::Object& object) {
  const auto* pod = std::get_if<std::shared_ptr<const objects::Pod>>(&object);
  return pod == nullptr ? nullptr : pod->get();
}

bool HasEnded(const objects::Pod& pod) {
  return pod.phase == objects::PodPhase::kSucceeded || pod.phase == objects::PodPhase::kFailed;
}

// Returns the pod's grace period, at most a hundred years, so that adding it to a time does not
// overflow.
Duration GraceOf(const objects::Pod& pod) {
  constexpr int64_t kHundredYears = 100LL * 366 * 24 * 3600;
  const int64_t grace = pod.metadata.deletion_grace_period_seconds.value_or(30);
  return std::chrono::seconds(std::clamp<int64_t>(grace, 0, kHundredYears));
}

}  // namespace

StatusOr<std::unique_ptr<Runner>> Runner::Create(client::Client& client, RunnerOptions options,
                                                 Clock& clock) {
  std::unique_ptr<Runner> runner(new Runner(client, std::move(options), clock));
  RETURN_IF_ERROR(runner->Start());
  return runner;
}

Status Runner::Start() {
  RETURN_IF_ERROR(MakeDirectories(options_.state_dir + "/logs"));
  RETURN_IF_ERROR(MakeDirectories(options_.state_dir + "/pods"));
  ASSIGN_OR_RETURN(guardian_, Guardian::Create());
  if (options_.adopt_orphans) AdoptOrphans();
  epoll_ = FileDescriptor(epoll_create1(EPOLL_CLOEXEC));
  wake_ = FileDescriptor(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!epoll_.valid() || !wake_.valid()) return ErrnoStatus(errno, "epoll");
  epoll_event event{EPOLLIN, {}};
  event.data.u64 = kWakeToken;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0)
    return ErrnoStatus(errno, "epoll");
  thread_ = std::thread([this] { Loop(); });
  ASSIGN_OR_RETURN(subscription_,
                   client_.Subscribe(objects::Kind::kPod, options_.name_space, {}, *this));
  return OkStatus();
}

Runner::~Runner() {
  subscription_.reset();
  if (!thread_.joinable()) return;
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  eventfd_write(wake_.get(), 1);
  thread_.join();
}

void Runner::OnReplaced(std::vector<client::Object> objects) {
  Push({Change::Kind::kReplaced, std::move(objects)});
}

void Runner::OnUpserted(client::Object object) {
  Push({Change::Kind::kUpserted, {std::move(object)}});
}

void Runner::OnDeleted(client::Object last_state) {
  Push({Change::Kind::kDeleted, {std::move(last_state)}});
}

void Runner::Push(Change change) {
  {
    MutexLock lock(mutex_);
    changes_.push_back(std::move(change));
  }
  eventfd_write(wake_.get(), 1);
}

void Runner::Loop() {
  SetThreadName("process-runner");
  std::array<epoll_event, 64> events;
  for (;;) {
    const int count = epoll_wait(epoll_.get(), events.data(), events.size(), WaitMilliseconds());
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 != kWakeToken) OnProcessEnded(events[i].data.u64);
    }
    {
      MutexLock lock(mutex_);
      if (stopping_) break;
    }
    TakeChanges();
    StepDue();
  }
  pods_.clear();
  if (options_.adopt_orphans) CollectOrphans(KnownProcesses(), true);
}

int Runner::WaitMilliseconds() const {
  std::optional<Duration> wake;
  for (const auto& [uid, pod] : pods_) {
    const auto at = pod->wake_at();
    if (at) wake = wake ? std::min(*wake, *at) : at;
  }
  if (!wake) return -1;
  const Duration left = std::max(*wake - clock_.Monotonic(), Duration::zero());
  return static_cast<int>(
      std::chrono::ceil<std::chrono::milliseconds>(std::min<Duration>(left, 1h)).count());
}

void Runner::TakeChanges() {
  eventfd_t ignored = 0;
  eventfd_read(wake_.get(), &ignored);
  std::vector<Change> changes;
  {
    MutexLock lock(mutex_);
    changes.swap(changes_);
  }
  for (const Change& change : changes) {
    if (change.kind == Change::Kind::kReplaced) {
      Replace(change.objects);
    } else if (const objects::Pod* pod = PodOf(change.objects.front())) {
      change.kind == Change::Kind::kUpserted ? Upsert(*pod) : Remove(pod->metadata.uid);
    }
  }
}

void Runner::Replace(const std::vector<client::Object>& objects) {
  std::set<std::string> gone;
  for (const auto& [uid, pod] : pods_) gone.insert(uid);
  for (const client::Object& object : objects) {
    if (const objects::Pod* pod = PodOf(object)) {
      gone.erase(pod->metadata.uid);
      Upsert(*pod);
    }
  }
  for (const std::string& uid : gone) Remove(uid);
}

void Runner::Upsert(const objects::Pod& pod) {
  const std::string& uid = pod.metadata.uid;
  if (!pods_.contains(uid)) Adopt(pod);
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  if (pod.metadata.terminating()) {
    found->second->Delete(GraceOf(pod));
    Step(uid);
  }
}

void Runner::Adopt(const objects::Pod& pod) {
  const objects::ObjectMeta& metadata = pod.metadata;
  if (metadata.terminating()) {  // created before this runner, so it has no process
    DeletePod(client_, metadata);
    return;
  }
  if (HasEnded(pod)) return;
  const auto object = client_.GetJson({objects::Kind::kPod, metadata.name_space, metadata.name});
  if (!object.ok()) return;  // already gone
  auto spec = ParsePodSpec(*object);
  if (!spec.ok()) {
    kLog.Error("pod cannot be run", {{"pod", metadata.name}, {"error", spec.status()}});
    return;
  }
  if (spec->metadata.uid != metadata.uid) return;  // another pod has the name; its event follows
  const Shared shared{client_, options_, *guardian_, oom_, clock_};
  pods_.emplace(metadata.uid, std::make_unique<Supervisor>(shared, *std::move(spec), pod));
  Step(metadata.uid);
}

void Runner::Remove(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  found->second->Abandon();
  Step(uid);
}

void Runner::Step(const std::string& uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  Supervisor& pod = *found->second;
  pod.Step();
  WatchProcesses(uid, pod);
  if (pod.finished()) pods_.erase(found);
}

void Runner::StepDue() {
  std::vector<std::string> due;
  const Duration now = clock_.Monotonic();
  for (const auto& [uid, pod] : pods_) {
    if (const auto at = pod->wake_at(); at && *at <= now) due.push_back(uid);
  }
  for (const std::string& uid : due) Step(uid);
}

void Runner::WatchProcesses(const std::string& uid, Supervisor& pod) {
  for (size_t i = 0; i < pod.size(); ++i) {
    const int pidfd = pod.pidfd(i);
    const bool known = std::any_of(watched_.begin(), watched_.end(),
                                   [&](const auto& entry) { return entry.second.pidfd == pidfd; });
    if (pidfd < 0 || known) continue;
    epoll_event event{EPOLLIN, {}};
    event.data.u64 = next_token_;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, pidfd, &event) != 0) {
      kLog.Error("a process cannot be watched",
                 {{"pod", uid}, {"error", ErrnoStatus(errno, "epoll_ctl")}});
      continue;
    }
    watched_.emplace(next_token_++, Watched{uid, i, pidfd});
  }
}

void Runner::OnProcessEnded(uint64_t token) {
  const auto entry = watched_.find(token);
  if (entry == watched_.end()) return;
  const Watched ended = entry->second;
  watched_.erase(entry);
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, ended.pidfd, nullptr);
  const auto pod = pods_.find(ended.uid);
  if (pod == pods_.end()) return;
  pod->second->OnEnded(ended.container);
  Step(ended.uid);
  if (options_.adopt_orphans) CollectOrphans(KnownProcesses(), false);
}

std::set<pid_t> Runner::KnownProcesses() const {
  std::set<pid_t> known = {guardian_->pid()};
  for (const auto& [uid, pod] : pods_) {
    for (size_t i = 0; i < pod->size(); ++i) known.insert(pod->pid(i));
  }
  return known;
}

}  // namespace tfjob::process
