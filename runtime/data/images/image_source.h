// Creates a source of examples from JPEG and PNG images in a folder with a subfolder per class. The
// images may be larger than memory, because only the list of the files is kept in memory. Each file
// is read and decoded when a batch needs it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/folders/class_files.h"
#include "runtime/data/images/decode/image_reader.h"
#include "runtime/data/source.h"

namespace tfjob::data {

struct ImageFolderOptions {
  std::string folder;                     // contains a subfolder of images per class
  std::vector<std::string> classes = {};  // the names of the subfolders; empty: all, sorted
  ImageOptions image;
  // If set, all files are decoded when the folder is opened. Files that are damaged or are not
  // images are then left out and counted (Source::LeftOut).
  bool skip_damaged = false;
  int threads = 1;  // threads that decode a batch, including the reader's own
};

// Opens a folder. An example has the fields kFeaturesArray (float32 [height, width, channels], from
// 0 to 255) and kLabelsArray (int64, the index of the class). Propagates errors from
// ClassFiles::List. RowReader::Read returns DataLoss if a file is damaged or is not an image,
// InvalidArgument if an image is too large or of an unsupported kind, FailedPrecondition if the
// size of a file has changed since the folder was opened, and ResourceExhausted if there is not
// enough memory to decode a file. It also returns I/O errors. The messages name the file. With
// `skip_damaged`, OpenImages returns the same errors, except for damage. It also returns
// InvalidArgument if no image is left.
StatusOr<std::shared_ptr<const Source>> OpenImages(const ImageFolderOptions& options);

}  // namespace tfjob::data
