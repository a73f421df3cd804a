// Defines a WatchSink that records the calls to it, for tests.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "operator/client/client.h"
#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"

namespace tfjob::kube {

// Records each call as text: "replaced a b", "upserted a". Thread-safe.
class CallLog : public client::WatchSink {
 public:
  void OnReplaced(std::vector<client::Object> objects) override {
    std::string call = "replaced";
    for (const client::Object& object : objects) call += " " + client::MetadataOf(object).name;
    Add(call);
  }
  void OnUpserted(client::Object object) override {
    Add("upserted " + client::MetadataOf(object).name);
  }
  void OnDeleted(client::Object object) override {
    Add("deleted " + client::MetadataOf(object).name);
  }

  // Waits up to 10 s for `count` calls, and returns all calls.
  std::vector<std::string> Await(size_t count) {
    const auto deadline = std::chrono::steady_clock::now() + 10s;
    MutexLock lock(mutex_);
    while (calls_.size() < count && changed_.WaitUntil(mutex_, deadline)) {
    }
    return calls_;
  }

 private:
  void Add(std::string call) {
    MutexLock lock(mutex_);
    calls_.push_back(std::move(call));
    changed_.NotifyAll();
  }

  Mutex mutex_;
  CondVar changed_;
  std::vector<std::string> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::kube
