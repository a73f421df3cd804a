#include "runtime/data/tfrecord/example.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/protobuf_reader.h"
#include "runtime/base/varint.h"

namespace tfjob::data {
namespace {

// The byte with which field 1 of a list begins, for each type of the field.
constexpr char kVarint = 0x08, kBytes = 0x0A, kFixed32 = 0x0D;

// Removes a length-prefixed string from the front of `rest`. Returns false if there is none.
bool TakeBytes(std::string_view& rest, std::string_view& bytes) {
  uint64_t length = 0;
  if (!TakeVarint(rest, length) || length > rest.size()) return false;
  bytes = rest.substr(0, length);
  rest.remove_prefix(length);
  return true;
}

Status Malformed(ListKind kind, std::string_view list, std::string_view rest) {
  return InvalidArgument("malformed data in ", Name(kind), ", near its byte ",
                         list.size() - rest.size(), " of ", list.size());
}

// Visits the features in one Features message.
class FeaturesVisitor {
 public:
  explicit FeaturesVisitor(absl::FunctionRef<Status(const Feature&)> visit) : visit_(visit) {}

  Status Visit(std::string_view features) {
    ProtobufReader reader(features);
    while (reader.Next()) {
      if (reader.field() == 1) reader.Fail(VisitEntry(reader.Bytes()));
    }
    return reader.status();
  }

 private:
  // Reads an entry of the map from names to features.
  Status VisitEntry(std::string_view entry) {
    std::string_view name, value;
    ProtobufReader reader(entry);
    while (reader.Next()) {
      if (reader.field() == 1) name = reader.Bytes();
      if (reader.field() == 2) value = reader.Bytes();
    }
    RETURN_IF_ERROR(reader.status());
    Status visited = VisitFeature(name, value);
    return visited.ok() ? visited : Annotate(visited, StrCat("feature ", name.substr(0, 100)));
  }

  Status VisitFeature(std::string_view name, std::string_view value) {
    Feature feature{.name = name};
    int lists = 0;
    ProtobufReader reader(value);
    while (reader.Next()) {
      if (reader.field() > 3) continue;
      feature.kind = static_cast<ListKind>(reader.field() - 1);
      feature.list = reader.Bytes();
      ++lists;
    }
    RETURN_IF_ERROR(reader.status());
    if (lists > 1) return InvalidArgument("expected one list of values, got ", lists);
    return lists == 1 ? visit_(feature) : OkStatus();
  }

  const absl::FunctionRef<Status(const Feature&)> visit_;
};

}  // namespace

std::string_view Name(ListKind kind) {
  constexpr std::string_view kNames[] = {"a bytes_list", "a float_list", "an int64_list"};
  return kNames[static_cast<int>(kind)];
}

Status VisitFeatures(std::string_view example, absl::FunctionRef<Status(const Feature&)> visit) {
  ProtobufReader reader(example);
  FeaturesVisitor visitor(visit);
  while (reader.Next()) {
    if (reader.field() == 1) reader.Fail(visitor.Visit(reader.Bytes()));
    if (reader.field() == 2) {
      reader.Fail(
          InvalidArgument("it looks like a tf.train.SequenceExample, which is not supported"));
    }
  }
  return reader.status();
}

StatusOr<size_t> ReadBytesList(std::string_view list, std::span<std::string_view> values) {
  size_t count = 0;
  for (std::string_view rest = list; !rest.empty(); ++count) {
    const bool known = rest.front() == kBytes;
    rest.remove_prefix(1);
    std::string_view value;
    if (!known || !TakeBytes(rest, value)) return Malformed(ListKind::kBytes, list, rest);
    if (count < values.size()) values[count] = value;
  }
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
  return VisitFeatures(example, [](const Feature& feature) {
    switch (feature.kind) {
      case ListKind::kBytes:
        return ReadBytesList(feature.list, {}).status();
      case ListKind::kFloat:
        return ReadFloatList(feature.list, {}).status();
      case ListKind::kInt64:
        return ReadInt64List(feature.list, {}).status();
    }
    return OkStatus();
  });
}

}  // namespace tfjob::data
