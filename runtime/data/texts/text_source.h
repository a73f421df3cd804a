// Makes a source of examples from a folder of texts by class, as
// keras.utils.text_dataset_from_directory does: each file is a text, which becomes tokens when a
// batch needs it. Only the list of the files is kept in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/source.h"
#include "runtime/data/text/sequence_encoder.h"

namespace tfjob::data {

inline constexpr int64_t kMostTextBytes = int64_t{64} << 20;  // of a file

struct TextFolderOptions {
  std::string folder;                     // contains a folder of texts for each class
  std::vector<std::string> classes = {};  // the names of these folders; empty: all, sorted
  text::SequenceOptions sequence;
  int64_t length = 0;  // number of tokens. At least 1
  // If set, files that are not UTF-8 are left out and counted (Source::LeftOut), and all files are
  // read when the folder is opened.
  bool skip_damaged = false;
  int threads = 1;  // that read the texts of a batch, including the reader's own
};

// An example has the fields kFeaturesArray (int64 [length]) and kLabelsArray (int64, the number of
// the class). Returns the errors of ClassFiles::List; files may have kMostTextBytes bytes. With
// `skip_damaged`, returns InvalidArgument if no text is left, and the other errors of
// RowReader::Read: DataLoss if a file is not UTF-8, InvalidArgument if a text has too many tokens,
// FailedPrecondition if a file has another size than when the folder was opened, and the errors of
// reading files. The message names the file.
StatusOr<std::shared_ptr<const Source>> OpenTexts(const TextFolderOptions& options);

}  // namespace tfjob::data
