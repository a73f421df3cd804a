// Makes TFRecord files of tf.train.Example a source of examples. The files may be larger than
// memory: only an index is kept, and each record is read when a batch needs it. Opening reads the
// files once, to find the records. Compressed files, which do not allow random access, are first
// unpacked into a temporary file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/source.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::data {

// How a feature of an example becomes a value of a type and shape. It is an error if an example
// lacks the feature or if the feature has no list, unless `variable` is set or there is a `fill`.
struct ExampleFeature {
  std::string name;
  // Without `raw`: kFloat32 for a float_list, kInt64 for an int64_list.
  DType dtype = DType::kFloat32;
  // If set, the feature is a bytes_list with one string, which consists of the elements in
  // little-endian order (tf.io.decode_raw).
  bool raw = false;
  Shape shape;
  // If set, the list may have fewer than shape.num_elements() values, and `fill` replaces the
  // missing ones. Otherwise, the list must have exactly shape.num_elements() values. Not allowed
  // with `raw`.
  bool variable = false;
  std::optional<double> fill = {};  // the value of the elements that an example lacks
};

struct TfRecordOptions {
  // One field of the source.
  struct Value {
    std::string name;
    std::string feature;  // the name of an ExampleFeature
  };
  std::vector<std::string> files;  // paths, or patterns as in a shell
  std::vector<ExampleFeature> features;
  std::vector<Value> fields;
  // If set, records that are damaged or are not examples are left out and counted
  // (Source::LeftOut), and all records are checked when the files are opened.
  bool skip_damaged = false;
  std::string cache_dir;                        // for temporary files; "": TMPDIR, or /tmp
  size_t most_indexed_in_memory = 1024 * 1024;  // a longer index is in a mapped temporary file
};

// Returns DataLoss, with the file and the offset, if a file is damaged; InvalidArgument if there
// are no records; and the errors of reading and writing files.
StatusOr<std::shared_ptr<const Source>> OpenTfRecords(const TfRecordOptions& options);

}  // namespace tfjob::data
