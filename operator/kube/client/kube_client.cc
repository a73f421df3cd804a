#include "operator/kube/client/kube_client.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "operator/kube/client/decode.h"
#include "operator/kube/client/decode_protobuf.h"
#include "operator/kube/client/resource.h"
#include "operator/kube/config/url.h"
#include "operator/kube/rest/envelope.h"
#include "operator/objects/kind.h"
#include "runtime/base/log.h"

namespace tfjob::kube {
namespace {

using client::Key;
using client::Object;
using objects::Kind;

const Logger kClientLog("kube");

constexpr char kJson[] = "application/json";
constexpr char kMergePatch[] = "application/merge-patch+json";
constexpr int kPageSize = 500;

StatusOr<Key> KeyOf(Kind kind, const Json& object) {
  const JsonField metadata = JsonField(object)["metadata"];
  Key key{kind, "", ""};
  ASSIGN_OR_RETURN(key.name_space, metadata["namespace"].StringOr(""));
  ASSIGN_OR_RETURN(key.name, metadata["name"].StringOr(""));
  if (key.name.empty()) {
    return InvalidArgument(client::Name(kind), ": metadata.name: expected a name, got none");
  }
  if (key.name_space.empty() != client::IsClusterScoped(kind)) {
    return InvalidArgument(client::ToString(key), ": metadata.namespace: expected ",
                           client::IsClusterScoped(kind) ? "none" : "a namespace, got none");
  }
  return key;
}

const char* AcceptFor(Kind kind) {
  return HasProtobuf(kind) ? kAcceptProtobuf : kAcceptJson;
}

Status Explain(const Status& status, std::string_view verb, const std::string& what) {
  return Annotate(status, StrCat(verb, " ", what));
}

Json DeleteBody(const client::DeleteOptions& options) {
  Json body = {
      {"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", "Background"}};
  if (options.uid) body["preconditions"] = {{"uid", *options.uid}};
  if (options.grace_period_seconds) body["gracePeriodSeconds"] = *options.grace_period_seconds;
  return body;
}

bool Before(const Object& a, const Object& b) {
  const objects::ObjectMeta& left = client::MetadataOf(a);
  const objects::ObjectMeta& right = client::MetadataOf(b);
  return std::tie(left.name_space, left.name) < std::tie(right.name_space, right.name);
}

ReflectorOptions Seeded(ReflectorOptions options) {
  if (options.seed == 0) options.seed = std::random_device()();
  return options;
}

}  // namespace

StatusOr<std::unique_ptr<KubeClient>> KubeClient::Create(const ClusterConfig& config,
                                                         const KubeClientOptions& options) {
  ASSIGN_OR_RETURN(auto transport, MakeTransport(config, options.transport));
  KubeClientOptions named = options;
  const StatusOr<Url> server = ParseUrl(config.server);
  if (server.ok() && named.rest.host.empty()) named.rest.host = server->Authority();
  return std::make_unique<KubeClient>(std::move(transport), config.credentials, named);
}

KubeClient::KubeClient(std::unique_ptr<Transport> transport,
                       std::shared_ptr<Credentials> credentials, const KubeClientOptions& options)
    : rest_(std::move(transport), std::move(credentials), options.rest),
      watch_(Seeded(options.watch)) {}

// Queries whether the server serves the kind in this version. A GET for the version's path lists
// its resources.
StatusOr<bool> KubeClient::Serves(Kind kind, const std::string& version) {
  JsonDocument document;
  ASSIGN_OR_RETURN(const std::string text, GetText(VersionPath(version)));
  ASSIGN_OR_RETURN(const JsonView root, document.Parse(text));
  ASSIGN_OR_RETURN(const auto resources, root["resources"].Elements());
  return std::any_of(resources.begin(), resources.end(), [kind](const JsonView& resource) {
    return resource["name"].Text() == PluralOf(kind);
  });
}

StatusOr<std::set<std::string>> KubeClient::Versions() {
  JsonDocument document;
  ASSIGN_OR_RETURN(const std::string text, GetText("/apis"));
  ASSIGN_OR_RETURN(const JsonView root, document.Parse(text));
  ASSIGN_OR_RETURN(const auto groups, root["groups"].Elements());
  std::set<std::string> served = {"v1"};
  for (const JsonView& group : groups) {
    ASSIGN_OR_RETURN(const auto versions, group["versions"].Elements());
    for (const JsonView& version : versions) {
      served.emplace(version["groupVersion"].Text());
    }
  }
  return served;
}

StatusOr<std::string> KubeClient::ApiVersion(Kind kind) {
  ASSIGN_OR_RETURN(const std::set<std::string> served, Versions());
  for (const std::string& version : CandidateApiVersions(kind)) {
    if (served.count(version) == 0) continue;
    ASSIGN_OR_RETURN(const bool serves, Serves(kind, version));
    if (!serves) continue;
    MutexLock lock(mutex_);
    versions_[kind] = version;
    return version;
  }
  return NotFound("the server serves no ", PluralOf(kind), " in ",
                  CandidateApiVersions(kind).front());
}

StatusOr<std::string> KubeClient::VersionFor(Kind kind) {
  if (HasOneVersion(kind)) return std::string(client::NewestApiVersion(kind));
  {
    MutexLock lock(mutex_);
    if (const auto known = versions_.find(kind); known != versions_.end()) return known->second;
  }
  return ApiVersion(kind);
}

StatusOr<HttpResponse> KubeClient::GetObject(const Key& key, const char* accept) {
  ASSIGN_OR_RETURN(const std::string version, VersionFor(key.kind));
  auto response = rest_.Call({"GET", ObjectPath(key, version), "", "", 0, accept});
  if (!response.ok()) return Explain(response.status(), "get", client::ToString(key));
  return response;
}

StatusOr<Object> KubeClient::Get(const Key& key) {
  ASSIGN_OR_RETURN(const HttpResponse response, GetObject(key, AcceptFor(key.kind)));
  ASSIGN_OR_RETURN(const std::string version, VersionFor(key.kind));
  return DecodeObject(key.kind, response.body, version);
}

StatusOr<Json> KubeClient::GetJson(const Key& key) {
  ASSIGN_OR_RETURN(const HttpResponse response, GetObject(key, kAcceptJson));
  return ParseJson(response.body, client::ToString(key));
}

StatusOr<std::optional<HttpResponse>> KubeClient::GetPage(Kind kind, const std::string& path,
                                                          const client::LabelSelector& selector,
                                                          WatchStep& step,
                                                          std::vector<Object>& objects) {
  const size_t limit = step.page_size > 0 ? watch_.max_page_bytes : 0;  // 0: the transport's
  StatusOr<HttpResponse> response =
      rest_.Call({"GET", path + QueryOf(step, selector), "", "", limit, AcceptFor(kind)});
  if (response.ok()) return *std::move(response);
  const Status& error = response.status();
  if (error.code() == StatusCode::kOutOfRange && !step.continue_token.empty()) {
    step.continue_token.clear();
    step.page_size = 0;
    objects.clear();
    return std::nullopt;
  }
  // If a single object or a whole list is too long, a smaller page would not help.
  if (!IsTooLong(error) || step.page_size <= 1) return error;
  step.page_size /= 2;
  return std::nullopt;
}

StatusOr<std::vector<Object>> KubeClient::List(Kind kind, const std::string& name_space,
                                               const client::LabelSelector& selector) {
  ASSIGN_OR_RETURN(const std::string version, VersionFor(kind));
  const std::string path = CollectionPath(kind, version, name_space);
  const std::string what = client::ToString({kind, name_space, "*"});
  WatchStep step;
  step.kind = WatchStep::Kind::kListPage;
  step.page_size = kPageSize;
  std::vector<Object> objects;
  while (true) {
    const auto response = GetPage(kind, path, selector, step, objects);
    if (!response.ok()) return Explain(response.status(), "list", what);
    if (!*response) continue;
    StatusOr<ListPage> page = DecodePage(kind, (*response)->body, version);
    if (!page.ok()) return Explain(page.status(), "list", what);
    for (const Status& skipped : page->skipped) {
      kClientLog.Warning("skipping an object", {{"list", what}, {"error", skipped}});
    }
    std::move(page->objects.begin(), page->objects.end(), std::back_inserter(objects));
    if (page->continue_token.empty()) break;
    step.continue_token = page->continue_token;
  }
  std::sort(objects.begin(), objects.end(), Before);
  return objects;
}

StatusOr<Object> KubeClient::Write(std::string_view verb, std::string_view method, const Key& key,
                                   const std::string& path, const Json& body) {
  const char* const type = method == "PATCH" ? kMergePatch : kJson;
  const auto response =
      rest_.Call({std::string(method), path, type, PrintJson(body), 0, AcceptFor(key.kind)});
  if (!response.ok()) return Explain(response.status(), verb, client::ToString(key));
  ASSIGN_OR_RETURN(const std::string version, VersionFor(key.kind));
  return DecodeObject(key.kind, response->body, version);
}

StatusOr<Object> KubeClient::Create(Kind kind, const Json& object) {
  ASSIGN_OR_RETURN(const Key key, KeyOf(kind, object));
  ASSIGN_OR_RETURN(const std::string version, VersionFor(kind));
  StatusOr<Object> created =
      Write("create", "POST", key, CollectionPath(kind, version, key.name_space), object);
  // A 404 that does not name an object becomes Unavailable, because it may come from a proxy. For a
  // gang kind, which the cluster may lack, query whether the server serves the kind.
  if (objects::IsGangKind(kind) && created.status().code() == StatusCode::kUnavailable) {
    const Status served = ApiVersion(kind).status();
    if (served.code() == StatusCode::kNotFound) return served;
  }
  return created;
}

StatusOr<Object> KubeClient::Put(std::string_view verb, Kind kind, const Json& object,
                                 std::string_view subresource) {
  ASSIGN_OR_RETURN(const Key key, KeyOf(kind, object));
  ASSIGN_OR_RETURN(const std::string version, VersionFor(kind));
  return Write(verb, "PUT", key, ObjectPath(key, version, subresource), object);
}

StatusOr<Object> KubeClient::Update(Kind kind, const Json& object) {
  return Put("update", kind, object, "");
}

StatusOr<Object> KubeClient::UpdateStatus(Kind kind, const Json& object) {
  return Put("update the status of", kind, object, "status");
}

StatusOr<Object> KubeClient::Patch(const Key& key, const Json& merge_patch) {
  if (!merge_patch.is_object()) {
    return InvalidArgument(client::ToString(key), ": a merge patch must be an object");
  }
  ASSIGN_OR_RETURN(const std::string version, VersionFor(key.kind));
  return Write("patch", "PATCH", key, ObjectPath(key, version), merge_patch);
}

Status KubeClient::Delete(const Key& key, const client::DeleteOptions& options) {
  ASSIGN_OR_RETURN(const std::string version, VersionFor(key.kind));
  const auto response =
      rest_.Call({"DELETE", ObjectPath(key, version), kJson, PrintJson(DeleteBody(options))});
  return Explain(response.status(), "delete", client::ToString(key));
}

StatusOr<std::unique_ptr<client::Subscription>> KubeClient::Subscribe(
    Kind kind, const std::string& name_space, const client::LabelSelector& selector,
    client::WatchSink& sink) {
  WatchTarget target{kind, "", name_space, selector};
  ASSIGN_OR_RETURN(target.api_version, VersionFor(kind));
  ReflectorOptions options = watch_;
  {
    MutexLock lock(mutex_);
    options.seed += ++subscriptions_;
  }
  return std::make_unique<Reflector>(rest_, std::move(target), options, sink, health_);
}

StatusOr<std::string> KubeClient::GetText(const std::string& path) {
  auto response = rest_.Call({"GET", path, "", ""});
  if (!response.ok()) return Explain(response.status(), "get", path);
  return std::move(response->body);
}

}  // namespace tfjob::kube
