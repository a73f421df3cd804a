// Creates a source of examples from files of records, in any format. The files may be larger than
// memory, because only an index is kept, and each record is read when a batch needs it. When a
// source is opened, the files are scanned once to find the records. Compressed files do not allow
// random access, so they are first unpacked into a temporary file.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/records/example_row.h"
#include "runtime/data/records/record_format.h"
#include "runtime/data/source.h"

namespace tfjob::data {

struct RecordOptions {
  // Assigns a feature to a field of the source.
  struct Value {
    std::string name;
    std::string feature;  // the name of an ExampleFeature
  };
  std::vector<std::string> files;  // paths, or patterns as in a shell
  std::vector<ExampleFeature> features;
  std::vector<Value> fields;
  // How the format finds the features in a record, such as the columns of a table; "" if only the
  // features determine this. Part of the fingerprint (Source::fingerprint).
  std::string layout;
  // If set, all records are checked when the files are opened. Records that are damaged, are not
  // examples, or contain a damaged image are left out and counted (Source::LeftOut).
  bool skip_damaged = false;
  std::string cache_dir;  // folder for temporary files; "": TMPDIR, or /tmp
  // If the source has at most this many records, it is shuffled by a list of their numbers
  // (Source::rows_in_memory). Pipelines also use a list if PipelineOptions::most_listed allows it.
  int64_t most_listed = 0;
  bool can_skip_damaged = true;  // whether errors may suggest on_damaged: skip
  // The maximum number of records whose index is kept in memory. A larger index is kept in a mapped
  // temporary file.
  size_t most_indexed_in_memory = 1024 * 1024;
  int threads = 1;  // threads that read a batch, including the reader's own
};

// Opens the files. Returns DataLoss, with the file and the place, if a file is damaged,
// InvalidArgument if there are no records, and FailedPrecondition if a file changes after it was
// opened (unless it only grows). Also returns I/O errors. Propagates errors from FindFiles.
// RowReader::Read returns the same errors and those from RecordParser::Parse.
StatusOr<std::shared_ptr<const Source>> OpenRecords(std::unique_ptr<const RecordFormat> format,
                                                    const RecordOptions& options);

}  // namespace tfjob::data
