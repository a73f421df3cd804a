#include "runtime/data/tfrecord/example.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/protobuf_reader.h"
#include "runtime/base/varint.h"

namespace tfjob::data {
namespace {

// The first byte of field 1, for each wire type in which the field may be encoded.
constexpr char kVarint = 0x08, kBytes = 0x0A, kFixed32 = 0x0D;

// Removes a length-prefixed string from the front of `rest`, and stores it in `bytes`. Returns
// false if there is no such string.
inline bool TakeBytes(std::string_view& rest, std::string_view& bytes) {
  uint64_t length = 0;
  if (!TakeVarint(rest, length) || length > rest.size()) return false;
  bytes = std::string_view(rest.data(), length);
  rest.remove_prefix(length);
  return true;
}

// Removes the field with this number (below 16), a string or a message, from the front of
// `message`, and stores its content in `bytes`. If there is no such field, returns false; the two
// views are then undefined.
inline bool TakeField(int number, std::string_view& message, std::string_view& bytes) {
  if (message.empty() || message.front() != static_cast<char>(number << 3 | 2)) return false;
  message.remove_prefix(1);
  return TakeBytes(message, bytes);
}

Status Malformed(ListKind kind, std::string_view list, std::string_view rest) {
  return InvalidArgument("malformed data in ", Name(kind), ", near its byte ",
                         list.size() - rest.size(), " of ", list.size());
}

// Reads a Feature message that consists of one list, as nearly all do. Otherwise, returns false.
bool ReadUsualFeature(std::string_view value, Feature& feature) {
  const int number = value.empty() ? 0 : value.front() >> 3;
  std::string_view list;
  if (number < 1 || number > 3 || !TakeField(number, value, list) || !value.empty()) return false;
  feature.kind = static_cast<ListKind>(number - 1);
  feature.list = list;
  feature.has_list = true;
  return true;
}

// Reads a Feature message into the fields of `feature` other than its name.
Status ReadFeature(std::string_view value, Feature& feature) {
  if (ReadUsualFeature(value, feature)) return OkStatus();
  int lists = 0;
  ProtobufReader reader(value);
  while (reader.Next()) {
    if (reader.field() > 3) continue;
    feature.kind = static_cast<ListKind>(reader.field() - 1);
    feature.list = reader.Bytes();
    ++lists;
  }
  if (!reader.status().ok()) return reader.status();
  if (lists > 1) return InvalidArgument("expected one list of values, got ", lists);
  feature.has_list = lists == 1;
  return OkStatus();
}

// Reads an entry of a map that consists of a name and a value, in this order, as nearly all do.
// Otherwise, returns false.
bool ReadUsualEntry(std::string_view entry, std::string_view& name, std::string_view& value) {
  return TakeField(1, entry, name) && TakeField(2, entry, value) && entry.empty();
}

Status ReadEntry(std::string_view bytes, std::string_view& name, std::string_view& value) {
  if (ReadUsualEntry(bytes, name, value)) return OkStatus();
  name = value = {};
  ProtobufReader entry(bytes);
  while (entry.Next()) {
    if (entry.field() == 1) name = entry.Bytes();
    if (entry.field() == 2) value = entry.Bytes();
  }
  return entry.status();
}

// Calls `visit` for each entry of the map in field 1 of `bytes`. The map's keys are names, and its
// values are messages. Adds the name to errors from `visit`.
Status VisitMap(std::string_view bytes,
                absl::FunctionRef<Status(std::string_view name, std::string_view value)> visit) {
  ProtobufReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() != 1) continue;
    std::string_view name, value;
    const Status read = ReadEntry(reader.Bytes(), name, value);
    if (!read.ok()) reader.Fail(read);
    if (!reader.status().ok()) break;
    const Status visited = visit(name, value);
    if (!visited.ok()) reader.Fail(Annotate(visited, StrCat("feature ", name.substr(0, 100))));
  }
  return reader.status();
}

Status CheckList(const Feature& feature) {
  if (!feature.has_list) return OkStatus();
  switch (feature.kind) {
    case ListKind::kBytes:
      return ReadBytesList(feature.list, {}).status();
    case ListKind::kFloat:
      return ReadFloatList(feature.list, {}).status();
    case ListKind::kInt64:
      return ReadInt64List(feature.list, {}).status();
  }
  return OkStatus();
}

}  // namespace

