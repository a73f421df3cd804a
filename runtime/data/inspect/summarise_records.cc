#include "runtime/data/inspect/summarise_records.h"

#include <utility>

namespace tfjob::data {

StatusOr<FileSummary> SummariseRecords(const std::string& path, std::string_view name,
                                       const RecordFormat& format, const SummaryOptions& options,
                                       const StopSource& stop, DescribeRecord describe) {
  Damage unpacking;
  ASSIGN_OR_RETURN(const RecordFiles files,
                   RecordFiles::Open({path}, TemporaryFolder(options.cache_dir), &unpacking));
  const RecordFile& file = files.files()[0];
  FileSummary summary(path, StrCat(name, file.unpacked ? " (compressed)" : ""),
                      options.most_damage);
  if (unpacking.places > 0) summary.AddDamage(unpacking.first);
  if (unpacking.places > 0 && file.size == 0) return summary;
  RecordFileReader reader(files);
  const auto on_record = [&](const FoundRecord& record) -> Status {
    if (stop.requested()) return Cancelled("stopped while reading ", path);
    const bool show = summary.examples++ < options.examples;
    if (!options.fields) return OkStatus();
    std::vector<std::string> values;
    RETURN_IF_ERROR(describe(record.content, summary, show ? &values : nullptr));
    if (!show) return OkStatus();
    summary.AddExample(record.place(), std::move(values));
    return OkStatus();
  };
  const auto on_damage = [&](const Status& error) {
    summary.AddDamage(Message(error));
    return OkStatus();
  };
  const Status scanned = format.Scan(files, 0, reader, /*check=*/true, {on_record, on_damage});
  // Check for changes first, because a changed file explains other errors.
  RETURN_IF_ERROR(reader.CheckUnchanged());
  RETURN_IF_ERROR(scanned);
  return summary;
}

}  // namespace tfjob::data
