// Reads a file, plain or compressed with gzip, from front to back. Detects the format from the
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

  // Reads until the span is full or the file ends, and returns the number of bytes read. Returns
  // DataLoss if gzip data ends early or is damaged.
  StatusOr<size_t> Read(std::span<std::byte> bytes);
  // Fills the whole span. Returns DataLoss if the file ends early. In the message, `what` names the
  // data being read.
  Status ReadAll(std::span<std::byte> bytes, std::string_view what);

  // Returns the part of the file that has not been read yet. Returns InvalidArgument if a
  // compressed file unpacks to more than kFreeBytes and to more than a hundred times its size. The
  // limit is needed because a gzip file does not reliably state in advance how large the unpacked
  // data is.
  StatusOr<std::string> ReadText();

  const std::string& path() const { return path_; }
  // Returns an upper bound on the bytes that Read can return in total. Check any size that the file
  // states against this bound before allocating memory of that size.
  uint64_t max_bytes() const { return max_bytes_; }
  bool compressed() const { return compressed_; }

  static constexpr uint64_t kFreeBytes = 64 << 20;

 private:
  struct Close {
    void operator()(gzFile_s* file) const;
  };
  ByteSource() = default;

  std::string path_;
  std::unique_ptr<gzFile_s, Close> file_;
  bool compressed_ = false;
  uint64_t max_bytes_ = 0;
  uint64_t usual_bytes_ = 0;  // the limit on ReadText() for a compressed file
};

// Returns whether a file has more than `most` bytes, after unpacking if it is compressed. Reads a
// compressed file until that many bytes have been unpacked, and propagates errors from Read.
StatusOr<bool> UnpacksToMore(const std::string& path, uint64_t most);

}  // namespace tfjob::data
