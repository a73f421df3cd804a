// Implements a Client that forwards every call to another client. Wrappers derive from this class
// and override the calls that they change.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator/client/client.h"

namespace tfjob::client {

// Forwards every call to the inner client. As thread-safe as that client.
class ForwardingClient : public Client {
 public:
  // `inner` must outlive this object.
  explicit ForwardingClient(Client& inner) : inner_(inner) {}
  // Not copyable: a copy of a wrapper would be sliced to a ForwardingClient and lose its overrides.
  ForwardingClient(const ForwardingClient&) = delete;

  StatusOr<Object> Get(const Key& key) override;
  StatusOr<Json> GetJson(const Key& key) override;
  StatusOr<std::vector<Object>> List(Kind kind, const std::string& name_space,
                                     const LabelSelector& selector) override;
  StatusOr<Object> Create(Kind kind, const Json& object) override;
  StatusOr<Object> Update(Kind kind, const Json& object) override;
  StatusOr<Object> UpdateStatus(Kind kind, const Json& object) override;
  StatusOr<Object> Patch(const Key& key, const Json& merge_patch) override;
  Status Delete(const Key& key, const DeleteOptions& options) override;
  StatusOr<std::unique_ptr<Subscription>> Subscribe(Kind kind, const std::string& name_space,
                                                    const LabelSelector& selector,
                                                    WatchSink& sink) override;

 private:
  Client& inner_;
};

}  // namespace tfjob::client
