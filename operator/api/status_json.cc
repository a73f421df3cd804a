#include "operator/api/status_json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/api/indexes.h"
#include "operator/objects/fields.h"

namespace tfjob::api {
namespace {

// Returns the field's value, or the default of its type.
template <typename T>
T ReadOrDefault(const JsonField& field) {
  T value{};
  if (!objects::Read(field, value).ok()) return T{};
  return value;
}

void ReadCondition(const JsonField& field, TFJobStatus& status) {
  const auto name = ReadOrDefault<std::string>(field["type"]);
  if (name.empty()) return;
  const auto type = ParseConditionType(name);
  if (!type) {
    status.foreign_conditions.push_back(PrintJson(*field.value()));
    return;
  }
  Condition& condition = status.conditions.emplace_back();
  condition.type = *type;
  condition.status = ReadOrDefault<std::string>(field["status"]) == "True";
  condition.reason = ReadOrDefault<std::string>(field["reason"]);
  condition.message = ReadOrDefault<std::string>(field["message"]);
  condition.last_update_time = ReadOrDefault<Time>(field["lastUpdateTime"]);
  condition.last_transition_time = ReadOrDefault<Time>(field["lastTransitionTime"]);
}

ReplicaStatus ReadReplicaStatus(const JsonField& field) {
  ReplicaStatus status;
  status.active = ReadOrDefault<int32_t>(field["active"]);
  status.succeeded = ReadOrDefault<int32_t>(field["succeeded"]);
  status.failed = ReadOrDefault<int32_t>(field["failed"]);
  status.selector = ReadOrDefault<std::string>(field["selector"]);
  status.restarts = ReadOrDefault<int32_t>(field["restarts"]);
  const auto completed = IndexSet::Parse(ReadOrDefault<std::string>(field["completedIndexes"]));
  if (completed.ok()) status.completed_indexes = completed->ToString();
  if (const auto replacing = field["replacing"].Elements(); replacing.ok()) {
    for (const JsonField& uid : *replacing) {
      status.replacing.push_back(ReadOrDefault<std::string>(uid));
    }
    std::sort(status.replacing.begin(), status.replacing.end());
  }
  return status;
}

Json ToJson(const Condition& condition) {
  Json json = {{"type", Name(condition.type)}, {"status", condition.status ? "True" : "False"}};
  const auto set = [&json](const char* key, const std::string& value) {
    if (!value.empty()) json[key] = value;
  };
  set("reason", condition.reason);
  set("message", condition.message);
  set("lastUpdateTime", FormatTime(condition.last_update_time));
  set("lastTransitionTime", FormatTime(condition.last_transition_time));
  return json;
}

Json ToJson(const ReplicaStatus& status) {
  Json json = Json::object();
  const auto set_count = [&json](const char* key, int32_t value) {
    if (value != 0) json[key] = value;
  };
  set_count("active", status.active);
  set_count("succeeded", status.succeeded);
  set_count("failed", status.failed);
  set_count("restarts", status.restarts);
  if (!status.selector.empty()) json["selector"] = status.selector;
  if (!status.completed_indexes.empty()) json["completedIndexes"] = status.completed_indexes;
  if (!status.replacing.empty()) json["replacing"] = status.replacing;
  return json;
}

}  // namespace

TFJobStatus ReadStatus(const JsonField& status) {
  TFJobStatus read;
  if (const auto conditions = status["conditions"].Elements(); conditions.ok()) {
    for (const JsonField& field : *conditions) ReadCondition(field, read);
  }
  if (const auto replicas = status["replicaStatuses"].Members(); replicas.ok()) {
    for (const auto& [key, field] : *replicas) {
      const auto type = ParseReplicaType(key);
      if (type) read.replica_statuses[*type] = ReadReplicaStatus(field);
    }
  }
  read.start_time = ReadOrDefault<std::optional<Time>>(status["startTime"]);
  read.completion_time = ReadOrDefault<std::optional<Time>>(status["completionTime"]);
  read.last_reconcile_time = ReadOrDefault<std::optional<Time>>(status["lastReconcileTime"]);
  read.attempt = ReadOrDefault<int32_t>(status["attempt"]);
  read.ready = ReadOrDefault<std::string>(status["ready"]);
  read.restarts = ReadOrDefault<int32_t>(status["restarts"]);
  return read;
}

Json StatusToJson(const TFJobStatus& status) {
  Json json = Json::object();
  for (const std::string& text : status.foreign_conditions) {
    if (StatusOr<Json> condition = ParseJson(text, "condition"); condition.ok()) {
      json["conditions"].push_back(*std::move(condition));
    }
  }
  for (const Condition& condition : status.conditions) {
    json["conditions"].push_back(ToJson(condition));
  }
  for (const auto& [type, replica_status] : status.replica_statuses) {
    json["replicaStatuses"][std::string(Name(type))] = ToJson(replica_status);
  }
  const auto set_time = [&json](const char* key, const std::optional<Time>& time) {
    if (time) json[key] = FormatTime(*time);
  };
  set_time("startTime", status.start_time);
  set_time("completionTime", status.completion_time);
  set_time("lastReconcileTime", status.last_reconcile_time);
  if (status.attempt != 0) json["attempt"] = status.attempt;
  if (!status.ready.empty()) json["ready"] = status.ready;
  if (status.restarts != 0) json["restarts"] = status.restarts;
  return json;
}

}  // namespace tfjob::api
