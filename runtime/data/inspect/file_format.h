// Lists the file formats that `tfjob-trainer data` reads, in a table with one entry per format.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/stop.h"
#include "runtime/data/inspect/file_summary.h"
#include "runtime/data/text/tokenizer.h"

namespace tfjob::data {

struct SummaryOptions {
  bool fields = true;        // describe fields and examples; if false, only count and check
  int64_t examples = 3;      // the number of examples to describe, from the beginning
  int64_t most_damage = 20;  // the maximum number of damaged places to list
  std::string cache_dir;     // for temporary files; "": TMPDIR, or /tmp
  // The tokenizer for lines of text (format "text"). If null, lines are not split into tokens.
  std::shared_ptr<const text::Tokenizer> tokenizer = nullptr;
  int64_t most_tokens = 0;  // count the lines with more tokens; 0: do not count them
};

// The beginning of a file, from which its format is recognised.
struct FileStart {
  std::string path = {};
  std::string bytes = {};  // unpacked if the file is compressed; may be empty
};

// Returns the first bytes of a file, at most 1 MiB.
StatusOr<FileStart> StartOfFile(const std::string& path);

struct FileFormat {
  std::string_view name;  // as in the training file ("tfrecord"), or the usual extension ("npy")
  bool (*suits)(const FileStart& start);
  // Reads the whole file. Adds damage to the summary, and continues after the damage if possible.
  // Returns I/O errors, and Cancelled once a stop is requested.
  StatusOr<FileSummary> (*summarise)(const std::string& path, const SummaryOptions& options,
                                     const StopSource& stop);
};

// Returns all formats. A folder has the format "images". A file has the first format that matches
// its beginning. If none matches, it has the format whose name occurs as an extension in the file's
// name, as in "train.tfrecord", "train.csv.gz" and "train.tfrecord-00000-of-00010".
std::span<const FileFormat> FileFormats();

// Returns the summary of a file, or of a folder of images. `format` is the name of a format, or ""
// to recognise the format. Returns InvalidArgument, with a list of all formats, if the name is
// unknown or the format is not recognised.
StatusOr<FileSummary> Summarise(const std::string& path, const std::string& format,
                                const SummaryOptions& options, const StopSource& stop);

// Returns whether the path names a folder.
bool IsFolder(const std::string& path);

// The functions below are the entries of the table.
bool IsCsv(const FileStart& start);
StatusOr<FileSummary> SummariseCsv(const std::string& path, const SummaryOptions& options,
                                   const StopSource& stop);
StatusOr<FileSummary> SummariseTfRecords(const std::string& path, const SummaryOptions& options,
                                         const StopSource& stop);
StatusOr<FileSummary> SummariseJsonLines(const std::string& path, const SummaryOptions& options,
                                         const StopSource& stop);
StatusOr<FileSummary> SummariseNpy(const std::string& path, const SummaryOptions& options,
                                   const StopSource& stop);
StatusOr<FileSummary> SummariseNpz(const std::string& path, const SummaryOptions& options,
                                   const StopSource& stop);
StatusOr<FileSummary> SummariseIdx(const std::string& path, const SummaryOptions& options,
                                   const StopSource& stop);
StatusOr<FileSummary> SummariseText(const std::string& path, const SummaryOptions& options,
                                    const StopSource& stop);

// Returns the summary of an image, or of a folder as folders/class_files.h describes it.
StatusOr<FileSummary> SummariseImages(const std::string& path, const SummaryOptions& options,
                                      const StopSource& stop);

}  // namespace tfjob::data
