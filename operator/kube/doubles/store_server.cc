#include "operator/kube/doubles/store_server.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "operator/kube/client/decode_protobuf.h"
#include "operator/kube/client/resource.h"
#include "operator/kube/doubles/protobuf_writer.h"
#include "operator/kube/doubles/test_server.h"
#include "operator/kube/rest/envelope.h"
#include "operator/objects/metadata.h"
#include "operator/objects/pod.h"
#include "runtime/base/mutex.h"

namespace tfjob::kube {
namespace {

using client::Key;
using client::Object;
using objects::Kind;

constexpr Kind kKinds[] = {Kind::kTFJob, Kind::kPod,   Kind::kService, Kind::kConfigMap,
                           Kind::kEvent, Kind::kLease, Kind::kNode};
constexpr auto kTick = std::chrono::milliseconds(2);

std::string Unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      plain += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

std::vector<std::string> Split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const size_t end = std::min(text.find(separator), text.size());
    if (end > 0) parts.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

// Contains the parts of a request target.
struct Route {
  Key key;
  std::string subresource;
  std::map<std::string, std::string> query;

  client::LabelSelector selector() const {
    client::LabelSelector selector;
    const auto text = query.find("labelSelector");
    if (text == query.end()) return selector;
    for (const std::string& pair : Split(text->second, ',')) {
      selector[pair.substr(0, pair.find('='))] = pair.substr(pair.find('=') + 1);
    }
    return selector;
  }
  std::string value(const std::string& name) const {
    const auto found = query.find(name);
    return found == query.end() ? "" : found->second;
  }
};

StatusOr<Route> Parse(const std::string& target) {
  Route route;
  const size_t mark = std::min(target.find('?'), target.size());
  for (const std::string& pair :
       Split(std::string_view(target).substr(std::min(mark + 1, target.size())), '&')) {
    route.query[pair.substr(0, pair.find('='))] = Unescape(pair.substr(pair.find('=') + 1));
  }
  const std::string path = target.substr(0, mark);
  for (const Kind kind : kKinds) {
    const std::string version = VersionPath(client::NewestApiVersion(kind)) + "/";
    if (path.rfind(version, 0) != 0) continue;
    std::vector<std::string> parts = Split(std::string_view(path).substr(version.size()), '/');
    if (parts.size() >= 2 && parts[0] == "namespaces") {
      route.key.name_space = parts[1];
      parts.erase(parts.begin(), parts.begin() + 2);
    }
    if (parts.empty() || parts[0] != PluralOf(kind)) continue;
    route.key.kind = kind;
    if (parts.size() > 1) route.key.name = Unescape(parts[1]);
    if (parts.size() > 2) route.subresource = parts[2];
    return route;
  }
  return NotFound("no such path");
}

Json StatusBody(const Status& status, const std::string& name) {
  Json body = {{"kind", "Status"}, {"status", "Failure"}, {"message", Message(status)}};
  const auto set = [&body](int code, const char* reason) {
    body["code"] = code;
    body["reason"] = reason;
  };
  switch (status.code()) {
    case StatusCode::kNotFound:
      set(404, "NotFound");
      body["details"] = {{"name", name}};
      break;
    case StatusCode::kAlreadyExists:
      set(409, "AlreadyExists");
      break;
    case StatusCode::kAborted:
      set(409, "Conflict");
      break;
    default:
      set(422, "Invalid");
      break;
  }
  return body;
}

int64_t VersionOf(const Object& object) {
  int64_t version = 0;
  (void)absl::SimpleAtoi(client::MetadataOf(object).resource_version, &version);
  return version;
}

// Returns the object as a watch reports it. If the stored object has changed or been deleted in the
// meantime, returns only the parts that `object` contains: the metadata and, for a pod, the status.
Json Print(store::Store& store, Kind kind, const Object& object) {
  const objects::ObjectMeta& metadata = client::MetadataOf(object);
  StatusOr<Json> whole = store.GetJson({kind, metadata.name_space, metadata.name});
  if (whole.ok() && (*whole)["metadata"]["resourceVersion"] == metadata.resource_version) {
    return *std::move(whole);
  }
  Json json = Json::object();
  if (const auto* pod = std::get_if<std::shared_ptr<const objects::Pod>>(&object)) {
    json = objects::StatusToJson(**pod);
  }
  json["metadata"] = objects::ToJson(metadata);
  return json;
}

// Records the changes to objects of one kind, in order.
class EventLog : public client::WatchSink {
 public:
  EventLog(store::Store& store, Kind kind) : store_(store), kind_(kind) {
    subscription_ = *store_.Subscribe(kind, "", {}, *this);
  }

  struct Entry {
    bool deleted = false;
    Object object;
    Json json;
  };

