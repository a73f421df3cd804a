#include "operator/kube/leader/leader_gate.h"

#include <nlohmann/json.hpp>

namespace tfjob::kube {
namespace {

// Returns "Pod ns/name" for a JSON object. A name or namespace that the metadata lacks is empty.
std::string Describe(objects::Kind kind, const Json& object) {
  const JsonField metadata = JsonField(object)["metadata"];
  return client::ToString({kind, metadata["namespace"].StringOr("").value_or(""),
                           metadata["name"].StringOr("").value_or("")});
}

}  // namespace

Status LeaderGate::Refuse(const char* verb, const std::string& what) {
  return FailedPrecondition(verb, " ", what, ": this process is not the leader (any more)");
}

StatusOr<client::Object> LeaderGate::Create(objects::Kind kind, const Json& object) {
  if (!leadership_.held()) return Refuse("create", Describe(kind, object));
  return ForwardingClient::Create(kind, object);
}

StatusOr<client::Object> LeaderGate::Update(objects::Kind kind, const Json& object) {
  if (!leadership_.held()) return Refuse("update", Describe(kind, object));
  return ForwardingClient::Update(kind, object);
}

StatusOr<client::Object> LeaderGate::UpdateStatus(objects::Kind kind, const Json& object) {
  if (!leadership_.held()) return Refuse("update the status of", Describe(kind, object));
  return ForwardingClient::UpdateStatus(kind, object);
}

StatusOr<client::Object> LeaderGate::Patch(const client::Key& key, const Json& merge_patch) {
  if (!leadership_.held()) return Refuse("patch", client::ToString(key));
  return ForwardingClient::Patch(key, merge_patch);
}

Status LeaderGate::Delete(const client::Key& key, const client::DeleteOptions& options) {
  if (!leadership_.held()) return Refuse("delete", client::ToString(key));
  return ForwardingClient::Delete(key, options);
}

}  // namespace tfjob::kube
