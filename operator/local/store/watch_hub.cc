#include "operator/local/store/watch_hub.h"

#include <algorithm>
#include <utility>

#include "operator/objects/metadata.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::store {

class WatchHub::Watch {
 public:
  Watch(objects::Kind kind, std::string name_space, client::LabelSelector selector,
        client::WatchSink& sink)
      : kind(kind), name_space(std::move(name_space)), selector(std::move(selector)), sink(sink) {}

  bool Wants(const client::Object& object) const {
    const objects::ObjectMeta& metadata = client::MetadataOf(object);
    return (name_space.empty() || name_space == metadata.name_space) &&
           client::Matches(selector, metadata);
  }

  const objects::Kind kind;
  const std::string name_space;
  const client::LabelSelector selector;
  client::WatchSink& sink;
  // True while the watch is cut. Protected by the hub's mutex.
  bool cut = false;
  std::optional<int64_t> seen;  // the newest version seen; nullopt before the first list
};

namespace {

class HubSubscription : public client::Subscription {
 public:
  explicit HubSubscription(std::function<void()> end) : end_(std::move(end)) {}
  ~HubSubscription() override { end_(); }

 private:
  const std::function<void()> end_;
};

}  // namespace

WatchHub::WatchHub(bool by_hand, bool keep_changes)
    : by_hand_(by_hand), keep_changes_(keep_changes) {
  if (!by_hand_) thread_ = std::thread([this] { Serve(); });
}

WatchHub::~WatchHub() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyAll();
  if (thread_.joinable()) thread_.join();
}

std::unique_ptr<client::Subscription> WatchHub::Subscribe(
    objects::Kind kind, std::string name_space, client::LabelSelector selector,
    client::WatchSink& sink, std::vector<client::Object> objects, int64_t version) {
  auto watch = std::make_shared<Watch>(kind, std::move(name_space), std::move(selector), sink);
  std::erase_if(objects, [&](const client::Object& object) { return !watch->Wants(object); });
  MutexLock lock(mutex_);
  watches_.push_back(watch);
  Push(watch, Change::Type::kReplaced, std::move(objects), version);
  return std::make_unique<HubSubscription>([this, watch] { End(watch); });
}

bool WatchHub::HasWatchers(objects::Kind kind) {
  MutexLock lock(mutex_);
  return std::any_of(watches_.begin(), watches_.end(),
                     [kind](const auto& watch) { return watch->kind == kind; });
}

void WatchHub::Publish(objects::Kind kind, const client::Object* before,
                       const client::Object* after, int64_t version) {
  MutexLock lock(mutex_);
  for (const std::shared_ptr<Watch>& watch : watches_) {
    if (watch->kind == kind && !watch->cut) Tell(watch, before, after, version);
  }
  if (!keep_changes_) return;
  Kept kept{version, kind, std::nullopt, std::nullopt};
  if (before != nullptr) kept.before = *before;
  if (after != nullptr) kept.after = *after;
  kept_.push_back(std::move(kept));
}

void WatchHub::Tell(const std::shared_ptr<Watch>& watch, const client::Object* before,
                    const client::Object* after, int64_t version) {
  if (after != nullptr && watch->Wants(*after)) {
    Push(watch, Change::Type::kUpserted, {*after}, version);
  } else if (before != nullptr && watch->Wants(*before)) {
    Push(watch, Change::Type::kDeleted, {*before}, version);
  }
}

void WatchHub::Push(const std::shared_ptr<Watch>& watch, Change::Type type,
                    std::vector<client::Object> objects, int64_t version) {
  changes_.push_back({watch, type, std::move(objects), version});
  if (!by_hand_) changed_.NotifyAll();
}

void WatchHub::Cut() {
  MutexLock lock(mutex_);
  for (const std::shared_ptr<Watch>& watch : watches_) watch->cut = true;
  changes_.clear();
}

void WatchHub::CutOne(uint64_t choice) {
  MutexLock lock(mutex_);
  if (watches_.empty()) return;
  const std::shared_ptr<Watch>& watch = watches_[choice % watches_.size()];
  watch->cut = true;
  std::erase_if(changes_, [&](const Change& change) { return change.watch == watch; });
}

