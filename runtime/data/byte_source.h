// A file read from front to back, plain or compressed with gzip (which its first bytes show, not its name).
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

  // Fills the span as far as the file goes. DataLoss for gzip data that ends early or is damaged.
  StatusOr<size_t> Read(std::span<std::byte> bytes);
  // Fills the span, or DataLoss: the file ended early; `what` names what was being read.
  Status ReadAll(std::span<std::byte> bytes, std::string_view what);

  const std::string& path() const { return path_; }
  // An upper bound of what Read can give in total: a claim beyond it need not be believed.
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
