// Checks properties that must hold for files of records with arbitrary bytes, in every format.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "runtime/data/records/record_source.h"

namespace tfjob::fuzz {

// A file in memory with certain bytes. The file has a path, so readers can open it.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes);
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const;

 private:
  int file_;
};

using OpenFunction =
    StatusOr<std::shared_ptr<const data::Source>> (*)(const data::RecordOptions& options);

// Opens and reads a file with these bytes, and aborts the process (ENFORCE) if a property is
// violated:
//   - Reading never crashes.
//   - If the damaged records are left out, the remaining records can be read without finding
//     damage.
//   - If nothing is damaged, the file has the same records whether or not damage is skipped.
//   - The summary of the file (runtime/data/inspect) counts the same intact records.
// The features and fields are taken from `options`. `format` is the format's name.
void CheckRecordFile(std::string_view bytes, const data::RecordOptions& options, OpenFunction open,
                     const std::string& format);

}  // namespace tfjob::fuzz
