#include "operator/control/manager.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "operator/api/names.h"
#include "operator/control/cache/cache.h"
#include "operator/control/dependencies.h"
#include "operator/control/log.h"
#include "operator/control/native_api.h"
#include "operator/control/outcome.h"
#include "operator/control/pacing.h"
#include "operator/control/queue/work_queue.h"
#include "operator/control/reconcile.h"
#include "operator/policy/facts/gang_scheduler.h"
#include "operator/policy/facts/network_policy.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::control {
namespace {

// The backoff after a failed reconcile. The maximum limits the time until the operator notices, for
// example, that a quota has room again.
constexpr BackoffPolicy kBackoff = {.initial = 5ms, .maximum = 2min};

// How long jobs with a gang wait for the list of pod groups. If a scheduler is not installed, its
// list never arrives; the reason is then reported by the attempt to create a pod group. Jobs wait
// longer for the scheduler that the operator's flag names, because that scheduler's list may be
// long at startup.
constexpr Duration kPodGroupPatience = 3s;
constexpr Duration kRequiredPodGroupPatience = 30s;
// How long jobs wait for the list of network policies, which never arrives if the operator lacks
// permission to read them.
constexpr Duration kNetworkPolicyPatience = 30s;

// Selects the objects that the operator creates.
client::LabelSelector OurObjects() {
  return {{api::kOperatorNameLabel, api::kControllerName}};
}

std::set<std::string> NamespacesOf(const ManagerOptions& options) {
  std::set<std::string> name_spaces(options.name_spaces.begin(), options.name_spaces.end());
  if (name_spaces.empty()) name_spaces.insert("");
  return name_spaces;
}

// Returns how many workers one namespace may keep busy: all of them, or all but one (at least 1) if
// the operator watches more than one namespace. (If `workers` is 0, Step() acts as the only
// worker.)
size_t MostPerNamespace(const ManagerOptions& options) {
  const std::set<std::string> name_spaces = NamespacesOf(options);
  const bool has_others = name_spaces.size() > 1 || name_spaces.contains("");
  return static_cast<size_t>(std::max(1, options.workers - (has_others ? 1 : 0)));
}

Result ResultOf(const Outcome& outcome) {
  switch (outcome.next) {
    case Next::kReadAgain:
      return Result::kRequeue;
    case Next::kFailed:
      return Result::kError;
    case Next::kDone:
    case Next::kJobIsGone:
      break;
  }
  return outcome.again_after ? Result::kRequeueAfter : Result::kSuccess;
}

}  // namespace

Manager::Manager(client::Client& client, ManagerOptions options)
    : options_(std::move(options)),
      client_(client),
      queue_(std::make_unique<WorkQueue>(*options_.clock, kBackoff, *options_.observer,
                                         MostPerNamespace(options_))),
      cache_(std::make_unique<Cache>(
          *options_.clock,
          [this](const std::string& key, Urgency urgency) { queue_->Add(key, urgency); })),
      pool_(std::make_unique<ThreadPool>("control-write", options_.parallel_writes)),
      native_api_(std::make_unique<NativeApi>(options_.discovery, *options_.clock)),
      reconciler_(std::make_unique<Reconciler>(
          Dependencies{
              client, *cache_, *options_.clock, *pool_, *options_.observer, *native_api_,
              [this](policy::GangScheduler scheduler) { return WatchPodGroups(scheduler, false); },
              [this](const std::string& key) { queue_->RecordProgress(key); },
              [this] { return SeesNetworkPolicies(); }},
          options_.settings)) {}

StatusOr<std::unique_ptr<Manager>> Manager::Start(client::Client& client, ManagerOptions options) {
  std::unique_ptr<Manager> manager(new Manager(client, std::move(options)));
  const policy::GangScheduler gang = manager->options_.settings.policy.gang.scheduler;
  if (gang != policy::GangScheduler::kNone) manager->WatchPodGroups(gang, true);
  manager->WatchNetworkPolicies();
  for (const std::string& name_space : NamespacesOf(manager->options_)) {
    RETURN_IF_ERROR(manager->Subscribe(name_space));
  }
  for (int i = 0; i < manager->options_.workers; ++i) {
    manager->workers_.emplace_back([manager = manager.get()] {
      SetThreadName("control");
      manager->Work();
    });
  }
  return manager;
}

Manager::~Manager() {
  Stop();
}

bool Manager::Synced() {
  return cache_->Synced();
}

std::vector<std::string> Manager::Waiting() {
  return cache_->MissingLists();
}

Numbers Manager::Count() {
  return {cache_->Count(), queue_->Count()};
}

QueueNumbers Manager::CountQueue() {
  return queue_->Count();
}

std::optional<Duration> Manager::NextTimer() {
  return queue_->NextTimer();
}

