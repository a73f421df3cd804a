#include "runtime/base/protobuf_reader.h"

#include <limits>
#include <utility>

#include "runtime/base/json.h"

namespace tfjob {
namespace {

constexpr uint64_t kMaxField = (uint64_t{1} << 29) - 1;
constexpr char kReplacement[] = "\xEF\xBF\xBD";  // U+FFFD

size_t SequenceLength(char first) {
  const auto byte = static_cast<unsigned char>(first);
  if (byte < 0x80) return 1;
  if (byte < 0xE0) return 2;
  return byte < 0xF0 ? 3 : 4;
}

std::string ReplaceInvalid(std::string_view bytes) {
  std::string text;
  while (!bytes.empty()) {
    const std::string_view sequence = bytes.substr(0, SequenceLength(bytes.front()));
    const bool valid = IsUtf8(sequence);
    text += valid ? sequence : kReplacement;
    bytes.remove_prefix(valid ? sequence.size() : 1);
  }
  return text;
}

}  // namespace

void ProtobufReader::Fail(Status error) {
  if (status_.ok()) status_ = std::move(error);
}

bool ProtobufReader::ReadVarint(uint64_t& value) {
  if (TakeVarint(rest_, value)) return true;
  Fail(InvalidArgument("protobuf: a number does not end"));
  return false;
}

bool ProtobufReader::ReadValue(uint64_t tag) {
  uint64_t length = 0;
  switch (tag & 7) {
    case 0:
      return ReadVarint(number_);
    case 1:
      length = 8;
      break;
    case 2:
      if (!ReadVarint(length)) return false;
      break;
    case 5:
      length = 4;
      break;
    default:  // groups, which no message that is read here contains
      Fail(InvalidArgument("protobuf: field ", field_, " has the unknown type ", tag & 7));
      return false;
  }
  if (length > rest_.size()) {
    Fail(InvalidArgument("protobuf: field ", field_, " has ", length, " bytes, but only ",
                         rest_.size(), " follow"));
    return false;
  }
  bytes_ = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return true;
}

bool ProtobufReader::NextOfAnyType() {
  uint64_t tag = 0;
  if (!ReadVarint(tag)) return false;
  const uint64_t field = tag >> 3;
  if (field == 0 || field > kMaxField) {
    Fail(InvalidArgument("protobuf: ", field, " is not the number of a field"));
    return false;
  }
  field_ = static_cast<uint32_t>(field);
  type_ = static_cast<Type>(tag & 7);
  return ReadValue(tag);
}

bool ProtobufReader::Is(Type type, std::string_view expected) {
  if (type_ != type) Fail(InvalidArgument("protobuf: field ", field_, " is not ", expected));
  return status_.ok();
}

std::string_view ProtobufReader::NotBytes() {
  (void)Is(Type::kBytes, "a string or a message");
  return {};
}

std::string ProtobufReader::Text() {
  const std::string_view bytes = Bytes();
  return IsUtf8(bytes) ? std::string(bytes) : ReplaceInvalid(bytes);
}

int64_t ProtobufReader::Int() {
  return Is(Type::kVarint, "an integer") ? static_cast<int64_t>(number_) : 0;
}

int32_t ProtobufReader::Int32() {
  const int64_t value = Int();
  if (value < std::numeric_limits<int32_t>::min() || value > std::numeric_limits<int32_t>::max()) {
    Fail(InvalidArgument("protobuf: field ", field_, " is ", value, ", not an integer of 32 bits"));
    return 0;
  }
  return static_cast<int32_t>(value);
}

bool ProtobufReader::Bool() {
  return Int() != 0;
}

}  // namespace tfjob
