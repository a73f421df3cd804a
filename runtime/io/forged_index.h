// Writes the index of a checkpoint with arbitrary entries, for tests of damaged and unusual
// checkpoints.
#pragma once

#include <map>
#include <string>

#include "runtime/io/tensor_bundle.pb.h"

namespace tfjob::io {

// Returns the index of a checkpoint with this number of data files. Its checksums are correct,
// whatever the entries contain.
std::string IndexOf(int shards, const std::map<std::string, BundleEntryProto>& entries);

}  // namespace tfjob::io
