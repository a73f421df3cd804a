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
// kLabelsArray (int64, the number of the class). Returns the errors of ClassFiles::List. With
// `skip_damaged`, returns InvalidArgument if no image is left, and the other errors of
// RowReader::Read: DataLoss if a file is damaged or is not an image, InvalidArgument if an image is
// too large or of a kind that is not supported, FailedPrecondition if a file has another size than
// when the folder was opened, ResourceExhausted if there is no memory to decode a file, and the
// errors of reading files. The message names the file.
StatusOr<std::shared_ptr<const Source>> OpenImages(const ImageFolderOptions& options);

}  // namespace tfjob::data
