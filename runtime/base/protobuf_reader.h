// Reads messages in protobuf's wire format without a schema and without copying. Messages may be
// hostile. https://protobuf.dev/programming-guides/encoding/
//
//   ProtobufReader reader(message);
//   while (reader.Next()) {
//     switch (reader.field()) {
//       case 1: name = reader.Text(); break;
//       case 2: RETURN_IF_ERROR(ReadPart(reader.Bytes())); break;
//     }
//   }
//   return reader.status();
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/base/varint.h"

namespace tfjob {

// Not thread-safe. The message must outlive the reader and the views that it returns. A reader does
// not recurse: a caller decides which fields are messages, and reads each of them with another
// reader.
class ProtobufReader {
 public:
  explicit ProtobufReader(std::string_view message) : rest_(message) {}

  // Advances to the next field. Returns false at the end of the message and after an error.
  bool Next() {
    if (rest_.empty() || !status_.ok()) return false;
    return NextShort() || NextOfAnyType();
  }
  // Returns OK; InvalidArgument if the message is malformed or a field does not have the type that
  // the caller requested; or the error passed to Fail. If there are several errors, returns the
  // first.
  const Status& status() const { return status_; }
  // Stops reading with this error, for example the error of a nested message. An OK status has no
  // effect.
  void Fail(Status error);

  // The current field number.
  uint32_t field() const { return field_; }

  // Return the value of the current field: the bytes of a string or of a message, or a number.
  // After an error, return "" or 0.
  std::string_view Bytes() {
    if (type_ == Type::kBytes && status_.ok()) return bytes_;
    return NotBytes();
  }
  // Like Bytes, but each byte that is not part of valid UTF-8 is replaced by U+FFFD, as in Go's
  // JSON encoder.
  std::string Text();
  int64_t Int();
  int32_t Int32();
  bool Bool();

 private:
  enum class Type { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

  // Reads the next field if it is a complete string or message whose number is less than 16, as
  // most are. Otherwise, returns false and changes nothing. The message must not be at its end.
  bool NextShort() {
    const auto tag = static_cast<unsigned char>(rest_.front());
    if ((tag & 0x87) != static_cast<unsigned char>(Type::kBytes) || tag < 0x08) return false;
    std::string_view rest(rest_.data() + 1, rest_.size() - 1);
    uint64_t length = 0;
    if (!TakeVarint(rest, length) || length > rest.size()) return false;
    field_ = tag >> 3;
    type_ = Type::kBytes;
    bytes_ = std::string_view(rest.data(), length);
    rest_ = std::string_view(rest.data() + length, rest.size() - length);
    return true;
  }
  bool NextOfAnyType();
  std::string_view NotBytes();
  bool ReadVarint(uint64_t& value);
  bool ReadValue(uint64_t tag);
  bool Is(Type type, std::string_view expected);

  std::string_view rest_;
  Status status_;
  uint32_t field_ = 0;
  Type type_ = Type::kVarint;
  uint64_t number_ = 0;
  std::string_view bytes_;
};

}  // namespace tfjob
