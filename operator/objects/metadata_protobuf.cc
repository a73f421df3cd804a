#include <algorithm>
#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "operator/objects/protobuf.h"
#include "runtime/base/protobuf_reader.h"

namespace tfjob::objects {
namespace {

constexpr int64_t kLastSecond = 253402300799;  // the last second of the year 9999

using TextMap = std::map<std::string, std::string>;

Status ReadEntry(std::string_view entry, TextMap& map) {
  ProtobufReader reader(entry);
  std::string key;
  std::string value;
  while (reader.Next()) {
    if (reader.field() == 1) key = reader.Text();
    if (reader.field() == 2) value = reader.Text();
  }
  if (reader.status().ok()) map.insert_or_assign(std::move(key), std::move(value));
  return reader.status();
}

StatusOr<OwnerReference> ReadOwnerReferenceProtobuf(std::string_view message) {
  ProtobufReader reader(message);
  OwnerReference owner;
  while (reader.Next()) {
    switch (reader.field()) {
      case 1:
        owner.kind = reader.Text();
        break;
      case 3:
        owner.name = reader.Text();
        break;
      case 4:
        owner.uid = reader.Text();
        break;
      case 5:
        owner.api_version = reader.Text();
        break;
      case 6:
        owner.controller = reader.Bool();
        break;
      case 7:
        owner.block_owner_deletion = reader.Bool();
        break;
    }
  }
  RETURN_IF_ERROR(reader.status());
  return owner;
}

// Reads the current field if it is a string or a number.
void ReadScalar(ProtobufReader& reader, ObjectMeta& meta) {
  switch (reader.field()) {
    case 1:
      meta.name = reader.Text();
      break;
    case 3:
      meta.name_space = reader.Text();
      break;
    case 5:
      meta.uid = reader.Text();
      break;
    case 6:
      meta.resource_version = reader.Text();
      break;
    case 7:
      meta.generation = reader.Int();
      break;
    case 10:
      meta.deletion_grace_period_seconds = reader.Int();
      break;
    case 14:
      meta.finalizers.push_back(reader.Text());
      break;
  }
}

// Reads the current field if it is a message.
Status ReadMessage(ProtobufReader& reader, ObjectMeta& meta, TextMap& labels) {
  switch (reader.field()) {
    case 8: {
      ASSIGN_OR_RETURN(meta.creation_timestamp, ParseTimeProtobuf(reader.Bytes()));
      return OkStatus();
    }
    case 9: {
      ASSIGN_OR_RETURN(const Time time, ParseTimeProtobuf(reader.Bytes()));
      if (time != Time()) meta.deletion_timestamp = time;
      return OkStatus();
    }
    case 11:
      return ReadEntry(reader.Bytes(), labels);
    case 12:
      return ReadEntry(reader.Bytes(), meta.annotations);
    case 13: {
      ASSIGN_OR_RETURN(OwnerReference owner, ReadOwnerReferenceProtobuf(reader.Bytes()));
      meta.owner_references.push_back(std::move(owner));
      return OkStatus();
    }
    default:
      return OkStatus();
  }
}

}  // namespace

StatusOr<Time> ParseTimeProtobuf(std::string_view time) {
  ProtobufReader reader(time);
  int64_t seconds = 0;
  while (reader.Next()) {
    if (reader.field() == 1) seconds = reader.Int();
  }
  RETURN_IF_ERROR(reader.status());
  if (seconds > kLastSecond) return InvalidArgument("a time after the year 9999");
  return Time(std::chrono::seconds(std::max<int64_t>(seconds, 0)));
}

StatusOr<ObjectMeta> ParseObjectMetaProtobuf(std::string_view metadata) {
  ProtobufReader reader(metadata);
  ObjectMeta meta;
  TextMap labels;
  while (reader.Next()) {
    ReadScalar(reader, meta);
    reader.Fail(ReadMessage(reader, meta, labels));
  }
  RETURN_IF_ERROR(reader.status());
  if (!labels.empty()) meta.labels = labels;
  return meta;
}

StatusOr<Service> ParseServiceProtobuf(std::string_view service) {
  ProtobufReader reader(service);
  Service result;
  while (reader.Next()) {
    if (reader.field() != 1) continue;
    ASSIGN_OR_RETURN(result.metadata, ParseObjectMetaProtobuf(reader.Bytes()));
  }
  RETURN_IF_ERROR(reader.status());
  return result;
}

}  // namespace tfjob::objects
