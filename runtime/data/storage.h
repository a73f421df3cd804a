// Defines the rule by which tables and arrays (CSV, IDX, NumPy) are kept in memory: a dataset of at
// most kMostInMemory bytes is loaded when it is opened. The examples of a larger dataset are read
// when a batch needs them.
#pragma once

#include <cstdint>
#include <string>

namespace tfjob::data {

// The size of arrays is that of their values in memory. The size of a CSV file is that of its text
// after unpacking; if its columns have names, its values must not be larger, either.
inline constexpr uint64_t kMostInMemory = 64 << 20;

// Examples that are too large for memory are shuffled by a list of their numbers up to this size,
// and otherwise by a keyed permutation (order.h). The formats that follow the rule used to keep
// every dataset in memory, so earlier runs have used lists. This list takes at most 32 MiB.
inline constexpr int64_t kMostListedOnDisk = 8 << 20;

struct StorageOptions {
  std::string cache_dir = {};  // folder for temporary files; "": TMPDIR, or /tmp
  uint64_t most_in_memory = kMostInMemory;
};

}  // namespace tfjob::data
