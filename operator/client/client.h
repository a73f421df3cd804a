// The operator's view of a cluster: read, write, watch. Implemented over an in-memory store
// (operator/local/store) and over REST (operator/kube); both pass the suite in
// operator/client/contract.h.
//
// Every call is synchronous, thread-safe and has a deadline of the implementation. Up to that
// deadline it may wait: for the implementation's own flow control, and when the server asks for
// patience (429 or 5xx with Retry-After), after which it is sent again. Nothing else is tried again,
// but a transport may send a request twice when a connection breaks: creates carry a name,
// deletes a UID, updates a resourceVersion.
//
// Errors: NotFound; AlreadyExists; Aborted (409: the resourceVersion or UID precondition does not
// hold, or somebody else was first); InvalidArgument (400, 413, 415, 422; the server's message);
// PermissionDenied (403, admission and quotas included); FailedPrecondition (the namespace is being
// deleted); Unauthenticated (401); ResourceExhausted (429 until the deadline); Internal (500: the
// server says what failed inside it, such as an admission webhook), Unavailable and DeadlineExceeded
// (the server may have done it or not: read again); Cancelled (we are stopping).
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "operator/objects/custom_resource.h"
#include "operator/objects/pod.h"
#include "operator/objects/service.h"
#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::client {

enum class Kind {
  kTFJob,
  kPod,
  kService,
  kConfigMap,
  kEvent,                 // core/v1
  kPodGroup,              // of Volcano
  kCoschedulingPodGroup,  // of scheduler-plugins
  kWorkload,              // of Kubernetes itself (scheduling.k8s.io), as is the next
  kNativePodGroup,
  kLease,
  kNode,
};
// As in "kind" of the objects: "Pod". The three pod groups have the same name.
std::string_view Name(Kind kind);
// Whether objects of that kind have no namespace: nodes.
bool IsClusterScoped(Kind kind);
// The newest apiVersion of that kind that this project knows: "scheduling.k8s.io/v1beta1". A server
// may have an older one (Discovery).
std::string_view NewestApiVersion(Kind kind);

struct Key {
  Kind kind = Kind::kPod;
  std::string name_space;
  std::string name;

  auto operator<=>(const Key&) const = default;
};
std::string ToString(const Key& key);  // "Pod ns/name", "Node name"

// Compact, immutable, shared: pods and services decoded, every other kind as CustomResource. What
// lists and watches give may lack metadata.managedFields, and nodes all but their metadata,
// spec.taints, spec.unschedulable and status.conditions.
using Object =
    std::variant<std::shared_ptr<const objects::Pod>, std::shared_ptr<const objects::Service>,
                 std::shared_ptr<const objects::CustomResource>>;
const objects::ObjectMeta& MetadataOf(const Object& object);
// Decodes a JSON object of that kind into its compact form.
StatusOr<Object> Decode(Kind kind, Json object);

// Equality-based: every pair must match. Empty selects everything.
using LabelSelector = std::map<std::string, std::string>;
bool Matches(const LabelSelector& selector, const objects::ObjectMeta& metadata);

class Reader {
 public:
  virtual ~Reader() = default;
  virtual StatusOr<Object> Get(const Key& key) = 0;
  // The whole object as JSON, as the server holds it.
  virtual StatusOr<Json> GetJson(const Key& key) = 0;
  // `name_space` "" lists all namespaces. Sorted by namespace and name.
  virtual StatusOr<std::vector<Object>> List(Kind kind, const std::string& name_space,
                                             const LabelSelector& selector) = 0;
};

struct DeleteOptions {
  std::optional<std::string> uid;               // precondition: Aborted when the object has another
  std::optional<int64_t> grace_period_seconds;  // default: the object's own; 0: at once
};

class Writer {
 public:
  virtual ~Writer() = default;
  // `object` is a whole JSON object with metadata.name and metadata.namespace. Gives what the
  // server stored.
  virtual StatusOr<Object> Create(Kind kind, const Json& object) = 0;
  // Replaces spec and metadata (not status). With metadata.resourceVersion set it must match
  // (Aborted); API servers refuse custom resources without it.
  virtual StatusOr<Object> Update(Kind kind, const Json& object) = 0;
  // Replaces the status only; metadata.resourceVersion as above.
  virtual StatusOr<Object> UpdateStatus(Kind kind, const Json& object) = 0;
  // A JSON merge patch (RFC 7386) on the object (not on its status).
  virtual StatusOr<Object> Patch(const Key& key, const Json& merge_patch) = 0;
  virtual Status Delete(const Key& key, const DeleteOptions& options) = 0;
};

// Receives a kind's objects: first Replaced with the whole list, then one call a change; Replaced
// again whenever the implementation had to list anew (what is absent is gone). An object that stops
// matching the selector is deleted for the sink. Calls to one sink come one at a time, in order,
// from a thread of the implementation, and must return quickly.
class WatchSink {
 public:
  virtual ~WatchSink() = default;
  virtual void OnReplaced(std::vector<Object> objects) = 0;
  virtual void OnUpserted(Object object) = 0;
  virtual void OnDeleted(Object last_state) = 0;
};

// Ends the subscription when destroyed: no call to the sink is under way or will come afterwards.
// Not to be destroyed inside a call to its own sink.
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

// What a server knows beside the kinds that every cluster has.
class Discovery {
 public:
  virtual ~Discovery() = default;
  // The apiVersion under which objects of the kind are read and written: "v1",
  // "scheduling.k8s.io/v1beta1". NotFound when the server does not serve the kind (now: a CRD may
  // come later).
  virtual StatusOr<std::string> ApiVersion(Kind kind) = 0;
};

}  // namespace tfjob::client
