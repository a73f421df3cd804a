// Implements a Client that passes on writes only while this process leads. Reads and watches always
// pass.
#pragma once

#include <string>

#include "operator/client/forwarding_client.h"
#include "operator/kube/leader/leadership.h"

namespace tfjob::kube {

// Checks the leadership before each write. If this process does not lead, the write fails
// immediately with FailedPrecondition, without a call to the server. Thread-safe. When the lease is
// lost, LeaseCallbacks::on_lost must cancel writes that have already been passed to `inner`.
class LeaderGate : public client::ForwardingClient {
 public:
  // Both arguments must outlive the gate.
  LeaderGate(client::Client& inner, const Leadership& leadership)
      : ForwardingClient(inner), leadership_(leadership) {}

  StatusOr<client::Object> Create(objects::Kind kind, const Json& object) override;
  StatusOr<client::Object> Update(objects::Kind kind, const Json& object) override;
  StatusOr<client::Object> UpdateStatus(objects::Kind kind, const Json& object) override;
  StatusOr<client::Object> Patch(const client::Key& key, const Json& merge_patch) override;
  Status Delete(const client::Key& key, const client::DeleteOptions& options) override;

 private:
  Status Refuse(const char* verb, const std::string& what);

  const Leadership& leadership_;
};

}  // namespace tfjob::kube
