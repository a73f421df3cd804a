// Reads ZIP archives whose members are stored or deflated, with sizes of 32 or 64 bits. NumPy's
// .npz files and Keras' .keras files are such archives.
// Format: https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT
//
// Archives are untrusted input: every offset and size is checked before it is used, and the
// checksum of a member is verified when the member is read to its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/status.h"
#include "runtime/io/random_access_file.h"

namespace tfjob::io {

// The sizes, location and checksum of a member.
struct ZipMember {
  uint64_t size = 0;    // unpacked
  uint64_t packed = 0;  // size in the file; at least 1/1040 of `size`, deflate's limit
  uint64_t header = 0;  // offset of the member's own header
  uint32_t crc = 0;     // CRC-32 of the unpacked bytes
  bool deflated = false;
};

// Unpacks one member from front to back. Must not outlive its archive. Owned by one thread.
class ZipStream {
 public:
  virtual ~ZipStream() = default;
  // Fills all of `bytes`. Returns DataLoss, with a message that names the file and the member, if
  // the member is truncated or its data are damaged. The call that reads the last byte also returns
  // DataLoss if the checksum is wrong.
  virtual Status Read(std::span<std::byte> bytes) = 0;
};

// Any number of threads may read different members at the same time.
class ZipReader {
 public:
  // Returns InvalidArgument if the file is not a ZIP archive, DataLoss if it is damaged, and
  // Unimplemented if it is encrypted or has several parts.
  static StatusOr<std::unique_ptr<ZipReader>> Open(const std::string& path);

  // Returns the members by name. Folders are left out.
  const std::map<std::string, ZipMember>& members() const { return members_; }
  // Returns NotFound, with a message that lists the members, if there is no member of this name.
  StatusOr<std::unique_ptr<ZipStream>> Stream(const std::string& name) const;
  // Returns the offset in the file of a member's bytes, as they are stored. Returns the same errors
  // as Stream.
  StatusOr<uint64_t> DataOf(const std::string& name) const;
  // Returns the unpacked bytes of a member. Returns InvalidArgument if there are more than `most`.
  // Propagates errors from Stream and ZipStream::Read.
  StatusOr<std::string> Read(const std::string& name, uint64_t most) const;

  const std::string& path() const { return file_.path(); }

 private:
  explicit ZipReader(RandomAccessFile file) : file_(std::move(file)) {}
  Status ReadDirectory();
  Status AddMembers(std::string_view directory, uint64_t count);

  const RandomAccessFile file_;
  std::map<std::string, ZipMember> members_;
};

}  // namespace tfjob::io
