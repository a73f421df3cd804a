// Defines the interfaces through which the operator reads, writes and watches a cluster. They are
// implemented over an in-memory store (operator/local/store) and over REST (operator/kube). Both
// implementations pass the tests in operator/client/contract.h.
//
// Every call is synchronous and thread-safe, and has a deadline that the implementation sets. The
// time during which a call waits for the implementation's flow control counts towards this
// deadline. A call is sent again only if the server requests a delay (429, or 5xx with Retry-After)
// or, once, if the server rejects the credentials (401). However, a transport may send a request
// twice if a connection breaks. To make this harmless, every create has a name, every delete has a
// UID, and every update has a resourceVersion.
//
// Errors:
//  - NotFound
//  - AlreadyExists
//  - Aborted (409): the resourceVersion or UID does not match, or another writer was first.
//  - InvalidArgument (400, 413, 415, 422): with the server's message.
//  - PermissionDenied (403): includes admission and quotas.
//  - FailedPrecondition: the namespace is being deleted, or this process is not the leader.
//  - Unauthenticated (401)
//  - ResourceExhausted: the server kept answering 429, or flow control delayed the call beyond the
//    deadline.
//  - Internal (500): the server reports an internal failure, such as the failure of an admission
//    webhook.
//  - Unavailable, DeadlineExceeded: the server may or may not have executed the call. The caller
//    must read the object to find out.
//  - Cancelled: this process is stopping.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "operator/objects/kind.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::objects {
struct CustomResource;
struct ObjectMeta;
struct PackedResource;
struct Pod;
struct Service;
}  // namespace tfjob::objects

namespace tfjob::client {

// Kinds and their functions are defined in operator/objects.
using objects::IsClusterScoped;
using objects::Kind;
using objects::Name;
using objects::NewestApiVersion;

struct Key {
  Kind kind = Kind::kPod;
  std::string name_space;
  std::string name;

  auto operator<=>(const Key&) const = default;
};
std::string ToString(const Key& key);  // "Pod ns/name", "Node name"

// A compact, immutable and shared object. Pods and services are decoded. An object of any other
// kind is a CustomResource or, if it comes from a watch and the client packs watched objects, a
// PackedResource. Objects may lack metadata.managedFields, and a node may have only its metadata
// (without annotations), spec.taints, spec.unschedulable and status.conditions.
using Object =
    std::variant<std::shared_ptr<const objects::Pod>, std::shared_ptr<const objects::Service>,
                 std::shared_ptr<const objects::CustomResource>,
                 std::shared_ptr<const objects::PackedResource>>;
const objects::ObjectMeta& MetadataOf(const Object& object);
// Returns the object as a T (objects::Pod, objects::CustomResource, …), or nullptr if it has
// another type. A client that mixes up kinds therefore cannot crash the operator.
template <typename T>
std::shared_ptr<const T> As(const Object& object) {
  const auto* held = std::get_if<std::shared_ptr<const T>>(&object);
  return held == nullptr ? nullptr : *held;
}
// Decodes a JSON object of the given kind into its compact form.
StatusOr<Object> Decode(Kind kind, Json object);

// An equality-based selector: an object must have every label in it. An empty selector matches
// all objects.
using LabelSelector = std::map<std::string, std::string>;
bool Matches(const LabelSelector& selector, const objects::ObjectMeta& metadata);

class Reader {
 public:
  virtual ~Reader() = default;
  virtual StatusOr<Object> Get(const Key& key) = 0;
  // Returns the whole object as JSON, as the server stores it.
  virtual StatusOr<Json> GetJson(const Key& key) = 0;
  // Lists objects sorted by namespace and name. An empty `name_space` lists all namespaces.
  virtual StatusOr<std::vector<Object>> List(Kind kind, const std::string& name_space,
                                             const LabelSelector& selector) = 0;
};

struct DeleteOptions {
  std::optional<std::string> uid;               // Aborted if the object has another UID
  std::optional<int64_t> grace_period_seconds;  // if unset, the object's own; 0: none
};

class Writer {
 public:
  virtual ~Writer() = default;
  // Creates `object`, a whole JSON object with metadata.name and metadata.namespace. Returns the
  // stored object.
  virtual StatusOr<Object> Create(Kind kind, const Json& object) = 0;
  // Replaces the spec and the metadata, but not the status. If metadata.resourceVersion is set, it
  // must match the stored object's; otherwise, returns Aborted. API servers reject updates of
  // custom resources without a resourceVersion.
  virtual StatusOr<Object> Update(Kind kind, const Json& object) = 0;
  // Replaces only the status. metadata.resourceVersion is handled as in Update.
  virtual StatusOr<Object> UpdateStatus(Kind kind, const Json& object) = 0;
  // Applies a JSON merge patch (RFC 7386) to the object, but not to its status.
  virtual StatusOr<Object> Patch(const Key& key, const Json& merge_patch) = 0;
  virtual Status Delete(const Key& key, const DeleteOptions& options) = 0;
};

// Receives the objects of a subscription. OnReplaced is called first, with the whole list. After
// that, there is one call per change. OnReplaced is called again each time the implementation has
// had to list again; objects that are not in the new list are gone. An object that no longer
// matches the selector is reported as deleted. The implementation calls the sink from its own
// thread, in order and never concurrently. A call must return quickly.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  virtual void OnReplaced(std::vector<Object> objects) = 0;
  virtual void OnUpserted(Object object) = 0;
  virtual void OnDeleted(Object last_state) = 0;
};

// Ends the subscription when destroyed. Once the destructor has returned, no call to the sink is in
// progress, and none will follow. Must not be destroyed inside a call to its own sink.
class Subscription {
 public:
  virtual ~Subscription() = default;
};

class Watcher {
 public:
  virtual ~Watcher() = default;
  // The sink must outlive the subscription.
  virtual StatusOr<std::unique_ptr<Subscription>> Subscribe(Kind kind,
                                                            const std::string& name_space,
                                                            const LabelSelector& selector,
                                                            WatchSink& sink) = 0;
};

class Client : public Reader, public Writer, public Watcher {};

// Determines which kinds a server supports, and in which API version.
class Discovery {
 public:
  virtual ~Discovery() = default;
  // Returns the apiVersion under which objects of the kind are read and written: "v1",
  // "scheduling.k8s.io/v1beta1". Returns NotFound if the server does not serve the kind now; this
  // may change, for example when a CRD is installed.
  virtual StatusOr<std::string> ApiVersion(Kind kind) = 0;
};

}  // namespace tfjob::client
