// A Client whose writes pass only while this process leads. Reads and watches always pass, so that
// the caches of a standby are warm.
#pragma once

#include <string>

#include "operator/client/forwarding_client.h"
#include "operator/kube/leader/leadership.h"

namespace tfjob::kube {

// Thread-safe. After the lease is lost, every write fails with FailedPrecondition at once, without
// a call. The caller's on_lost must cancel writes that were already handed to `inner`.
class LeaderGate : public client::ForwardingClient {
 public:
  // Both must outlive it.
  LeaderGate(client::Client& inner, const Leadership& leadership)
      : ForwardingClient(inner), leadership_(leadership) {}

  StatusOr<client::Object> Create(client::Kind kind, const Json& object) override;
  StatusOr<client::Object> Update(client::Kind kind, const Json& object) override;
  StatusOr<client::Object> UpdateStatus(client::Kind kind, const Json& object) override;
  StatusOr<client::Object> Patch(const client::Key& key, const Json& merge_patch) override;
  Status Delete(const client::Key& key, const client::DeleteOptions& options) override;

 private:
  Status Refuse(const char* verb, const std::string& what);

  const Leadership& leadership_;
};

}  // namespace tfjob::kube