void WatchHub::CutKind(objects::Kind kind) {
  MutexLock lock(mutex_);
  for (const std::shared_ptr<Watch>& watch : watches_) {
    if (watch->kind != kind) continue;
    watch->cut = true;
    std::erase_if(changes_, [&](const Change& change) { return change.watch == watch; });
  }
}

bool WatchHub::HasCut() {
  MutexLock lock(mutex_);
  return std::any_of(watches_.begin(), watches_.end(),
                     [](const std::shared_ptr<Watch>& watch) { return watch->cut; });
}

void WatchHub::Mend(const std::function<std::vector<client::Object>(objects::Kind)>& list,
                    int64_t version) {
  MutexLock lock(mutex_);
  for (const std::shared_ptr<Watch>& watch : watches_) {
    if (!std::exchange(watch->cut, false)) continue;
    if (!watch->seen || *watch->seen < compacted_) {
      std::vector<client::Object> objects = list(watch->kind);
      std::erase_if(objects, [&](const client::Object& object) { return !watch->Wants(object); });
      Push(watch, Change::Type::kReplaced, std::move(objects), version);
      continue;
    }
    for (const Kept& kept : kept_) {
      if (kept.kind != watch->kind || kept.version <= *watch->seen) continue;
      Tell(watch, kept.before ? &*kept.before : nullptr, kept.after ? &*kept.after : nullptr,
           kept.version);
    }
  }
}

void WatchHub::Bookmark(int64_t version) {
  MutexLock lock(mutex_);
  for (const std::shared_ptr<Watch>& watch : watches_) {
    const bool behind = std::any_of(changes_.begin(), changes_.end(),
                                    [&](const Change& change) { return change.watch == watch; });
    if (!watch->cut && !behind) watch->seen = version;
  }
}

void WatchHub::Compact(int64_t version) {
  MutexLock lock(mutex_);
  compacted_ = version;
  kept_.clear();
}

bool WatchHub::DeliverOne() {
  Change change;
  {
    MutexLock lock(mutex_);
    if (changes_.empty()) return false;
    change = std::move(changes_.front());
    changes_.pop_front();
    delivering_ = change.watch.get();
    change.watch->seen = change.version;
  }
  Pass(std::move(change));
  return true;
}

bool WatchHub::DeliverFromOne(uint64_t choice) {
  Change change;
  {
    MutexLock lock(mutex_);
    std::vector<std::deque<Change>::iterator> oldest;
    for (const std::shared_ptr<Watch>& watch : watches_) {
      const auto first = std::find_if(changes_.begin(), changes_.end(),
                                      [&](const Change& each) { return each.watch == watch; });
      if (first != changes_.end()) oldest.push_back(first);
    }
    if (oldest.empty()) return false;
    const auto chosen = oldest[choice % oldest.size()];
    change = std::move(*chosen);
    changes_.erase(chosen);
    delivering_ = change.watch.get();
    change.watch->seen = change.version;
  }
  Pass(std::move(change));
  return true;
}

void WatchHub::Pass(Change change) {
  client::WatchSink& sink = change.watch->sink;
  switch (change.type) {
    case Change::Type::kReplaced:
      sink.OnReplaced(std::move(change.objects));
      break;
    case Change::Type::kUpserted:
      sink.OnUpserted(std::move(change.objects[0]));
      break;
    case Change::Type::kDeleted:
      sink.OnDeleted(std::move(change.objects[0]));
      break;
  }
  {
    MutexLock lock(mutex_);
    delivering_ = nullptr;
  }
  changed_.NotifyAll();
}

size_t WatchHub::Deliver(size_t most) {
  size_t delivered = 0;
  while (delivered < most && DeliverOne()) ++delivered;
  return delivered;
}

void WatchHub::Serve() {
  SetThreadName("store-watch");
  while (true) {
    {
      MutexLock lock(mutex_);
      while (changes_.empty() && !stopping_) changed_.Wait(mutex_);
      if (stopping_) return;
    }
    DeliverOne();
  }
}

void WatchHub::End(const std::shared_ptr<Watch>& watch) {
  MutexLock lock(mutex_);
  std::erase(watches_, watch);
  std::erase_if(changes_, [&](const Change& change) { return change.watch == watch; });
  while (delivering_ == watch.get()) changed_.Wait(mutex_);
}

}  // namespace tfjob::store
