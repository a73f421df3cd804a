#include "operator/client/faults.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "operator/objects/metadata.h"

namespace tfjob::client {
namespace {

Key KeyOf(Kind kind, const Json& object) {
  const JsonField metadata = JsonField(object)["metadata"];
  return {kind, metadata["namespace"].StringOr("").value_or(""),
          metadata["name"].StringOr("").value_or("")};
}

}  // namespace

std::string_view Name(Verb verb) {
  switch (verb) {
    case Verb::kGet:
      return "get";
    case Verb::kList:
      return "list";
    case Verb::kCreate:
      return "create";
    case Verb::kUpdate:
      return "update";
    case Verb::kUpdateStatus:
      return "update status";
    case Verb::kPatch:
      return "patch";
    case Verb::kDelete:
      return "delete";
    case Verb::kWatch:
      return "watch";
  }
  return "";
}

void FaultyClient::Inject(Fault fault) {
  MutexLock lock(mutex_);
  faults_.push_back({std::move(fault)});
}

void FaultyClient::Admit(std::function<void(Kind, Json&)> webhook) {
  MutexLock lock(mutex_);
  webhook_ = std::move(webhook);
}

Json FaultyClient::Admitted(Kind kind, Json object) {
  std::function<void(Kind, Json&)> webhook;
  {
    MutexLock lock(mutex_);
    webhook = webhook_;
  }
  if (webhook) webhook(kind, object);
  return object;
}

void FaultyClient::Clear() {
  MutexLock lock(mutex_);
  faults_.clear();
}

std::vector<Call> FaultyClient::Calls() {
  MutexLock lock(mutex_);
  return calls_;
}

FaultyClient::Outcome FaultyClient::Meet(const Call& call) {
  Outcome outcome;
  std::vector<std::function<void()>> before;
  {
    MutexLock lock(mutex_);
    calls_.push_back(call);
    for (Armed& armed : faults_) {
      if (!armed.fault.matches(call)) continue;
      const int seen = ++armed.seen;
      if (seen < armed.fault.nth || seen >= armed.fault.nth + armed.fault.times) continue;
      if (armed.fault.before_call) before.push_back(armed.fault.before_call);
      if (!armed.fault.error.ok()) outcome = {armed.fault.error, armed.fault.executed};
    }
  }
  for (const auto& action : before) action();
  return outcome;
}

template <typename Operation>
auto FaultyClient::Run(const Call& call, Operation operation) -> decltype(operation()) {
  const Outcome outcome = Meet(call);
  if (outcome.error.ok()) return operation();
  if (outcome.executed) operation().IgnoreError();
  return outcome.error;
}

StatusOr<Object> FaultyClient::Get(const Key& key) {
  return Run({Verb::kGet, key}, [&] { return inner_.Get(key); });
}

StatusOr<Json> FaultyClient::GetJson(const Key& key) {
  return Run({Verb::kGet, key}, [&] { return inner_.GetJson(key); });
}

StatusOr<std::vector<Object>> FaultyClient::List(Kind kind, const std::string& name_space,
                                                 const LabelSelector& selector) {
  return Run({Verb::kList, {kind, name_space, ""}},
             [&] { return inner_.List(kind, name_space, selector); });
}

StatusOr<Object> FaultyClient::Create(Kind kind, const Json& object) {
  return Run({Verb::kCreate, KeyOf(kind, object)},
             [&] { return inner_.Create(kind, Admitted(kind, object)); });
}

StatusOr<Object> FaultyClient::Update(Kind kind, const Json& object) {
  return Run({Verb::kUpdate, KeyOf(kind, object)}, [&] { return inner_.Update(kind, object); });
}

StatusOr<Object> FaultyClient::UpdateStatus(Kind kind, const Json& object) {
  return Run({Verb::kUpdateStatus, KeyOf(kind, object)},
             [&] { return inner_.UpdateStatus(kind, object); });
}

StatusOr<Object> FaultyClient::Patch(const Key& key, const Json& merge_patch) {
  return Run({Verb::kPatch, key},
             [&] { return inner_.Patch(key, Admitted(key.kind, merge_patch)); });
}

Status FaultyClient::Delete(const Key& key, const DeleteOptions& options) {
  return Run({Verb::kDelete, key}, [&] { return inner_.Delete(key, options); });
}

StatusOr<std::unique_ptr<Subscription>> FaultyClient::Subscribe(Kind kind,
                                                                const std::string& name_space,
                                                                const LabelSelector& selector,
                                                                WatchSink& sink) {
  return Run({Verb::kWatch, {kind, name_space, ""}},
             [&] { return inner_.Subscribe(kind, name_space, selector, sink); });
}

}  // namespace tfjob::client
