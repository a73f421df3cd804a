#include "operator/control/manager.h"

#include <utility>

#include "operator/api/names.h"
#include "runtime/base/log.h"

namespace tfjob::control {
namespace {

const Logger kLog("control");

// How long a worker waits for the first lists before it looks again.
constexpr Duration kSyncPoll = 10ms;

}  // namespace

Manager::Manager(client::Client& client, Options options)
    : options_(std::move(options)),
      queue_(*options_.clock),
      cache_(*options_.clock, [this](const std::string& key) { queue_.Add(key); }),
      pool_("control-write", options_.parallel_writes),
      reconciler_(client, cache_, *options_.clock, pool_, options_.settings) {}

StatusOr<std::unique_ptr<Manager>> Manager::Start(client::Client& client, Options options) {
  std::unique_ptr<Manager> manager(new Manager(client, std::move(options)));
  RETURN_IF_ERROR(manager->Subscribe(client));
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

Status Manager::Subscribe(client::Client& client) {
  const client::LabelSelector ours = {{api::kOperatorNameLabel, api::kControllerName}};
  struct Watch {
    client::Kind kind;
    client::LabelSelector selector;
    client::WatchSink& sink;
  };
  // Children first: a job is looked at when its pods are known.
  for (const Watch& watch : {Watch{client::Kind::kPod, ours, cache_.pods()},
                             Watch{client::Kind::kService, ours, cache_.services()},
                             Watch{client::Kind::kTFJob, {}, cache_.jobs()}}) {
    ASSIGN_OR_RETURN(auto subscription,
                     client.Subscribe(watch.kind, options_.name_space, watch.selector, watch.sink));
    subscriptions_.push_back(std::move(subscription));
  }
  return OkStatus();
}

void Manager::Stop() {
  queue_.ShutDown();
  for (std::thread& worker : workers_) worker.join();
  workers_.clear();
  subscriptions_.clear();
}

void Manager::Work() {
  while (std::optional<std::string> key = queue_.Get()) ReconcileOne(*key);
}

bool Manager::Step() {
  const std::optional<std::string> key = queue_.TryGet();
  if (key) ReconcileOne(*key);
  return key.has_value();
}

void Manager::ReconcileOne(const std::string& key) {
  if (!cache_.Synced()) {
    queue_.Done(key);
    queue_.AddAfter(key, kSyncPoll);
    return;
  }
  const Outcome outcome = reconciler_.Reconcile(key);
  queue_.Done(key);
  if (outcome.status.ok()) {
    queue_.Forget(key);
  } else {
    // A conflict is everyday business.
    if (outcome.status.code() != StatusCode::kAborted) {
      kLog.Warning("job is tried again", {{"job", key}, {"error", outcome.status}});
    }
    queue_.AddBackedOff(key);
  }
  if (outcome.again_after) queue_.AddAfter(key, *outcome.again_after);
}

}  // namespace tfjob::control
