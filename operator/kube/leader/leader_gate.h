// A Client whose writes pass only while this process leads. Reads and watches always pass, so that
// the caches of a standby are warm.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "operator/client/client.h"
#include "operator/kube/leader/leadership.h"

namespace tfjob::kube {

// Thread-safe. After the lease is lost, every write fails with FailedPrecondition at once, without
// a call. The caller's on_lost must cancel writes that were already handed to `inner`.
class LeaderGate : public client::Client {
 public:
  // Both must outlive it.
  LeaderGate(client::Client& inner, const Leadership& leadership)
      : inner_(inner), leadership_(leadership) {}

  StatusOr<client::Object> Get(const client::Key& key) override;
  StatusOr<Json> GetJson(const client::Key& key) override;
  StatusOr<std::vector<client::Object>> List(client::Kind kind, const std::string& name_space,
                                             const client::LabelSelector& selector) override;
  StatusOr<client::Object> Create(client::Kind kind, const Json& object) override;
  StatusOr<client::Object> Update(client::Kind kind, const Json& object) override;
  StatusOr<client::Object> UpdateStatus(client::Kind kind, const Json& object) override;
  StatusOr<client::Object> Patch(const client::Key& key, const Json& merge_patch) override;
  Status Delete(const client::Key& key, const client::DeleteOptions& options) override;
  StatusOr<std::unique_ptr<client::Subscription>> Subscribe(client::Kind kind,
                                                            const std::string& name_space,
                                                            const client::LabelSelector& selector,
                                                            client::WatchSink& sink) override;

  // The number of refused writes.
  int64_t refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  Status Refuse(const char* verb, const std::string& what);

  client::Client& inner_;
  const Leadership& leadership_;
  std::atomic<int64_t> refused_{0};
};

}  // namespace tfjob::kube
