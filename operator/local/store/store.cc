#include "operator/local/store/store.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "absl/strings/str_format.h"
#include "operator/local/store/validation.h"
#include "operator/objects/metadata.h"
#include "operator/objects/pod.h"

namespace tfjob::store {
namespace {

using client::Key;
using client::Object;
using objects::Kind;
using objects::ObjectMeta;

// The maximum grace period: a hundred years, so that adding it to a time does not overflow. An API
// server accepts any grace period.
constexpr int64_t kLongestGraceSeconds = 100LL * 366 * 24 * 3600;

// Returns the key that the object's own metadata specifies.
StatusOr<Key> KeyOf(Kind kind, const Json& object) {
  const JsonField metadata = JsonField(object)["metadata"];
  if (!object.is_object() || !metadata.present()) {
    return InvalidArgument(client::Name(kind), ": metadata: expected an object with a name");
  }
  Key key{kind, "", ""};
  ASSIGN_OR_RETURN(key.name_space, metadata["namespace"].StringOr(""));
  ASSIGN_OR_RETURN(key.name, metadata["name"].StringOr(""));
  return key;
}

Status Conflict(const Key& key, std::string_view what, std::string_view expected,
                std::string_view found) {
  return Aborted(client::ToString(key), ": the precondition on ", what, " failed: expected ",
                 expected, ", found ", found);
}

bool SameMetadata(const ObjectMeta& a, const ObjectMeta& b) {
  return a.labels == b.labels && a.annotations == b.annotations && a.finalizers == b.finalizers &&
         a.owner_references == b.owner_references;
}

bool IsSubset(const std::vector<std::string>& part, const std::vector<std::string>& whole) {
  return std::all_of(part.begin(), part.end(), [&](const std::string& one) {
    return std::find(whole.begin(), whole.end(), one) != whole.end();
  });
}

// Returns the last version of a pod that is deleted immediately. This version has a deletion
// timestamp, as on an API server.
Record DeletedAtOnce(const Record& pod, ObjectMeta metadata, Time now) {
  metadata.deletion_timestamp = TruncateToSeconds(now);
  metadata.deletion_grace_period_seconds = 0;
  return WithMetadata(pod, Kind::kPod, std::move(metadata));
}

// Returns whether the record is a pod that is bound to a node and has not finished. A kubelet must
// stop such a pod before it can be removed.
bool EndsGracefully(const Record& record) {
  const auto* pod = std::get_if<std::shared_ptr<const objects::Pod>>(&record.object);
  return pod != nullptr && !(*pod)->node_name.empty() &&
         (*pod)->phase != objects::PodPhase::kSucceeded &&
         (*pod)->phase != objects::PodPhase::kFailed;
}

}  // namespace

Store::Store(StoreOptions options)
    : options_(std::move(options)), hub_(options_.deliver_by_hand, options_.keep_changes) {}

std::string RandomUidPrefix() {
  std::random_device random;
  const uint32_t high = random();
  const uint32_t low = random();
  return absl::StrFormat("%08x-%04x-4%03x-%04x-", high, low >> 16, low & 0xfff,
                         0x8000 | (random() & 0x3fff));
}

std::string Store::NextUid() {
  return absl::StrFormat("%s%012x", options_.uid_prefix, ++last_uid_);
}

std::string Store::NextVersion() {
  return StrCat(++last_version_);
}

StatusOr<Store::Records::iterator> Store::Find(const Key& key) {
  const auto found = records_.find(key);
  if (found == records_.end()) return NotFound(client::ToString(key), " not found");
  return found;
}

StatusOr<Object> Store::Get(const Key& key) {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto found, Find(key));
  return Decoded(found->second);
}

StatusOr<Json> Store::GetJson(const Key& key) {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto found, Find(key));
  return WholeObject(found->second);
}

StatusOr<std::vector<Object>> Store::List(Kind kind, const std::string& name_space,
                                          const client::LabelSelector& selector) {
  MutexLock lock(mutex_);
  std::vector<Object> objects;
  for (auto at = records_.lower_bound({kind, name_space, ""}); at != records_.end(); ++at) {
    if (at->first.kind != kind) break;
    if (!name_space.empty() && at->first.name_space != name_space) break;
    Object object = Decoded(at->second);
    if (client::Matches(selector, client::MetadataOf(object))) objects.push_back(std::move(object));
  }
  return objects;
}

