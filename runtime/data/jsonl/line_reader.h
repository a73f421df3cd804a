// Finds and reads the lines of text files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/data/records/record_files.h"
#include "runtime/data/records/record_index.h"

namespace tfjob::data {

// Describes a line of a file, without "\n". It may end with "\r", which is white space in JSON.
struct Line {
  uint64_t begin = 0, end = 0;  // offsets in the file
  uint64_t next = 0;            // the start of the next line, or the size of the file
  uint32_t checksum = 0;        // CRC-32C of the line's bytes
  bool blank = true;            // contains only white space
  bool complete = false;        // "\n" follows

  uint64_t size() const { return end - begin; }
};

// Reads the lines of one file. Only one thread may use it. `files` and `reader` must outlive it.
class LineReader {
 public:
  LineReader(const RecordFiles& files, size_t file, RecordFileReader& reader)
      : file_(files.files()[file]), number_(file), reader_(reader) {}

  // Returns the offset at which the text begins: after the byte order mark, if there is one.
  StatusOr<uint64_t> Begin();
  // Returns the line that starts at offset `begin`, which must be less than the size of the file.
  // Searches for "\n" only in the next `most` bytes; if there is none, returns all of these bytes
  // as the line.
  StatusOr<Line> At(uint64_t begin, uint64_t most);
  // Returns the bytes of the line; they stay valid until the reader's next call.
  StatusOr<std::string_view> Read(const Line& line) {
    return reader_.View(number_, line.begin, line.size());
  }
  // Returns the bytes of the line that starts at offset `begin`. Faster than At and Read for a
  // single line. Returns DataLoss if no line starts there.
  StatusOr<std::string_view> ReadAt(uint64_t begin, uint64_t most);
  // Returns the number, counted from 1, of the line that starts at offset `begin`.
  StatusOr<int64_t> NumberOf(uint64_t begin);

 private:
  const RecordFile& file_;
  const size_t number_;
  RecordFileReader& reader_;
};

// Returns the place of a line for messages, such as "a.jsonl: line 7".
std::string LinePlace(const RecordFile& file, int64_t number);
// Likewise for the line at which a record begins. Reads the file up to this line, to count the
// lines. If that would take too long, or fails, names the byte instead: "a.jsonl: line at byte 9".
std::string LinePlaceOf(const RecordFiles& files, RecordFileReader& reader,
                        const RecordPlace& place);

}  // namespace tfjob::data
