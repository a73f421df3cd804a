#include "runtime/data/records/record_index.h"

#include <algorithm>

namespace tfjob::data {

StatusOr<RecordIndex> RecordIndex::Build(const RecordScanner& scanner, const RecordFiles& files,
                                         const IndexOptions& options, Damage& damage) {
  RecordIndex index(OffsetList(options.folder, options.most_in_memory));
  RecordFileReader reader(files);
  const auto on_damage = [&](const Status& error) {
    if (!options.skip_damaged) return error;
    damage.Add(error);
    return OkStatus();
  };
  const auto append = [&](const FoundRecord& record) -> Status {
    if (options.skip_damaged && options.check != nullptr) {
      const Status checked = options.check(record.content);
      if (absl::IsDataLoss(checked)) return on_damage(Annotate(checked, record.place()));
      RETURN_IF_ERROR(Annotate(checked, record.place()));
    }
    index.contents_.AddWord(record.checksum);
    return index.offsets_.Append(record.offset);
  };
  for (size_t i = 0; i < files.files().size(); ++i) {
    index.first_.push_back(index.size());
    index.sizes_.push_back(files.files()[i].size);
    const Status scanned =
        scanner.Scan(files, i, reader, options.skip_damaged, {append, on_damage});
    RETURN_IF_ERROR(reader.CheckUnchanged());
    RETURN_IF_ERROR(scanned);
  }
  index.first_.push_back(index.size());
  RETURN_IF_ERROR(index.offsets_.Finish());
  if (index.size() > 0) return index;
  return InvalidArgument(
      files.files()[0].path, files.files().size() > 1 ? " and the other files" : "",
      ": expected at least one intact record, found none",
      damage.places > 0 ? StrCat("; the first problem: ", damage.first) : std::string());
}

std::string RecordIndex::Describe() const {
  return StrCat("index of ", offsets_.size() * sizeof(uint64_t), " bytes in ",
                offsets_.in_memory() ? "memory" : "a mapped temporary file");
}

RecordPlace RecordIndex::At(int64_t record) const {
  // The record is in the last file whose first record is at or before `record`. Earlier files with
  // the same first record are empty.
  const auto after = std::upper_bound(first_.begin(), first_.end(), record);
  const auto file = static_cast<size_t>(after - first_.begin()) - 1;
  const uint64_t offset = offsets_[static_cast<size_t>(record)];
  const bool last = record + 1 == *after;
  const uint64_t end = last ? sizes_[file] : offsets_[static_cast<size_t>(record) + 1];
  return {.file = file, .offset = offset, .most_bytes = end - offset};
}

}  // namespace tfjob::data