  void OnReplaced(std::vector<Object>) override {}
  void OnUpserted(Object object) override { Note(false, std::move(object)); }
  void OnDeleted(Object object) override { Note(true, std::move(object)); }

  // Returns the entries from index `next` on, and advances `next` past them.
  std::vector<Entry> Read(size_t& next) {
    MutexLock lock(mutex_);
    std::vector<Entry> entries(entries_.begin() + static_cast<std::ptrdiff_t>(next),
                               entries_.end());
    next = entries_.size();
    return entries;
  }

 private:
  void Note(bool deleted, Object object) {
    Json json = Print(store_, kind_, object);
    MutexLock lock(mutex_);
    entries_.push_back({deleted, std::move(object), std::move(json)});
  }

  store::Store& store_;
  const Kind kind_;
  Mutex mutex_;
  std::vector<Entry> entries_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<client::Subscription> subscription_;
};

// The objects that were reported to a watcher: (namespace, name) → UID.
using Known = std::map<std::pair<std::string, std::string>, std::string>;

// Writes objects of one kind in the representation that a request accepts.
class Representation {
 public:
  Representation(Kind kind, bool protobuf) : kind_(kind), protobuf_(protobuf) {}

  const char* content_type() const {
    return protobuf_ ? "application/vnd.kubernetes.protobuf" : "application/json";
  }
  std::string Object(const Json& object) const {
    if (!protobuf_) return PrintJson(object);
    if (object.value("kind", "") == "Status") return WriteStatusEnvelope(object);
    const bool list = object.value("kind", "") == "List";
    return list ? WriteListEnvelope(kind_, object) : WriteEnvelope(kind_, object);
  }
  std::string Event(const char* type, Json object) const {
    if (protobuf_) return WriteEventFrame(type, WriteEnvelope(kind_, object));
    return PrintJson({{"type", type}, {"object", std::move(object)}}) + "\n";
  }

 private:
  const Kind kind_;
  const bool protobuf_;
};

}  // namespace

class StoreServer::Impl {
 public:
  explicit Impl(Options options) : options_(options) {
    for (const Kind kind : kKinds) logs_[kind] = std::make_unique<EventLog>(store_, kind);
    TestServer::Options server;
    server.tls = false;
    server_ = std::make_unique<TestServer>(
        server, [this](const TestRequest& request, TestConnection& connection) {
          Answer(request, connection);
        });
  }
  ~Impl() {
    stopping_ = true;
    server_.reset();
    logs_.clear();
  }

  std::string url() const { return server_->url(); }
  store::Store& store() { return store_; }

 private:
  void Answer(const TestRequest& request, TestConnection& connection) {
    const StatusOr<Route> route = Parse(request.target);
    if (!route.ok()) return connection.Reply(404, "404 page not found", "", "text/plain");
    const Representation as = RepresentationFor(request, *route);
    if (route->value("watch") == "1") return Watch(*route, as, connection);
    StatusOr<Json> answer = Carry(request, *route);
    if (answer.ok()) {
      return connection.Reply(200, as.Object(*answer), "", as.content_type());
    }
    const Json status = StatusBody(answer.status(), route->key.name);
    connection.Reply(status["code"], as.Object(status), "", as.content_type());
  }

  Representation RepresentationFor(const TestRequest& request, const Route& route) const {
    const auto accept = request.headers.find("accept");
    const bool asked = accept != request.headers.end() && IsProtobuf(accept->second);
    return {route.key.kind, options_.protobuf && asked && HasProtobuf(route.key.kind)};
  }

  StatusOr<Json> Carry(const TestRequest& request, const Route& route) {
    Json body;
    if (!request.body.empty()) {
      ASSIGN_OR_RETURN(body, ParseJson(request.body, "body"));
    }
    const Kind kind = route.key.kind;
    if (request.method == "GET") {
      return route.key.name.empty() ? List(route) : store_.GetJson(route.key);
    }
    if (request.method == "DELETE") return Delete(route.key, body);
    StatusOr<Object> written = Unimplemented(request.method);
    if (request.method == "POST") written = store_.Create(kind, body);
    if (request.method == "PATCH") written = store_.Patch(route.key, body);
    if (request.method == "PUT") {
      written = route.subresource == "status" ? store_.UpdateStatus(kind, body)
                                              : store_.Update(kind, body);
    }
    RETURN_IF_ERROR(written.status());
    return Print(store_, kind, *written);
  }