StatusOr<Object> Store::Create(Kind kind, const Json& object) {
  ASSIGN_OR_RETURN(const Key key, KeyOf(kind, object));
  ASSIGN_OR_RETURN(ObjectMeta metadata, objects::ParseObjectMeta(JsonField(object)["metadata"]));
  RETURN_IF_ERROR(ValidateNew(kind, object, metadata));
  metadata.generation = 1;
  metadata.creation_timestamp = TruncateToSeconds(options_.clock->Now());
  metadata.deletion_timestamp.reset();
  metadata.deletion_grace_period_seconds.reset();
  const Json* wanted = &object;
  Json bound;
  if (kind == Kind::kPod && !options_.node_name.empty() &&
      !JsonField(object)["spec"]["nodeName"].present()) {
    bound = object;
    bound["spec"]["nodeName"] = options_.node_name;
    wanted = &bound;
  }

  MutexLock lock(mutex_);
  if (records_.count(key) > 0) return AlreadyExists(client::ToString(key), " already exists");
  metadata.uid = NextUid();
  metadata.resource_version = NextVersion();
  ASSIGN_OR_RETURN(Record record, MakeRecord(kind, *wanted, metadata));
  Index(key, metadata);
  const auto found = records_.emplace(key, Record()).first;
  Object stored = Commit(found, std::move(record));
  if (Orphaned(metadata)) DeleteFound(found, std::nullopt);
  return stored;
}

StatusOr<Store::Records::iterator> Store::FindForWrite(const Key& key, const Json& object) {
  const JsonField metadata = JsonField(object)["metadata"];
  ASSIGN_OR_RETURN(const std::string version, metadata["resourceVersion"].StringOr(""));
  ASSIGN_OR_RETURN(const std::string uid, metadata["uid"].StringOr(""));
  ASSIGN_OR_RETURN(const auto found, Find(key));
  const ObjectMeta held = MetadataOf(found->second);
  if (!uid.empty() && uid != held.uid) return Conflict(key, "metadata.uid", uid, held.uid);
  if (!version.empty() && version != held.resource_version) {
    return Conflict(key, "metadata.resourceVersion", version, held.resource_version);
  }
  return found;
}

StatusOr<Object> Store::Update(Kind kind, const Json& object) {
  ASSIGN_OR_RETURN(const Key key, KeyOf(kind, object));
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto found, FindForWrite(key, object));
  return Replace(found, object);
}

StatusOr<Object> Store::Replace(Records::iterator found, const Json& object) {
  const Kind kind = found->first.kind;
  const ObjectMeta held = MetadataOf(found->second);
  ASSIGN_OR_RETURN(ObjectMeta wanted, objects::ParseObjectMeta(JsonField(object)["metadata"]));
  RETURN_IF_ERROR(ValidateLabels(kind, wanted));
  ObjectMeta metadata = held;
  metadata.labels = std::move(wanted.labels);
  metadata.annotations = std::move(wanted.annotations);
  metadata.finalizers = std::move(wanted.finalizers);
  metadata.owner_references = std::move(wanted.owner_references);
  if (held.terminating() && !IsSubset(metadata.finalizers, held.finalizers)) {
    return InvalidArgument(client::ToString(found->first),
                           ": metadata.finalizers: none can be added while it is being deleted");
  }
  const bool same_body = SameBody(found->second, kind, object);
  if (same_body && SameMetadata(held, metadata)) return Decoded(found->second);
  if (!same_body) ++metadata.generation;
  metadata.resource_version = NextVersion();
  ASSIGN_OR_RETURN(Record next, WithBody(found->second, kind, object, metadata));
  Unindex(found->first, held);
  Index(found->first, metadata);
  Object stored = Commit(found, std::move(next));
  // If only its finalizers kept a terminating object, remove the object together with the last
  // finalizer.
  const bool kept_by_grace = metadata.deletion_grace_period_seconds.value_or(0) > 0;
  if (metadata.terminating() && metadata.finalizers.empty() &&
      !(kept_by_grace && EndsGracefully(found->second))) {
    Remove(found);
  }
  return stored;
}

StatusOr<Object> Store::UpdateStatus(Kind kind, const Json& object) {
  ASSIGN_OR_RETURN(const Key key, KeyOf(kind, object));
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto found, FindForWrite(key, object));
  if (SameStatus(found->second, kind, object)) return Decoded(found->second);
  ObjectMeta metadata = MetadataOf(found->second);
  metadata.resource_version = NextVersion();
  ASSIGN_OR_RETURN(Record next, WithStatus(found->second, kind, object, std::move(metadata)));
  return Commit(found, std::move(next));
}

StatusOr<Object> Store::Patch(const Key& key, const Json& merge_patch) {
  if (!merge_patch.is_object()) {
    return InvalidArgument(client::ToString(key), ": a merge patch must be an object");
  }
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto found, FindForWrite(key, merge_patch));
  Json object = WholeObject(found->second);
  object.merge_patch(merge_patch);
  return Replace(found, object);
}

Status Store::Delete(const Key& key, const client::DeleteOptions& options) {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto found, Find(key));
  if (options.uid) {
    const ObjectMeta held = MetadataOf(found->second);
    if (*options.uid != held.uid) return Conflict(key, "metadata.uid", *options.uid, held.uid);
  }
  DeleteFound(found, options.grace_period_seconds);
  return OkStatus();
}

void Store::DeleteFound(Records::iterator found, std::optional<int64_t> grace_period_seconds) {
  const int64_t grace = std::min(grace_period_seconds.value_or(found->second.grace_period_seconds),
                                 kLongestGraceSeconds);
  if (grace <= 0 || !EndsGracefully(found->second)) return Remove(found);
  const ObjectMeta metadata = MetadataOf(found->second);
  // If the object is already terminating, another deletion can only shorten its grace period.
  if (metadata.terminating() && metadata.deletion_grace_period_seconds.value_or(0) <= grace) return;
  Terminate(found, grace);
}

