// Reads the index of a checkpoint (bundle_writer.h). Private to this package.
#pragma once

#include <map>
#include <string>

#include "runtime/base/status.h"
#include "runtime/io/bundle_entry.h"

namespace tfjob::io {

struct BundleIndex {
  int shards = 0;
  std::map<std::string, BundleEntry> entries;
};

// Reads `text`, the content of an index. Each error starts with `path`. Returns DataLoss if the
// index is damaged, or if the slices of a partitioned variable overlap, are incomplete or do not
// fit its shape. Returns Unimplemented if the checkpoint is big-endian, if the index is compressed,
// or if a variable has more than 4096 slices. Locations are not compared with the data files.
StatusOr<BundleIndex> ReadBundleIndex(const std::string& path, const std::string& text);

}  // namespace tfjob::io
