// Implements client::Client over the REST interface of an API server. rest_client.h documents the
// limits, deadlines and retries of calls. reflector.h implements the watches.
//
// Error messages contain the operation, the object and the server's message: `create Pod ns/a: pods
// "a" is forbidden: exceeded quota: …`.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "operator/client/client.h"
#include "operator/kube/client/reflector.h"
#include "operator/kube/client/watch_health.h"
#include "operator/kube/config/cluster_config.h"
#include "operator/kube/rest/rest_client.h"
#include "operator/kube/rest/transport.h"
#include "runtime/base/mutex.h"

namespace tfjob::kube {

struct KubeClientOptions {
  RestOptions rest;  // if host is "", it is taken from the configuration
  TransportOptions transport;
  ReflectorOptions watch;  // if seed is 0, a random seed is used
};

// Implements the calls, the watches and the discovery. Thread-safe. Subscriptions must be destroyed
// before the client. To renew a lease, use a separate client with a short deadline and no rate
// limit.
class KubeClient : public client::Client, public client::Discovery {
 public:
  static StatusOr<std::unique_ptr<KubeClient>> Create(const ClusterConfig& config,
                                                      const KubeClientOptions& options = {});
  KubeClient(std::unique_ptr<Transport> transport, std::shared_ptr<Credentials> credentials,
             const KubeClientOptions& options);

  // Makes all current and later calls fail with Cancelled. Call this if the process is about to
  // exit or has lost its lease. Subscriptions no longer report changes, but must still be
  // destroyed.
  void Stop() { rest_.Stop(); }

  StatusOr<client::Object> Get(const client::Key& key) override;
  StatusOr<Json> GetJson(const client::Key& key) override;
  StatusOr<std::vector<client::Object>> List(objects::Kind kind, const std::string& name_space,
                                             const client::LabelSelector& selector) override;
  StatusOr<client::Object> Create(objects::Kind kind, const Json& object) override;
  StatusOr<client::Object> Update(objects::Kind kind, const Json& object) override;
  StatusOr<client::Object> UpdateStatus(objects::Kind kind, const Json& object) override;
  StatusOr<client::Object> Patch(const client::Key& key, const Json& merge_patch) override;
  // The server deletes dependent objects in the background.
  Status Delete(const client::Key& key, const client::DeleteOptions& options) override;
  StatusOr<std::unique_ptr<client::Subscription>> Subscribe(objects::Kind kind,
                                                            const std::string& name_space,
                                                            const client::LabelSelector& selector,
                                                            client::WatchSink& sink) override;
  // Returns the subscriptions that are currently not working, and why.
  std::vector<WatchTrouble> Troubles() { return health_.Troubles(); }

  // Queries the server on every call.
  StatusOr<std::string> ApiVersion(objects::Kind kind) override;

  // Sends a GET for a path that does not belong to an object, such as "/version" or "/readyz", and
  // returns the response.
  StatusOr<std::string> GetText(const std::string& path);

 private:
  // Returns the API version to use in paths. For kinds with several versions, queries the server
  // the first time and caches the answer.
  StatusOr<std::string> VersionFor(objects::Kind kind);
  StatusOr<bool> Serves(objects::Kind kind, const std::string& version);
  StatusOr<std::set<std::string>> Versions();
  // Sends a GET for an object. `accept` is the value of the Accept header.
  StatusOr<HttpResponse> GetObject(const client::Key& key, const char* accept);
  // Requests a page of a list. Returns nullopt if the page must be requested in another way, and
  // changes `step` accordingly:
  //  - If the page is too long, `step` then requests half as many objects.
  //  - If the list's continuation has expired, `step` then requests the whole list, and `objects`
  //    is cleared.
  StatusOr<std::optional<HttpResponse>> GetPage(objects::Kind kind, const std::string& path,
                                                const client::LabelSelector& selector,
                                                WatchStep& step,
                                                std::vector<client::Object>& objects);
  StatusOr<client::Object> Write(std::string_view verb, std::string_view method,
                                 const client::Key& key, const std::string& path, const Json& body);
  StatusOr<client::Object> Put(std::string_view verb, objects::Kind kind, const Json& object,
                               std::string_view subresource);

  RestClient rest_;
  const ReflectorOptions watch_;
  WatchHealth health_;
  Mutex mutex_;
  std::map<objects::Kind, std::string> versions_ ABSL_GUARDED_BY(mutex_);
  uint64_t subscriptions_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace tfjob::kube
