// Reads a file, plain or compressed with gzip, from front to back. The format is detected from the
// first bytes, not from the name.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/status.h"

struct gzFile_s;

namespace tfjob::data {

class ByteSource {
 public:
  static StatusOr<ByteSource> Open(const std::string& path);

  // Fills the span until it is full or the file ends, and returns the number of bytes. Returns
  // DataLoss for gzip data that ends early or is damaged.
  StatusOr<size_t> Read(std::span<std::byte> bytes);
  // Fills the span. Returns DataLoss if the file ends early; `what` says what was being read,
  // for the message.
  Status ReadAll(std::span<std::byte> bytes, std::string_view what);

  const std::string& path() const { return path_; }
  // Returns an upper bound on the bytes that Read can return in total. Compare sizes stated in the
  // file with it before allocating memory for them.
  uint64_t max_bytes() const { return max_bytes_; }

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };
  ByteSource() = default;

  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
  uint64_t max_bytes_ = 0;
};

}  // namespace tfjob::data
