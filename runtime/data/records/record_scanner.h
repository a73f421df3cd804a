// Defines the interface that finds the records of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"
#include "runtime/data/records/record_files.h"

namespace tfjob::data {

struct FoundRecord {
  uint64_t offset = 0;       // the start of the record in the file
  uint32_t checksum = 0;     // CRC-32C of the content; verified only with `check`
  std::string_view content;  // without framing; only with `check`
  // Returns the place of the record for messages, such as "a.jsonl: line 7".
  absl::FunctionRef<std::string()> place;
};

// Finds the records of one format. Immutable.
class RecordScanner {
 public:
  virtual ~RecordScanner() = default;

  struct Visitor {
    // Called for each record, in file order. An error stops the scan.
    absl::FunctionRef<Status(const FoundRecord& record)> on_record;
    // Called for each damaged place, with a DataLoss error that names the file and the place. If
    // the function returns an error, the scan stops; otherwise, the scan continues after the
    // damage.
    absl::FunctionRef<Status(const Status& damage)> on_damage;
  };
  // Visits the records of file `file`. With `check`, reads all records completely, and visits only
  // the intact ones. Otherwise, reads only the bytes that are needed to find the records.
  virtual Status Scan(const RecordFiles& files, size_t file, RecordFileReader& reader, bool check,
                      const Visitor& visitor) const = 0;
};

}  // namespace tfjob::data
