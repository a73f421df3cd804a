// Lists where each record of a source starts, so any record can be read at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/fnv1a.h"
#include "runtime/base/status.h"
#include "runtime/data/records/offset_list.h"
#include "runtime/data/records/record_files.h"
#include "runtime/data/records/record_scanner.h"

namespace tfjob::data {

struct IndexOptions {
  // If set, all bytes of the files are read and checked, and damaged records are left out and
  // counted. Otherwise, only the bytes that are needed to find the records are read and checked,
  // and damage to these bytes is an error.
  bool skip_damaged = false;
  // If set together with `skip_damaged`, called for each record that the scanner considers intact.
  // If the function returns DataLoss, the record is left out, too. Other errors stop the build.
  std::function<Status(std::string_view record)> check = nullptr;
  std::string folder;                   // the folder in which a long index is stored
  size_t most_in_memory = 1024 * 1024;  // an index of more records is kept in a mapped file
};

// The place of a record.
struct RecordPlace {
  size_t file = 0;
  uint64_t offset = 0;
  uint64_t most_bytes = 0;  // an upper bound on the record's size, including its framing
};

// Maps the indices of records to their places. Immutable once built. Uses 8 bytes per record, in
// memory or in a mapped file.
class RecordIndex {
 public:
  // Builds the index. Returns DataLoss, with the file and the place, if a record is damaged, and
  // InvalidArgument if there is no intact record. If damaged records are skipped, adds the damaged
  // places to `damage`.
  static StatusOr<RecordIndex> Build(const RecordScanner& scanner, const RecordFiles& files,
                                     const IndexOptions& options, Damage& damage);

  int64_t size() const { return static_cast<int64_t>(offsets_.size()); }
  RecordPlace At(int64_t record) const;
  // Returns the index of each file's first record.
  std::vector<int64_t> file_starts() const { return {first_.begin(), first_.end() - 1}; }
  // Returns a hash of the checksums of all records, in their order.
  uint64_t hash() const { return contents_.hash(); }
  // Returns text with the size and the location of the index, such as "index of 80 bytes in
  // memory".
  std::string Describe() const;

 private:
  explicit RecordIndex(OffsetList offsets) : offsets_(std::move(offsets)) {}

  OffsetList offsets_;
  Fnv1a contents_;  // hash of the checksums
  // The index of each file's first record and, as the last element, the total number of records.
  std::vector<int64_t> first_;
  std::vector<uint64_t> sizes_;  // the sizes of the files
};

}  // namespace tfjob::data
