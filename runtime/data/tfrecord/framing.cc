#include "runtime/data/tfrecord/framing.h"

#include <algorithm>
#include <optional>

#include "runtime/io/record.h"

namespace tfjob::data {
namespace {

constexpr uint64_t kFraming = io::kRecordHeader + io::kRecordFooter;
constexpr uint64_t kMostPayload = (uint64_t{1} << 31) - 1;  // protobuf's limit for a message
// The maximum number of bytes in the first read of a record; a longer record needs a second read.
// The size of a record is known only from its header, and the next record may be much further away,
// because damaged bytes may precede it.
constexpr uint64_t kFirstPart = 256 << 10;

// Finds the records of one file.
class FramingScanner {
 public:
  FramingScanner(const RecordFiles& files, size_t file, RecordFileReader& reader,
                 const RecordScanner::Visitor& visitor)
      : file_(files.files()[file]), number_(file), reader_(reader), visitor_(visitor) {}

  // Visits all records. Checks the payloads, unless `check` is null.
  Status Run(const PayloadCheck* check) {
    if (file_.size == 0) {
      return visitor_.on_damage(DataLoss(file_.Place(0), ": the file is empty; expected a record"));
    }
    uint64_t offset = 0;
    while (offset < file_.size) {
      ASSIGN_OR_RETURN(const std::optional<uint64_t> length, Length(offset));
      if (!length) {
        const Status damage = LengthError(offset);
        if (!absl::IsDataLoss(damage)) return damage;
        RETURN_IF_ERROR(visitor_.on_damage(damage));
        ASSIGN_OR_RETURN(offset, NextHeader(offset + 1));
        continue;
      }
      RETURN_IF_ERROR(check == nullptr ? Visit(offset, *length) : Visit(offset, *length, *check));
      offset += *length + kFraming;
    }
    return OkStatus();
  }

 private:
  Status Visit(uint64_t offset, uint64_t length) {
    const uint64_t footer = offset + io::kRecordHeader + length;
    // Also view the header of the next record, so that a single read fetches both.
    ASSIGN_OR_RETURN(const std::string_view bytes,
                     View(footer, std::min<uint64_t>(kFraming, file_.size - footer)));
    return Found(offset, bytes, {});
  }

  Status Visit(uint64_t offset, uint64_t length, const PayloadCheck& check) {
    ASSIGN_OR_RETURN(const std::string_view bytes,
                     View(offset + io::kRecordHeader, length + io::kRecordFooter));
    const std::string_view payload = bytes.substr(0, length);
    if (!io::IsIntact(payload, bytes.substr(length))) {
      return visitor_.on_damage(
          DataLoss(file_.Place(offset), ": the checksum of its payload is wrong"));
    }
    const Status valid = check(payload);
    if (valid.ok()) return Found(offset, bytes.substr(length), payload);
    return visitor_.on_damage(DataLoss(file_.Place(offset), ": ", Message(valid)));
  }

  Status Found(uint64_t offset, std::string_view footer, std::string_view payload) {
    return visitor_.on_record(
        {.offset = offset, .checksum = io::PayloadCrc32c(footer), .content = payload, .place = [&] {
           return file_.Place(offset);
         }});
  }

  // Returns the payload length of the record at `offset`, or nullopt if there is no valid header,
  // or if the file ends before the record does.
  StatusOr<std::optional<uint64_t>> Length(uint64_t offset) {
    const uint64_t left = file_.size - offset;
    if (left < kFraming) return std::optional<uint64_t>();
    ASSIGN_OR_RETURN(const std::string_view header, View(offset, io::kRecordHeader));
    const std::optional<uint64_t> length = io::RecordLength(header);
    if (!length || *length > kMostPayload || *length > left - kFraming)
      return std::optional<uint64_t>();
    return length;
  }

  // Returns DataLoss, with the reason why Length returned nullopt.
  Status LengthError(uint64_t offset) {
    const std::string place = file_.Place(offset);
    const uint64_t left = file_.size - offset;
    if (left < kFraming) {
      return DataLoss(place, ": expected at least ", kFraming, " bytes, the file ends after ",
                      left);
    }
    ASSIGN_OR_RETURN(const std::string_view header, View(offset, io::kRecordHeader));
    const std::optional<uint64_t> length = io::RecordLength(header);
    if (!length) return DataLoss(place, ": the checksum of its length is wrong");
    if (*length > kMostPayload) {
      return DataLoss(place, ": its length is ", *length, "; expected at most ", kMostPayload,
                      " bytes, the limit for an example");
    }
    return DataLoss(place, ": its length is ", *length, ", but the file ends ", left - kFraming,
                    " bytes after its header");
  }

  // Returns the offset of the first valid header at or after `offset`, or the size of the file.
  StatusOr<uint64_t> NextHeader(uint64_t offset) {
    for (; offset + kFraming <= file_.size; ++offset) {
      ASSIGN_OR_RETURN(const std::optional<uint64_t> length, Length(offset));
      if (length) return offset;
    }
    return file_.size;
  }

  StatusOr<std::string_view> View(uint64_t offset, uint64_t size) {
    return reader_.View(number_, offset, size);
  }

  const RecordFile& file_;
  const size_t number_;
  RecordFileReader& reader_;
  const RecordScanner::Visitor& visitor_;
};

}  // namespace

Status ScanFramedRecords(const RecordFiles& files, size_t file, RecordFileReader& reader,
                         const PayloadCheck* check, const RecordScanner::Visitor& visitor) {
  return FramingScanner(files, file, reader, visitor).Run(check);
}

StatusOr<std::string_view> ReadFramedRecord(const RecordFiles& files, RecordFileReader& reader,
                                            const RecordPlace& place) {
  const RecordFile& file = files.files()[place.file];
  const auto wrong = [&](std::string_view what) {
    return DataLoss(file.Place(place.offset), ": the checksum of its ", what, " is wrong");
  };
  ASSIGN_OR_RETURN(std::string_view bytes,
                   reader.View(place.file, place.offset, std::min(place.most_bytes, kFirstPart)));
  const std::optional<uint64_t> length = io::RecordLength(bytes.substr(0, io::kRecordHeader));
  if (!length || *length > place.most_bytes - kFraming) return wrong("length");
  const uint64_t size = *length + kFraming;
  if (size > bytes.size()) {
    ASSIGN_OR_RETURN(bytes, reader.View(place.file, place.offset, size));
  }
  const std::string_view payload = bytes.substr(io::kRecordHeader, *length);
  if (!io::IsIntact(payload, bytes.substr(io::kRecordHeader + *length))) return wrong("payload");
  return payload;
}

}  // namespace tfjob::data
