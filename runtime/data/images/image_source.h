// Makes a source of examples from JPEG and PNG images, in a folder per class. The images may exceed
// the size of memory: only a list of the files is kept, and each file is read and decoded when a
// batch needs it.
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
  std::string folder;                     // contains a folder of images for each class
  std::vector<std::string> classes = {};  // the names of these folders; empty: all folders, sorted
  ImageOptions image;
  // If set, all files are decoded when the folder is opened, and those that are damaged or are not
  // images are left out and counted (Source::LeftOut).
  bool skip_damaged = false;
  int threads = 1;  // that decode the images of a batch, including the reader's own
};

// An example has the fields kFeaturesArray (float32 [height, width, channels], from 0 to 255) and
// kLabelsArray (int64, the index of the class). Propagates errors from ClassFiles::List.
// RowReader::Read returns DataLoss if a file is damaged or is not an image, InvalidArgument if an
// image is too large or of an unsupported kind, FailedPrecondition if the size of a file has
// changed since the folder was opened, and ResourceExhausted if there is no memory to decode a
// file. It also returns I/O errors. The message names the file. With `skip_damaged`, OpenImages
// also returns these errors, except for damage, and InvalidArgument if no image is left.
StatusOr<std::shared_ptr<const Source>> OpenImages(const ImageFolderOptions& options);

}  // namespace tfjob::data