Status Manager::Subscribe(const std::string& name_space) {
  const Cache::Scope scope = cache_->AddScope(name_space);
  const client::LabelSelector ours = OurObjects();
  struct Watch {
    objects::Kind kind;
    client::LabelSelector selector;
    client::WatchSink& sink;
  };
  // Subscribe to pods and services first, because a job is reconciled only once they are known.
  for (const Watch& watch : {Watch{objects::Kind::kPod, ours, scope.pods},
                             Watch{objects::Kind::kService, ours, scope.services},
                             Watch{objects::Kind::kTFJob, {}, scope.jobs}}) {
    ASSIGN_OR_RETURN(auto subscription,
                     client_.Subscribe(watch.kind, name_space, watch.selector, watch.sink));
    MutexLock lock(mutex_);
    subscriptions_.push_back(std::move(subscription));
  }
  return OkStatus();
}

bool Manager::WatchPodGroups(policy::GangScheduler scheduler, bool required) {
  std::string version;
  if (scheduler == policy::GangScheduler::kNative) {
    version = native_api_->Version().value_or("");
    if (policy::NativeVersionOf(version) == policy::NativeVersion::kNone) return true;
  }
  const Duration now = options_.clock->Monotonic();
  const std::vector<objects::Kind> kinds = policy::GangKindsOf(scheduler);
  MutexLock lock(mutex_);
  const auto [found, is_new] = pod_groups_.try_emplace(scheduler);
  GroupWatch& watch = found->second;
  if (is_new || watch.version != version) {
    watch.subscriptions.clear();
    for (const objects::Kind kind : kinds) cache_->DropGroups(kind);
    watch = {now, version, required || watch.required, {}};
    for (const objects::Kind kind : kinds) SubscribeToGroups(kind, {}, watch);
  }
  const Duration patience = watch.required ? kRequiredPodGroupPatience : kPodGroupPatience;
  return now - watch.since > patience ||
         std::all_of(kinds.begin(), kinds.end(),
                     [this](objects::Kind kind) { return cache_->GroupsSynced(kind); });
}

void Manager::WatchNetworkPolicies() {
  if (!policy::LetsJobsHaveOne(options_.settings.policy.network_policies)) return;
  MutexLock lock(mutex_);
  network_policies_.since = options_.clock->Monotonic();
  SubscribeToGroups(objects::Kind::kNetworkPolicy, OurObjects(), network_policies_);
}

bool Manager::SeesNetworkPolicies() {
  MutexLock lock(mutex_);
  return options_.clock->Monotonic() - network_policies_.since > kNetworkPolicyPatience ||
         cache_->GroupsSynced(objects::Kind::kNetworkPolicy);
}

void Manager::SubscribeToGroups(objects::Kind kind, const client::LabelSelector& selector,
                                GroupWatch& watch) {
  for (const std::string& name_space : NamespacesOf(options_)) {
    auto subscription = client_.Subscribe(kind, name_space, selector,
                                          cache_->AddGroups(kind, name_space, watch.required));
    if (subscription.ok()) {
      watch.subscriptions.push_back(*std::move(subscription));
    } else {
      kLog.Warning("objects cannot be watched",
                   {{"watch", client::ToString({kind, name_space, "*"})},
                    {"api", objects::NewestApiVersion(kind)},
                    {"error", subscription.status()}});
    }
  }
}

void Manager::Stop() {
  reconciler_->Stop();
  queue_->ShutDown();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  std::vector<std::unique_ptr<client::Subscription>> subscriptions;
  {
    MutexLock lock(mutex_);
    subscriptions.swap(subscriptions_);
    for (auto& [scheduler, watch] : pod_groups_) {
      std::move(watch.subscriptions.begin(), watch.subscriptions.end(),
                std::back_inserter(subscriptions));
    }
    pod_groups_.clear();
    std::move(network_policies_.subscriptions.begin(), network_policies_.subscriptions.end(),
              std::back_inserter(subscriptions));
    network_policies_.subscriptions.clear();
  }
}

void Manager::Work() {
  while (std::optional<std::string> key = queue_->Get()) ReconcileOne(*key);
}

bool Manager::Step() {
  const std::optional<std::string> key = queue_->TryGet();
  if (key) ReconcileOne(*key);
  return key.has_value();
}

void Manager::ReconcileOne(const std::string& key) {
  if (!cache_->Synced(key)) return queue_->Done(key);  // RecordList adds it again
  const Duration begin = options_.clock->Monotonic();
  const Outcome outcome = reconciler_->Reconcile(key);
  options_.observer->OnReconciled(ResultOf(outcome), options_.clock->Monotonic() - begin);
  queue_->Done(key);
  std::optional<Duration> again_after = outcome.again_after;
  if (outcome.NeedsRetry()) {
    // Do not log conflicts and cancellations at shutdown, because they are routine.
    if (outcome.next == Next::kFailed && !absl::IsCancelled(outcome.error)) {
      kLog.Warning("reconcile failed, will be retried",
                   {{"job", key}, {"reconcile", outcome.id}, {"error", outcome.error}});
    }
    queue_->AddBackedOff(key);
    again_after = BesideBackoff(again_after);
  } else {
    queue_->Forget(key);
  }
  if (again_after) queue_->AddAfter(key, *again_after);
}

}  // namespace tfjob::control