  StatusOr<Json> Delete(const Key& key, const Json& body) {
    client::DeleteOptions options;
    const JsonField field(body);
    if (field["preconditions"]["uid"].present()) {
      ASSIGN_OR_RETURN(options.uid, field["preconditions"]["uid"].String());
    }
    if (field["gracePeriodSeconds"].present()) {
      ASSIGN_OR_RETURN(options.grace_period_seconds, field["gracePeriodSeconds"].Int());
    }
    RETURN_IF_ERROR(store_.Delete(key, options));
    return Json{{"kind", "Status"}, {"status", "Success"}};
  }

  // Uses a position in the list as the continue token. This is sufficient if the objects do not
  // change between pages.
  StatusOr<Json> List(const Route& route) {
    ASSIGN_OR_RETURN(const auto objects,
                     store_.List(route.key.kind, route.key.name_space, route.selector()));
    size_t limit = objects.size();
    size_t begin = 0;
    (void)absl::SimpleAtoi(route.value("limit"), &limit);
    (void)absl::SimpleAtoi(route.value("continue"), &begin);
    Json items = Json::array();
    const size_t end = std::min(objects.size(), begin + limit);
    for (size_t i = begin; i < end; ++i) items.push_back(Print(store_, route.key.kind, objects[i]));
    Json metadata = {{"resourceVersion", StrCat(NewestVersion())}};
    if (end < objects.size()) metadata["continue"] = StrCat(end);
    return Json{{"kind", "List"}, {"metadata", metadata}, {"items", items}};
  }

  // Returns the newest resourceVersion of all objects. All kinds share one sequence of versions.
  int64_t NewestVersion() {
    int64_t newest = 0;
    for (const Kind kind : kKinds) {
      const std::vector<Object> objects = *store_.List(kind, "", {});
      for (const Object& object : objects) {
        newest = std::max(newest, VersionOf(object));
      }
    }
    return newest;
  }

  void Watch(const Route& route, const Representation& as, TestConnection& connection) {
    const bool initial = route.value("sendInitialEvents") == "true";
    if (initial && !options_.streaming_list) {
      return connection.Reply(422, R"({"kind":"Status","message":"no sendInitialEvents here"})");
    }
    int64_t after = 0;
    (void)absl::SimpleAtoi(route.value("resourceVersion"), &after);
    Known known;
    connection.StartChunks(200, as.content_type());
    const std::vector<Object> objects =
        *store_.List(route.key.kind, route.key.name_space, route.selector());
    for (const Object& object : objects) {
      if (!initial && VersionOf(object) > after) continue;
      const objects::ObjectMeta& metadata = client::MetadataOf(object);
      known[{metadata.name_space, metadata.name}] = metadata.uid;
      if (!initial) continue;
      after = std::max(after, VersionOf(object));
      connection.Chunk(as.Event("ADDED", Print(store_, route.key.kind, object)));
    }
    if (initial) {
      after = std::max(after, NewestVersion());
      connection.Chunk(
          as.Event("BOOKMARK", {{"metadata",
                                 {{"resourceVersion", StrCat(after)},
                                  {"annotations", {{"k8s.io/initial-events-end", "true"}}}}}}));
    }
    size_t next = 0;
    while (!stopping_) {
      for (const EventLog::Entry& entry : logs_[route.key.kind]->Read(next)) {
        if (VersionOf(entry.object) <= after && !entry.deleted) continue;
        if (!Tell(route, as, entry, known, connection)) return;
      }
      std::this_thread::sleep_for(kTick);
    }
  }

  bool Tell(const Route& route, const Representation& as, const EventLog::Entry& entry,
            Known& known, TestConnection& connection) {
    const objects::ObjectMeta& metadata = client::MetadataOf(entry.object);
    const std::pair<std::string, std::string> name{metadata.name_space, metadata.name};
    const bool here = route.key.name_space.empty() || route.key.name_space == metadata.name_space;
    if (here && !entry.deleted && client::Matches(route.selector(), metadata)) {
      const bool is_new = known.insert_or_assign(name, metadata.uid).second;
      return connection.Chunk(as.Event(is_new ? "ADDED" : "MODIFIED", entry.json));
    }
    const auto found = known.find(name);
    if (found == known.end() || found->second != metadata.uid) return true;
    known.erase(found);
    return connection.Chunk(as.Event("DELETED", entry.json));
  }

  const Options options_;
  store::Store store_;
  std::map<Kind, std::unique_ptr<EventLog>> logs_;
  std::atomic<bool> stopping_ = false;
  std::unique_ptr<TestServer> server_;
};

StoreServer::StoreServer(Options options) : impl_(std::make_unique<Impl>(options)) {}
StoreServer::~StoreServer() = default;

ClusterConfig StoreServer::config() const {
  ClusterConfig config;
  config.server = impl_->url();
  config.credentials = NoCredentials();
  return config;
}

store::Store& StoreServer::store() {
  return impl_->store();
}

}  // namespace tfjob::kube
