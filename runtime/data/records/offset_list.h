// Defines a list of numbers. If a list exceeds a limit, it is kept in a temporary file that is
// mapped into memory, so it needs no anonymous memory.
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

// A list of numbers. Movable. Only one thread may append; after Finish, any number of threads may
// read.
class OffsetList {
 public:
  // Keeps a list of up to `most_in_memory` numbers in memory, and a longer list in a file in
  // `folder`. `most_in_memory` must be at least 1.
  OffsetList(std::string folder, size_t most_in_memory)
      : folder_(std::move(folder)), most_(most_in_memory) {}

  Status Append(uint64_t value);
  size_t size() const { return stored_ + pending_.size(); }
  bool in_memory() const { return !file_; }
  // Completes the list. Must be called once, after the last Append and before the first read.
  Status Finish();
  uint64_t operator[](size_t i) const { return mapped_.empty() ? pending_[i] : mapped_[i]; }

 private:
  Status Store();

  std::string folder_;
  size_t most_;
  std::vector<uint64_t> pending_;  // numbers that are not yet in the file
  std::optional<TemporaryFile> file_;
  size_t stored_ = 0;  // the number of numbers in the file
  std::span<const uint64_t> mapped_;
};

}  // namespace tfjob::data
