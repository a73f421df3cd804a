// A list of numbers. A list that exceeds a limit is in a temporary file that is mapped into memory,
// so it takes no anonymous memory.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/records/temporary_file.h"

namespace tfjob::data {

// Movable. Written by one thread.
class OffsetList {
 public:
  // Keeps up to `most_in_memory` numbers in memory. A longer list is in a file in `folder`.
  // `most_in_memory` must be at least 1.
  OffsetList(std::string folder, size_t most_in_memory)
      : folder_(std::move(folder)), most_(most_in_memory) {}

  Status Append(uint64_t value);
  size_t size() const { return stored_ + pending_.size(); }
  bool in_memory() const { return !file_; }
  // Call it once, after the last Append.
  Status Finish();
  // Returns a number. Requires Finish.
  uint64_t operator[](size_t i) const { return mapped_.empty() ? pending_[i] : mapped_[i]; }

 private:
  Status Store();

  std::string folder_;
  size_t most_;
  std::vector<uint64_t> pending_;  // numbers that are not yet in the file
  std::optional<TemporaryFile> file_;
  size_t stored_ = 0;  // count of the numbers in the file
  std::span<const uint64_t> mapped_;
};

}  // namespace tfjob::data
