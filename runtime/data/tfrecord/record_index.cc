#include "runtime/data/tfrecord/record_index.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "runtime/data/tfrecord/example.h"
#include "runtime/io/record.h"

namespace tfjob::data {
namespace {

constexpr uint64_t kFraming = io::kRecordHeader + io::kRecordFooter;
constexpr uint64_t kMostPayload = (uint64_t{1} << 31) - 1;  // protobuf's limit for a message
// If the next record begins further away than this, a record is read in two parts, the first of
// this size, because the distance may include damaged bytes between the two records.
constexpr uint64_t kFirstPart = 256 << 10;

// Lists the records of one file.
class Scanner {
 public:
  Scanner(const RecordFiles& files, size_t file, const IndexOptions& options,
          RecordFileReader& reader, OffsetList& offsets, Damage& damage)
      : file_(files.files()[file]),
        number_(file),
        options_(options),
        reader_(reader),
        offsets_(offsets),
        damage_(damage) {}

  Status Run() {
    if (file_.size == 0)
      return OnDamage(DataLoss(file_.Place(0), ": the file is empty; expected a record"));
    uint64_t offset = 0;
    while (offset < file_.size) {
      ASSIGN_OR_RETURN(const std::optional<uint64_t> payload, Length(offset));
      if (!payload) {
        RETURN_IF_ERROR(OnDamage(LengthError(offset)));
        ASSIGN_OR_RETURN(offset, NextHeader(offset + 1));
        continue;
      }
      const Status intact = options_.skip_damaged ? CheckPayload(offset, *payload) : OkStatus();
      if (intact.ok()) {
        RETURN_IF_ERROR(offsets_.Append(offset));
      } else if (!absl::IsDataLoss(intact)) {
        return intact;
      } else {
        RETURN_IF_ERROR(OnDamage(intact));
      }
      offset += *payload + kFraming;
    }
    return OkStatus();
  }

 private:
  Status OnDamage(const Status& error) {
    if (!options_.skip_damaged) return error;
    damage_.Add(error);
    return OkStatus();
  }

  // Returns the length of the payload of the record at `offset`. Returns nullopt if no valid header
  // is there, or if the file ends before the record does.
  StatusOr<std::optional<uint64_t>> Length(uint64_t offset) {
    const uint64_t left = file_.size - offset;
    if (left < kFraming) return std::optional<uint64_t>();
    ASSIGN_OR_RETURN(const std::string_view header, View(offset, io::kRecordHeader));
    const std::optional<uint64_t> length = io::RecordLength(header);
    if (!length || *length > kMostPayload || *length > left - kFraming)
      return std::optional<uint64_t>();
    return length;
  }

  // Explains why Length has returned nullopt.
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
                      " bytes, as an example has");
    }
    return DataLoss(place, ": its length is ", *length, ", but the file ends ", left - kFraming,
                    " bytes after its header");
  }

  // Returns the offset of the next valid header from `offset` on, or the size of the file.
  StatusOr<uint64_t> NextHeader(uint64_t offset) {
    for (; offset + kFraming <= file_.size; ++offset) {
      ASSIGN_OR_RETURN(const std::optional<uint64_t> length, Length(offset));
      if (length) return offset;
    }
    return file_.size;
  }

  Status CheckPayload(uint64_t offset, uint64_t payload) {
    ASSIGN_OR_RETURN(const std::string_view bytes,
                     View(offset + io::kRecordHeader, payload + io::kRecordFooter));
    if (!io::IsIntact(bytes.substr(0, payload), bytes.substr(payload)))
      return DataLoss(file_.Place(offset), ": the checksum of its payload is wrong");
    const Status example = CheckExample(bytes.substr(0, payload));
    if (example.ok()) return example;
    return DataLoss(file_.Place(offset), ": it is not a tf.train.Example: ", Message(example));
  }

  StatusOr<std::string_view> View(uint64_t offset, uint64_t size) {
    return reader_.View(number_, offset, size);
  }

  const RecordFile& file_;
  const size_t number_;
  const IndexOptions& options_;
  RecordFileReader& reader_;
  OffsetList& offsets_;
  Damage& damage_;
};

}  // namespace

StatusOr<RecordIndex> RecordIndex::Build(const RecordFiles& files, const IndexOptions& options,
                                         Damage& damage) {
  RecordIndex index(OffsetList(options.folder, options.most_in_memory));
  RecordFileReader reader(files);
  for (size_t i = 0; i < files.files().size(); ++i) {
    index.first_.push_back(index.size());
    index.sizes_.push_back(files.files()[i].size);
    RETURN_IF_ERROR(Scanner(files, i, options, reader, index.offsets_, damage).Run());
  }
  index.first_.push_back(index.size());
  RETURN_IF_ERROR(index.offsets_.Finish());
  if (index.size() > 0) return index;
  return InvalidArgument(
      files.files()[0].path, files.files().size() > 1 ? " and the other files" : "",
      ": expected at least one intact record, found none; the first problem: ", damage.first);
}

RecordPlace RecordIndex::At(int64_t record) const {
  // The record is in the last file whose first record number is at most `record`. Earlier files
  // with the same first record number contain no records.
  const auto after = std::upper_bound(first_.begin(), first_.end(), record);
  const auto file = static_cast<size_t>(after - first_.begin()) - 1;
  const uint64_t offset = offsets_[static_cast<size_t>(record)];
  const bool last = record + 1 == *after;
  const uint64_t end = last ? sizes_[file] : offsets_[static_cast<size_t>(record) + 1];
  return {.file = file, .offset = offset, .most_bytes = end - offset};
}

uint64_t RecordIndex::hash() const {
  Fnv1a hash;
  for (const uint64_t size : sizes_) hash.AddWord(size);
  return hash.AddWord(offsets_.hash()).hash();
}

StatusOr<std::string_view> ReadRecord(const RecordFiles& files, RecordFileReader& reader,
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
