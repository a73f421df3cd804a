// Creates a source of examples from text files in a folder with a subfolder per class, as
// keras.utils.text_dataset_from_directory does. Each file is an example; it is read and split into
// tokens when a batch needs it. Only the list of the files is kept in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/source.h"
#include "runtime/data/text/sequence_encoder.h"

namespace tfjob::data {

inline constexpr int64_t kMostTextBytes = int64_t{64} << 20;  // the maximum size of a file

struct TextFolderOptions {
  std::string folder;                     // contains a subfolder of text files per class
  std::vector<std::string> classes = {};  // the names of the subfolders; empty: all, sorted
  text::SequenceOptions sequence;
  int64_t length = 0;  // the number of tokens, at least 1
  // If set, all files are read when the folder is opened, and files that are not UTF-8 are left out
  // and counted (Source::LeftOut).
  bool skip_damaged = false;
  int threads = 1;  // threads that read a batch, including the reader's own
};

// Opens a folder. An example has the fields kFeaturesArray (int64 [length]) and kLabelsArray
// (int64, the index of the class). Propagates errors from ClassFiles::List; a file may have up to
// kMostTextBytes bytes. RowReader::Read returns DataLoss if a file is not UTF-8, InvalidArgument if
// a file has too many tokens, and FailedPrecondition if the size of a file has changed since the
// folder was opened. It also returns I/O errors. The messages name the file. With `skip_damaged`,
// OpenTexts also returns FailedPrecondition and I/O errors, and InvalidArgument if no file is left.
StatusOr<std::shared_ptr<const Source>> OpenTexts(const TextFolderOptions& options);

}  // namespace tfjob::data
