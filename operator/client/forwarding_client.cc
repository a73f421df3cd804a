#include "operator/client/forwarding_client.h"

#include <nlohmann/json.hpp>

namespace tfjob::client {

StatusOr<Object> ForwardingClient::Get(const Key& key) {
  return inner_.Get(key);
}

StatusOr<Json> ForwardingClient::GetJson(const Key& key) {
  return inner_.GetJson(key);
}

StatusOr<std::vector<Object>> ForwardingClient::List(Kind kind, const std::string& name_space,
                                                     const LabelSelector& selector) {
  return inner_.List(kind, name_space, selector);
}

StatusOr<Object> ForwardingClient::Create(Kind kind, const Json& object) {
  return inner_.Create(kind, object);
}

StatusOr<Object> ForwardingClient::Update(Kind kind, const Json& object) {
  return inner_.Update(kind, object);
}

StatusOr<Object> ForwardingClient::UpdateStatus(Kind kind, const Json& object) {
  return inner_.UpdateStatus(kind, object);
}

StatusOr<Object> ForwardingClient::Patch(const Key& key, const Json& merge_patch) {
  return inner_.Patch(key, merge_patch);
}

Status ForwardingClient::Delete(const Key& key, const DeleteOptions& options) {
  return inner_.Delete(key, options);
}

StatusOr<std::unique_ptr<Subscription>> ForwardingClient::Subscribe(Kind kind,
                                                                    const std::string& name_space,
                                                                    const LabelSelector& selector,
                                                                    WatchSink& sink) {
  return inner_.Subscribe(kind, name_space, selector, sink);
}

}  // namespace tfjob::client
