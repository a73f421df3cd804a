// Defines how the records of a file are found.
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
  uint64_t offset = 0;       // of its first byte
  uint32_t checksum = 0;     // CRC-32C of its content; verified only with `check`
  std::string_view content;  // without framing; only with `check`
  // Returns where the record is, such as "a.jsonl: line 7", for messages.
  absl::FunctionRef<std::string()> place;
};

// Immutable.
class RecordScanner {
 public:
  virtual ~RecordScanner() = default;

  struct Visitor {
    // Called for each record, in the order of the file. An error ends the scan.
    absl::FunctionRef<Status(const FoundRecord& record)> on_record;
    // Called for each damaged place, with DataLoss, whose message names the file and the place. An
    // error ends the scan; otherwise, the scan continues after the damage.
    absl::FunctionRef<Status(const Status& damage)> on_damage;
  };
  // Visits the records of file number `file`. With `check`, reads all records, and visits only
  // those that are intact. Otherwise, reads only what is necessary to find the records.
  virtual Status Scan(const RecordFiles& files, size_t file, RecordFileReader& reader, bool check,
                      const Visitor& visitor) const = 0;
};

}  // namespace tfjob::data
