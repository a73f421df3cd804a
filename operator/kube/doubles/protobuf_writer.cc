#include "operator/kube/doubles/protobuf_writer.h"

#include <chrono>
#include <nlohmann/json.hpp>
#include <vector>

#include "operator/objects/pod.h"
#include "runtime/base/clock.h"

namespace tfjob::kube {
namespace {

struct Field;
using Schema = std::vector<Field>;

struct Field {
  enum class Type { kText, kNumber, kTime, kMap, kMessage };
  const char* name;  // in JSON
  int number;
  Type type = Type::kText;
  Schema message = {};
};

using enum Field::Type;

const Schema& MetadataSchema() {
  static const Schema schema = {
      {"name", 1},
      {"generateName", 2},
      {"namespace", 3},
      {"uid", 5},
      {"resourceVersion", 6},
      {"generation", 7, kNumber},
      {"creationTimestamp", 8, kTime},
      {"deletionTimestamp", 9, kTime},
      {"deletionGracePeriodSeconds", 10, kNumber},
      {"labels", 11, kMap},
      {"annotations", 12, kMap},
      {"ownerReferences",
       13,
       kMessage,
       {{"kind", 1},
        {"name", 3},
        {"uid", 4},
        {"apiVersion", 5},
        {"controller", 6, kNumber},
        {"blockOwnerDeletion", 7, kNumber}}},
      {"finalizers", 14},
      {"managedFields", 17, kMessage, {{"manager", 1}, {"operation", 2}}}};
  return schema;
}

Schema ContainerSchema() {
  const Schema state = {{"waiting", 1, kMessage, {{"reason", 1}, {"message", 2}}},
                        {"running", 2, kMessage, {{"startedAt", 1, kTime}}},
                        {"terminated",
                         3,
                         kMessage,
                         {{"exitCode", 1, kNumber},
                          {"signal", 2, kNumber},
                          {"reason", 3},
                          {"message", 4},
                          {"startedAt", 5, kTime},
                          {"finishedAt", 6, kTime},
                          {"containerID", 7}}}};
  return {{"name", 1},
          {"state", 2, kMessage, state},
          {"ready", 4, kNumber},
          {"lastState", 3, kMessage, state},
          {"restartCount", 5, kNumber},
          {"image", 6}};
}

Schema PodStatusSchema() {
  return {{"phase", 1},
          {"conditions",
           2,
           kMessage,
           {{"type", 1},
            {"status", 2},
            {"lastProbeTime", 3, kTime},
            {"lastTransitionTime", 4, kTime},
            {"reason", 5},
            {"message", 6}}},
          {"message", 3},
          {"reason", 4},
          {"hostIP", 5},
          {"podIP", 6},
          {"startTime", 7, kTime},
          // The fields are in the order of their numbers, as servers write them.
          {"containerStatuses", 8, kMessage, ContainerSchema()},
          {"qosClass", 9},
          {"initContainerStatuses", 10, kMessage, ContainerSchema()}};
}

const Schema& SchemaOf(objects::Kind kind) {
  static const Schema pod = {
      {"metadata", 1, kMessage, MetadataSchema()},
      {"spec",
       2,
       kMessage,
       {{"nodeName", 10}, {"schedulingGroup", 43, kMessage, {{"podGroupName", 1}}}}},
      {"status", 3, kMessage, PodStatusSchema()}};
  static const Schema service = {{"metadata", 1, kMessage, MetadataSchema()},
                                 {"spec", 2, kMessage, {{"clusterIP", 3}}}};
  return kind == objects::Kind::kPod ? pod : service;
}

const Schema& StatusSchema() {
  static const Schema schema = {{"status", 2},
                                {"message", 3},
                                {"reason", 4},
                                {"details",
                                 5,
                                 kMessage,
                                 {{"name", 1},
                                  {"causes", 4, kMessage, {{"reason", 1}, {"message", 2}}},
                                  {"retryAfterSeconds", 5, kNumber}}},
                                {"code", 6, kNumber}};
  return schema;
}

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string WriteMessage(const Schema& schema, const Json& object);

std::string WriteTime(const std::string& text) {
  const StatusOr<Time> time = ParseTime(text);
  if (!time.ok()) return "";
  const auto since = time->time_since_epoch();
  return WriteField(1, std::chrono::floor<std::chrono::seconds>(since).count());
}

std::string WriteValue(const Field& field, const Json& value) {
  switch (field.type) {
    case kText:
      return WriteField(field.number, value.get<std::string>());
    case kNumber:
      return WriteField(field.number,
                        value.is_boolean() ? int64_t{value.get<bool>()} : value.get<int64_t>());
    case kTime:
      return WriteField(field.number, WriteTime(value.get<std::string>()));
    case kMessage:
      return WriteField(field.number, WriteMessage(field.message, value));
    case kMap: {
      std::string entries;
      for (const auto& [key, text] : value.items()) {
        entries +=
            WriteField(field.number, WriteField(1, key) + WriteField(2, text.get<std::string>()));
      }
      return entries;
    }
  }
  return "";
}

std::string WriteMessage(const Schema& schema, const Json& object) {
  std::string message;
  for (const Field& field : schema) {
    const auto found = object.find(field.name);
    if (found == object.end() || found->is_null()) continue;
    if (!found->is_array()) {
      message += WriteValue(field, *found);
      continue;
    }
    for (const Json& element : *found) message += WriteValue(field, element);
  }
  return message;
}

}  // namespace

std::string WriteField(int number, std::string_view bytes) {
  return Varint(static_cast<uint64_t>(number) << 3 | 2) + Varint(bytes.size()).append(bytes);
}

std::string WriteField(int number, int64_t value) {
  return Varint(static_cast<uint64_t>(number) << 3) + Varint(static_cast<uint64_t>(value));
}

std::string WriteProtobuf(objects::Kind kind, const Json& object) {
  return WriteMessage(SchemaOf(kind), object);
}

std::string WriteEnvelope(std::string_view kind, std::string_view message) {
  return std::string("k8s\0", 4) + WriteField(1, WriteField(1, "v1") + WriteField(2, kind)) +
         WriteField(2, message) + WriteField(3, "") + WriteField(4, "");
}

std::string WriteEnvelope(objects::Kind kind, const Json& object) {
  return WriteEnvelope(objects::Name(kind), WriteProtobuf(kind, object));
}

std::string WriteListEnvelope(objects::Kind kind, const Json& list) {
  static const Schema metadata = {{"resourceVersion", 2}, {"continue", 3}};
  std::string message = WriteField(1, WriteMessage(metadata, list["metadata"]));
  for (const Json& item : list["items"]) message += WriteField(2, WriteProtobuf(kind, item));
  return WriteEnvelope(std::string(objects::Name(kind)) + "List", message);
}

std::string WriteStatusEnvelope(const Json& status) {
  return WriteEnvelope("Status", WriteMessage(StatusSchema(), status));
}

std::string WriteEventFrame(std::string_view type, std::string_view envelope) {
  const std::string event = WriteField(1, type) + WriteField(2, WriteField(1, envelope));
  std::string frame;
  for (int shift = 24; shift >= 0; shift -= 8) frame += static_cast<char>(event.size() >> shift);
  return frame + event;
}

}  // namespace tfjob::kube
