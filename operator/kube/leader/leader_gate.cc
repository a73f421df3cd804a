#include "operator/kube/leader/leader_gate.h"

#include <nlohmann/json.hpp>

namespace tfjob::kube {
namespace {

// Returns "Pod ns/name" for a whole object, as far as its metadata is present.
std::string Describe(client::Kind kind, const Json& object) {
  const JsonField metadata = JsonField(object)["metadata"];
  return client::ToString({kind, metadata["namespace"].StringOr("").value_or(""),
                           metadata["name"].StringOr("").value_or("")});
}

}  // namespace

Status LeaderGate::Refuse(const char* verb, const std::string& what) {
  refused_.fetch_add(1, std::memory_order_relaxed);
  return FailedPrecondition(verb, " ", what, ": this process is not the leader (any more)");
}

StatusOr<client::Object> LeaderGate::Get(const client::Key& key) {
  return inner_.Get(key);
}

StatusOr<Json> LeaderGate::GetJson(const client::Key& key) {
  return inner_.GetJson(key);
}

StatusOr<std::vector<client::Object>> LeaderGate::List(client::Kind kind,
                                                       const std::string& name_space,
                                                       const client::LabelSelector& selector) {
  return inner_.List(kind, name_space, selector);
}

StatusOr<client::Object> LeaderGate::Create(client::Kind kind, const Json& object) {
  if (!leadership_.held()) return Refuse("create", Describe(kind, object));
  return inner_.Create(kind, object);
}

StatusOr<client::Object> LeaderGate::Update(client::Kind kind, const Json& object) {
  if (!leadership_.held()) return Refuse("update", Describe(kind, object));
  return inner_.Update(kind, object);
}

StatusOr<client::Object> LeaderGate::UpdateStatus(client::Kind kind, const Json& object) {
  if (!leadership_.held()) return Refuse("update the status of", Describe(kind, object));
  return inner_.UpdateStatus(kind, object);
}

StatusOr<client::Object> LeaderGate::Patch(const client::Key& key, const Json& merge_patch) {
  if (!leadership_.held()) return Refuse("patch", client::ToString(key));
  return inner_.Patch(key, merge_patch);
}

Status LeaderGate::Delete(const client::Key& key, const client::DeleteOptions& options) {
  if (!leadership_.held()) return Refuse("delete", client::ToString(key));
  return inner_.Delete(key, options);
}

StatusOr<std::unique_ptr<client::Subscription>> LeaderGate::Subscribe(
    client::Kind kind, const std::string& name_space, const client::LabelSelector& selector,
    client::WatchSink& sink) {
  return inner_.Subscribe(kind, name_space, selector, sink);
}

}  // namespace tfjob::kube
