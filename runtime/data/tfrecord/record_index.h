// Lists where each record of a source begins, so that any record can be read at any time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/tfrecord/offset_list.h"
#include "runtime/data/tfrecord/record_files.h"

namespace tfjob::data {

struct IndexOptions {
  // If set, damaged records are left out and counted; all bytes of the files are read and checked
  // to find them. Otherwise, only the lengths of the records are read and checked, and a damaged
  // length is an error.
  bool skip_damaged = false;
  std::string folder;                   // for a long index
  size_t most_in_memory = 1024 * 1024;  // records; a longer index is in a mapped file
};

// Where a record is.
struct RecordPlace {
  size_t file = 0;
  uint64_t offset = 0;
  uint64_t most_bytes = 0;  // upper bound on the record's size, including its framing
};

// Immutable once built. Takes 8 bytes per record, in memory or in a mapped file.
class RecordIndex {
 public:
  // Returns DataLoss, with the file and the offset, if a record is damaged, and InvalidArgument if
  // there is no intact record. If damaged records are skipped, adds the damaged places to `damage`.
  static StatusOr<RecordIndex> Build(const RecordFiles& files, const IndexOptions& options,
                                     Damage& damage);

  int64_t size() const { return static_cast<int64_t>(offsets_.size()); }
  RecordPlace At(int64_t record) const;
  // Returns a hash of the files' sizes and of where their records begin.
  uint64_t hash() const;

 private:
  explicit RecordIndex(OffsetList offsets) : offsets_(std::move(offsets)) {}

  OffsetList offsets_;
  // The number of the first record of each file and, at the end, the number of all records.
  std::vector<int64_t> first_;
  std::vector<uint64_t> sizes_;  // of the files
};

// Reads a record, and checks it. Returns its payload, which stays valid until the reader's next
// call. Returns DataLoss, with the file and the offset, if the record is damaged.
StatusOr<std::string_view> ReadRecord(const RecordFiles& files, RecordFileReader& reader,
                                      const RecordPlace& place);

}  // namespace tfjob::data