std::string_view Name(ListKind kind) {
  constexpr std::string_view kNames[] = {"a bytes_list", "a float_list", "an int64_list"};
  return kNames[static_cast<int>(kind)];
}

Status VisitExample(std::string_view example, const ExampleVisitor& visitor) {
  const auto on_feature = [&](std::string_view name, std::string_view value) -> Status {
    Feature feature{.name = name};
    RETURN_IF_ERROR(ReadFeature(value, feature));
    return feature.has_list ? visitor.on_feature(feature) : OkStatus();
  };
  const auto on_steps = [&](std::string_view name, std::string_view value) {
    return visitor.on_steps({.name = name, .steps = value});
  };
  ProtobufReader reader(example);
  while (reader.Next()) {
    if (reader.field() == 1) reader.Fail(VisitMap(reader.Bytes(), on_feature));
    if (reader.field() == 2) reader.Fail(VisitMap(reader.Bytes(), on_steps));
  }
  return reader.status();
}

Status VisitSteps(const FeatureSteps& steps, absl::FunctionRef<Status(const Feature&)> visit) {
  int64_t step = 0;
  const auto visit_step = [&](std::string_view value) -> Status {
    Feature feature{.name = steps.name};
    RETURN_IF_ERROR(ReadFeature(value, feature));
    return visit(feature);
  };
  ProtobufReader reader(steps.steps);
  while (reader.Next()) {
    if (reader.field() != 1) continue;
    const Status visited = visit_step(reader.Bytes());
    if (!visited.ok()) reader.Fail(Annotate(visited, StrCat("step ", step)));
    ++step;
  }
  return reader.status();
}

Status VisitBytesList(std::string_view list,
                      absl::FunctionRef<Status(std::string_view value)> visit) {
  for (std::string_view rest = list; !rest.empty();) {
    const bool known = rest.front() == kBytes;
    rest.remove_prefix(1);
    std::string_view value;
    if (!known || !TakeBytes(rest, value)) return Malformed(ListKind::kBytes, list, rest);
    RETURN_IF_ERROR(visit(value));
  }
  return OkStatus();
}

StatusOr<size_t> ReadBytesList(std::string_view list, std::span<std::string_view> values) {
  size_t count = 0;
  RETURN_IF_ERROR(VisitBytesList(list, [&](std::string_view value) {
    if (count < values.size()) values[count] = value;
    ++count;
    return OkStatus();
  }));
  return count;
}

StatusOr<size_t> ReadFloatList(std::string_view list, std::span<float> values) {
  size_t count = 0;
  for (std::string_view rest = list; !rest.empty();) {
    const char tag = rest.front();
    rest.remove_prefix(1);
    std::string_view packed;
    if (tag == kFixed32 && rest.size() >= sizeof(float)) {
      packed = rest.substr(0, sizeof(float));
      rest.remove_prefix(sizeof(float));
    } else if (tag != kBytes || !TakeBytes(rest, packed) || packed.size() % sizeof(float) != 0) {
      return Malformed(ListKind::kFloat, list, rest);
    }
    const size_t more = packed.size() / sizeof(float);
    if (count < values.size() && more > 0) {  // x86-64 is little-endian, as protobuf is
      std::memcpy(values.data() + count, packed.data(),
                  std::min(more, values.size() - count) * sizeof(float));
    }
    count += more;
  }
  return count;
}

StatusOr<size_t> ReadInt64List(std::string_view list, std::span<int64_t> values) {
  size_t count = 0;
  for (std::string_view rest = list; !rest.empty();) {
    const char tag = rest.front();
    rest.remove_prefix(1);
    std::string_view packed;
    uint64_t value = 0;
    if (tag == kVarint) {
      if (!TakeVarint(rest, value)) return Malformed(ListKind::kInt64, list, rest);
      if (count < values.size()) values[count] = static_cast<int64_t>(value);
      ++count;
      continue;
    }
    if (tag != kBytes || !TakeBytes(rest, packed)) return Malformed(ListKind::kInt64, list, rest);
    for (; !packed.empty(); ++count) {
      if (!TakeVarint(packed, value)) return Malformed(ListKind::kInt64, list, rest);
      if (count < values.size()) values[count] = static_cast<int64_t>(value);
    }
  }
  return count;
}

Status CheckExample(std::string_view example) {
  const auto check_steps = [](const FeatureSteps& steps) { return VisitSteps(steps, CheckList); };
  return VisitExample(example, {CheckList, check_steps});
}

}  // namespace tfjob::data