void Store::Terminate(Records::iterator found, int64_t grace_period_seconds) {
  ObjectMeta metadata = MetadataOf(found->second);
  // A shorter grace period also starts at the time of the first request.
  const Time requested =
      metadata.terminating()
          ? *metadata.deletion_timestamp -
                std::chrono::seconds(metadata.deletion_grace_period_seconds.value_or(0))
          : TruncateToSeconds(options_.clock->Now());
  metadata.deletion_timestamp = requested + std::chrono::seconds(grace_period_seconds);
  metadata.deletion_grace_period_seconds = grace_period_seconds;
  ++metadata.generation;
  metadata.resource_version = NextVersion();
  Commit(found, WithMetadata(found->second, found->first.kind, std::move(metadata)));
}

void Store::Remove(Records::iterator found) {
  const ObjectMeta held = MetadataOf(found->second);
  if (!held.finalizers.empty()) {
    const bool known = held.terminating() && held.deletion_grace_period_seconds.value_or(0) == 0;
    if (!known) Terminate(found, 0);
    return;
  }
  const Key key = found->first;
  Record record = std::move(found->second);
  if (key.kind == Kind::kPod && !held.terminating())
    record = DeletedAtOnce(record, held, options_.clock->Now());
  records_.erase(found);
  const ObjectMeta& metadata = held;
  Unindex(key, metadata);
  uids_.erase(metadata.uid);
  NextVersion();
  if (key.kind != Kind::kEvent || hub_.HasWatchers(key.kind)) {
    const Object last = Decoded(record);
    hub_.Publish(key.kind, &last, nullptr, last_version_);
  }

  const auto dependents = dependents_.find(metadata.uid);
  if (dependents == dependents_.end()) return;
  const std::set<Key> keys = dependents->second;
  for (const Key& dependent : keys) {
    const auto orphan = records_.find(dependent);
    if (orphan == records_.end() || !Orphaned(MetadataOf(orphan->second))) continue;
    DeleteFound(orphan, std::nullopt);
  }
}

Object Store::Commit(Records::iterator found, Record next) {
  const Kind kind = found->first.kind;
  const Object after = next.object;
  const bool is_new = found->second.object == Object() && found->second.body.empty();
  if (options_.keep_changes || hub_.HasWatchers(kind)) {
    const Object before = is_new ? after : Decoded(found->second);
    hub_.Publish(kind, is_new ? nullptr : &before, &after, last_version_);
  }
  store::Compact(next, kind);
  found->second = std::move(next);
  return after;
}

void Store::Index(const Key& key, const ObjectMeta& metadata) {
  if (key.kind != Kind::kEvent) uids_.insert(metadata.uid);
  for (const objects::OwnerReference& owner : metadata.owner_references) {
    dependents_[owner.uid].insert(key);
  }
}

void Store::Unindex(const Key& key, const ObjectMeta& metadata) {
  for (const objects::OwnerReference& owner : metadata.owner_references) {
    const auto found = dependents_.find(owner.uid);
    if (found == dependents_.end()) continue;
    found->second.erase(key);
    if (found->second.empty()) dependents_.erase(found);
  }
}

bool Store::Orphaned(const ObjectMeta& metadata) {
  const auto& owners = metadata.owner_references;
  return !owners.empty() && std::none_of(owners.begin(), owners.end(),
                                         [this](const auto& owner) ABSL_NO_THREAD_SAFETY_ANALYSIS {
                                           return uids_.count(owner.uid) > 0;
                                         });
}

StatusOr<std::unique_ptr<client::Subscription>> Store::Subscribe(
    Kind kind, const std::string& name_space, const client::LabelSelector& selector,
    client::WatchSink& sink) {
  MutexLock lock(mutex_);
  return hub_.Subscribe(kind, name_space, selector, sink, AllOf(kind), last_version_);
}

std::vector<Object> Store::AllOf(Kind kind) {
  std::vector<Object> objects;
  for (auto at = records_.lower_bound({kind, "", ""});
       at != records_.end() && at->first.kind == kind; ++at) {
    objects.push_back(Decoded(at->second));
  }
  return objects;
}

void Store::MendWatches() {
  MutexLock lock(mutex_);
  hub_.Mend([this](Kind kind) ABSL_NO_THREAD_SAFETY_ANALYSIS { return AllOf(kind); },
            last_version_);
}

void Store::Bookmark() {
  MutexLock lock(mutex_);
  hub_.Bookmark(last_version_);
}

void Store::Compact() {
  MutexLock lock(mutex_);
  hub_.Compact(last_version_);
}

size_t Store::Bytes() {
  MutexLock lock(mutex_);
  size_t bytes = 0;
  for (const auto& [key, record] : records_) bytes += store::Bytes(record);
  return bytes;
}

}  // namespace tfjob::store
