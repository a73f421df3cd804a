#include "operator/control/observe.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "operator/api/names.h"
#include "operator/api/status_json.h"
#include "operator/control/admit.h"
#include "operator/control/cache/cache.h"
#include "operator/control/log.h"
#include "operator/control/lost_nodes.h"
#include "operator/control/measurements/observer.h"
#include "operator/control/memory.h"
#include "operator/control/native_api.h"
#include "operator/control/observation.h"
#include "operator/control/pacing.h"
#include "operator/keys/key_ring.h"
#include "operator/policy/facts/history.h"
#include "operator/policy/facts/network_policy.h"
#include "operator/policy/gang.h"
#include "operator/policy/rules/managed_by.h"
#include "runtime/base/clock.h"

namespace tfjob::control {
namespace {

using objects::CustomResource;
using objects::Kind;

client::Key ObjectKeyOf(const std::string& key) {
  const size_t slash = key.find('/');
  return {Kind::kTFJob, key.substr(0, slash), key.substr(slash + 1)};
}

// Unblocks the names whose former holders are gone, so that the objects with these names are
// created immediately.
void Unblock(const std::vector<std::string>& freed, policy::History& history) {
  if (freed.empty()) return;
  const auto is_free = [&](const auto& blocked) {
    return std::find(freed.begin(), freed.end(), blocked.second.holder_uid) != freed.end();
  };
  std::erase_if(history.blocked_pods, is_free);
  std::erase_if(history.blocked_services, is_free);
}

void SetKeys(const keys::KeyRing& ring, policy::Snapshot& snapshot) {
  snapshot.key_ids = ring.ids();
  for (const auto& pod : snapshot.pods) {
    if (!pod->key_id.empty() && ring.MayGet(pod->key_id)) {
      snapshot.awaited_key_ids.insert(pod->key_id);
    }
  }
}

}  // namespace

std::variant<Observation, Outcome> JobReader::Observe(const std::string& key, uint64_t id,
                                                      const CustomResource& stored,
                                                      Memory& memory) {
  if (memory.unanswered) return ReadAgain("a status write had no answer");
  if (dependencies_.cache.IsInDoubt(key)) return ReadAgain("a list lacks our status write");
  const bool confirmed = ConfirmOwnWrites(key);

  Admission admission = Admit(stored, settings_.admission);
  const policy::Gang gang = policy::GangOf(admission.job, settings_.policy);
  StatusOr<std::string> native_version = NativeVersionFor(gang);
  if (!native_version.ok()) return OutcomeOf(native_version.status());
  if (!SeesPodGroup(admission.job, gang) || !SeesNetworkPolicy(admission.job)) {
    return Outcome{.again_after = kListPoll};
  }

  Observation observation;
  observation.key = key;
  observation.id = id;
  observation.has_unconfirmed_writes = !confirmed;
  observation.job = std::move(admission.job);
  observation.admitted = std::move(admission.verdict);
  observation.snapshot = dependencies_.cache.SnapshotOf(key, stored.metadata.uid);
  observation.snapshot.native_version = *std::move(native_version);
  if (settings_.keys) observation.keys = settings_.keys();
  if (observation.keys != nullptr) SetKeys(*observation.keys, observation.snapshot);
  observation.now = dependencies_.clock.Now();
  observation.snapshot.steady_now = dependencies_.clock.Monotonic();
  Unblock(dependencies_.cache.TakeFreed(key), memory.history);
  ObserveNodes(observation);
  observation.snapshot.history = &memory.history;
  policy::Remember(observation.job, observation.snapshot, settings_.policy, memory.history);
  return observation;
}

bool JobReader::ConfirmOwnWrites(const std::string& key) {
  std::map<Kind, std::vector<client::Key>> objects;
  for (client::Key& object : dependencies_.cache.ObjectsToRead(key, kWatchPatience)) {
    objects[object.kind].push_back(std::move(object));
  }
  Status first;
  for (const auto& [kind, of_kind] : objects) {
    KeepFirst(first, ReadsByList(of_kind.size()) ? ReadList(key, of_kind) : ReadEach(key, of_kind));
  }
  if (first.ok() || absl::IsCancelled(first)) return first.ok();
  kLog.Warning("own writes are not confirmed, will be read again",
               {{"job", key}, {"error", first}});
  return false;
}

Status JobReader::ReadEach(const std::string& key, const std::vector<client::Key>& objects) {
  Status first;
  for (const client::Key& object : objects) {
    StatusOr<client::Object> found = dependencies_.client.Get(object);
    if (found.ok()) {
      dependencies_.cache.RecordRead(key, object, *std::move(found));
    } else if (absl::IsNotFound(found.status())) {
      dependencies_.cache.RecordRead(key, object, std::nullopt);
    } else {
      KeepFirst(first, Annotate(found.status(), StrCat("reading ", client::ToString(object))));
    }
  }
  return first;
}

// Treats an object that is not in the list as gone. If the object merely lost the job's label, the
// following create finds that the name is taken, and reads the object.
Status JobReader::ReadList(const std::string& key, const std::vector<client::Key>& objects) {
  const client::Key& any = objects.front();
  const StatusOr<std::vector<client::Object>> listed = dependencies_.client.List(
      any.kind, any.name_space, {{api::kJobNameLabel, ObjectKeyOf(key).name}});
  if (!listed.ok()) {
    return Annotate(listed.status(), StrCat("listing the job's objects of kind ", Name(any.kind)));
  }
  std::map<std::string_view, const client::Object*> by_name;
  for (const client::Object& object : *listed) by_name[client::MetadataOf(object).name] = &object;
  for (const client::Key& object : objects) {
    const auto found = by_name.find(object.name);
    dependencies_.cache.RecordRead(
        key, object, found == by_name.end() ? std::nullopt : std::optional(*found->second));
  }
  return OkStatus();
}

StatusOr<std::string> JobReader::NativeVersionFor(const policy::Gang& gang) {
  if (gang.scheduler != policy::GangScheduler::kNative) return std::string();
  return dependencies_.native_api.Version();
}

bool JobReader::SeesPodGroup(const api::TFJob& job, const policy::Gang& gang) {
  return gang.scheduler == policy::GangScheduler::kNone || policy::IsManagedElsewhere(job) ||
         dependencies_.watch_pod_groups(gang.scheduler);
}

bool JobReader::SeesNetworkPolicy(const api::TFJob& job) {
  return !policy::WantsNetworkPolicy(job, settings_.policy.network_policies) ||
         policy::IsManagedElsewhere(job) || dependencies_.sees_network_policies();
}

void JobReader::ObserveNodes(Observation& observation) {
  if (!settings_.is_node_lost) return;
  LostNodes lost = FindLostNodes(observation.snapshot, observation.now,
                                 settings_.policy.lost_pod_after, settings_.is_node_lost);
  observation.snapshot.lost_nodes = std::move(lost.names);
  observation.check_nodes_after = lost.ask_again;
}

Outcome JobReader::ReadJob(const std::string& key, const std::string& known_version,
                           Memory& memory) {
  const StatusOr<client::Object> found = dependencies_.client.Get(ObjectKeyOf(key));
  if (absl::IsNotFound(found.status())) {
    memory.unanswered.reset();
    return {Next::kJobIsGone};
  }
  if (!found.ok()) return OutcomeOf(Annotate(found.status(), StrCat("reading TFJob ", key)));
  SettleUnanswered(*client::As<CustomResource>(*found), memory);
  dependencies_.cache.RecordWrite(key, known_version, *found);
  return {};
}

void JobReader::SettleUnanswered(const CustomResource& found, Memory& memory) {
  if (!memory.unanswered) return;
  const Memory::Unanswered attempt = *std::exchange(memory.unanswered, std::nullopt);
  if (found.metadata.uid != memory.uid) return;
  // Parse and print the stored status to remove the defaults that the server added.
  const Json status = api::StatusToJson(api::ReadStatus(JsonField(*found.object)["status"]));
  if (PrintJson(status) != attempt.status) return;
  dependencies_.observer.OnStatus(found.metadata, attempt.before, attempt.after);
  memory.events.insert(memory.events.end(), attempt.events.begin(), attempt.events.end());
}

}  // namespace tfjob::control
