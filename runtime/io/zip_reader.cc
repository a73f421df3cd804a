#include "runtime/io/zip_reader.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "absl/strings/str_join.h"
#include "runtime/io/zip_format.h"

namespace tfjob::io {
namespace {

constexpr uint64_t kMostDirectoryBytes = 64 << 20;
constexpr uint64_t kMostComment = 65535;
constexpr uint64_t kMostRatio = 1040;  // deflate's best is 1032:1 (zlib.net/zlib_tech.html)
constexpr size_t kPiece = 64 << 10;

// Reads little-endian numbers from the front of a buffer. Reads past the end return zeros and make
// ok() false.
class Fields {
 public:
  explicit Fields(std::string_view text) : rest_(text) {}
  bool ok() const { return ok_; }
  std::string_view rest() const { return rest_; }

  std::string_view Bytes(size_t count) {
    ok_ = ok_ && count <= rest_.size();
    if (!ok_) return {};
    const std::string_view taken = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return taken;
  }
  uint16_t U16() { return static_cast<uint16_t>(Number(2)); }
  uint32_t U32() { return static_cast<uint32_t>(Number(4)); }
  uint64_t U64() { return Number(8); }

 private:
  uint64_t Number(size_t bytes) {
    uint64_t number = 0;
    const std::string_view text = Bytes(bytes);
    for (size_t i = text.size(); i-- > 0;) number = number << 8 | static_cast<uint8_t>(text[i]);
    return number;
  }

  std::string_view rest_;
  bool ok_ = true;
};

StatusOr<std::string> TextAt(const RandomAccessFile& file, uint64_t offset, uint64_t size) {
  std::string text(size, '\0');
  RETURN_IF_ERROR(file.Read(offset, std::as_writable_bytes(std::span(text))));
  return text;
}

Status DamagedZip(const RandomAccessFile& file, std::string_view what) {
  return DataLoss(file.path(), ": damaged ZIP archive: ", what, "; copy the file again");
}

// The location of the central directory, the list of members.
struct ZipDirectory {
  uint64_t offset = 0, size = 0, count = 0;
};

// Reads the 64-bit end record that `locator` points to.
StatusOr<ZipDirectory> ReadZip64End(const RandomAccessFile& file, Fields locator) {
  locator.U32();  // skips the index of the part with the end record
  const uint64_t offset = locator.U64();
  if (offset > file.size() || file.size() - offset < kZip64EndBytes)
    return DamagedZip(file, "its 64-bit end record is outside of the file");
  ASSIGN_OR_RETURN(const std::string text, TextAt(file, offset, kZip64EndBytes));
  Fields end(text);
  if (end.U32() != kZip64End) return DamagedZip(file, "it has no 64-bit end record");
  end.Bytes(8 + 2 + 2);  // size, versions
  if (end.U32() != 0 || end.U32() != 0)
    return Unimplemented(file.path(), ": a ZIP archive of several parts is not supported");
  end.U64();  // skips the number of members in this part
  ZipDirectory directory;
  directory.count = end.U64();
  directory.size = end.U64();
  directory.offset = end.U64();
  return directory;
}

// Finds the end record, which is followed by a comment of any length up to kMostComment.
StatusOr<ZipDirectory> FindZipDirectory(const RandomAccessFile& file) {
  const uint64_t tail = std::min(file.size(), kMostComment + kZipEndBytes + kZip64LocatorBytes);
  ASSIGN_OR_RETURN(const std::string text, TextAt(file, file.size() - tail, tail));
  for (size_t at = text.size(); at-- > 0;) {
    Fields end(std::string_view(text).substr(at));
    if (end.U32() != kZipEnd || text.size() - at < kZipEndBytes) continue;
    const bool several = end.U16() != 0 || end.U16() != 0;
    end.U16();  // skips the number of members in this part
    ZipDirectory directory;
    directory.count = end.U16();
    directory.size = end.U32();
    directory.offset = end.U32();
    if (end.U16() != end.rest().size()) continue;  // these bytes are part of a comment
    if (at >= kZip64LocatorBytes) {
      Fields locator(std::string_view(text).substr(at - kZip64LocatorBytes));
      if (locator.U32() == kZip64Locator) return ReadZip64End(file, locator);
    }
    if (several)
      return Unimplemented(file.path(), ": a ZIP archive of several parts is not supported");
    return directory;
  }
  return InvalidArgument(file.path(), ": not a ZIP archive: expected an end record, found none");
}

// Replaces sizes and an offset that do not fit into 32 bits with the values in the extra field.
// Returns false if the extra field is damaged.
bool ReadZip64Extra(std::string_view extra, ZipMember& member) {
  Fields fields(extra);
  while (fields.ok() && !fields.rest().empty()) {
    const uint16_t id = fields.U16();
    Fields values(fields.Bytes(fields.U16()));
    if (id != kZip64Extra) continue;
    if (member.size == kZip64Mark) member.size = values.U64();
    if (member.packed == kZip64Mark) member.packed = values.U64();
    if (member.header == kZip64Mark) member.header = values.U64();
    return values.ok() && fields.ok();
  }
  return fields.ok();
}

class StreamOfMember : public ZipStream {
 public:
  StreamOfMember(const RandomAccessFile& file, std::string name, const ZipMember& member,
                 uint64_t data)
      : file_(file), name_(std::move(name)), member_(member), at_(data), packed_(member.packed) {}
  ~StreamOfMember() override {
    if (begun_) inflateEnd(&inflate_);
  }

  Status Read(std::span<std::byte> bytes) override {
    if (bytes.size() > member_.size - done_) return Damaged("ends early");
    while (!bytes.empty()) {
      const std::span<std::byte> piece = bytes.first(std::min(bytes.size(), kMostPiece));
      RETURN_IF_ERROR(member_.deflated ? Inflate(piece) : Copy(piece));
      crc_ = crc32(crc_, reinterpret_cast<const Bytef*>(piece.data()),
                   static_cast<uInt>(piece.size()));
      done_ += piece.size();
      bytes = bytes.subspan(piece.size());
    }
    if (done_ == member_.size && crc_ != member_.crc) return Damaged("has a wrong checksum");
    return OkStatus();
  }

 private:
  static constexpr size_t kMostPiece = 1 << 20;  // small enough to stay cached for the checksum

  Status Damaged(std::string_view what) const {
    return DataLoss(file_.path(), ": member ", name_, " ", what,
                    ": the archive is damaged; copy the file again");
  }

  Status Copy(std::span<std::byte> bytes) {
    RETURN_IF_ERROR(file_.Read(at_, bytes));
    at_ += bytes.size();
    return OkStatus();
  }

  Status Inflate(std::span<std::byte> bytes) {
    // The negative value selects raw deflate data, without zlib's header.
    if (!begun_ && inflateInit2(&inflate_, -MAX_WBITS) != Z_OK)
      return ResourceExhausted(file_.path(), ": not enough memory to unpack ", name_);
    begun_ = true;
    inflate_.next_out = reinterpret_cast<Bytef*>(bytes.data());
    inflate_.avail_out = static_cast<uInt>(bytes.size());
    while (inflate_.avail_out > 0) {
      // Even if all input has been consumed, zlib may still have output: the rest of a match that
      // crosses the end of the previous span.
      if (inflate_.avail_in == 0 && packed_ > 0) RETURN_IF_ERROR(Refill());
      const int code = inflate(&inflate_, Z_NO_FLUSH);
      const bool ended = code == Z_STREAM_END && inflate_.avail_out > 0;
      if (ended || code == Z_BUF_ERROR) return Damaged("ends early");
      if (code != Z_OK && code != Z_STREAM_END) return Damaged("cannot be unpacked");
    }
    return OkStatus();
  }

  Status Refill() {
    buffer_.resize(std::min<uint64_t>(kPiece, packed_));
    RETURN_IF_ERROR(file_.Read(at_, buffer_));
    at_ += buffer_.size();
    packed_ -= buffer_.size();
    inflate_.next_in = reinterpret_cast<Bytef*>(buffer_.data());
    inflate_.avail_in = static_cast<uInt>(buffer_.size());
    return OkStatus();
  }

  const RandomAccessFile& file_;
  const std::string name_;
  const ZipMember member_;
  uint64_t at_;      // the next byte in the file
  uint64_t packed_;  // bytes of a deflated member that have not been read from the file
  uint64_t done_ = 0;
  uLong crc_ = 0;
  bool begun_ = false;
  z_stream inflate_{};
  std::vector<std::byte> buffer_;
};

}  // namespace

StatusOr<std::unique_ptr<ZipReader>> ZipReader::Open(const std::string& path) {
  ASSIGN_OR_RETURN(RandomAccessFile file, RandomAccessFile::Open(path));
  std::unique_ptr<ZipReader> reader(new ZipReader(std::move(file)));
  RETURN_IF_ERROR(reader->ReadDirectory());
  return reader;
}

Status ZipReader::ReadDirectory() {
  ASSIGN_OR_RETURN(const ZipDirectory directory, FindZipDirectory(file_));
  if (directory.offset > file_.size() || directory.size > file_.size() - directory.offset)
    return DamagedZip(file_, "its list of members is outside of the file");
  if (directory.size > kMostDirectoryBytes)
    return InvalidArgument(path(), ": the archive has too many members");
  ASSIGN_OR_RETURN(const std::string text, TextAt(file_, directory.offset, directory.size));
  return AddMembers(text, directory.count);
}

Status ZipReader::AddMembers(std::string_view directory, uint64_t count) {
  Fields fields(directory);
  for (uint64_t i = 0; i < count; ++i) {
    if (fields.U32() != kZipDirectoryEntry)
      return DamagedZip(file_, StrCat("its list of members ends after ", i, " of ", count));
    fields.Bytes(2 + 2);  // versions
    const uint16_t flags = fields.U16();
    const uint16_t method = fields.U16();
    fields.Bytes(2 + 2);  // time, date
    ZipMember member{.crc = fields.U32(), .deflated = method == kZipDeflated};
    member.packed = fields.U32();
    member.size = fields.U32();
    const size_t name_size = fields.U16(), extra_size = fields.U16(), comment_size = fields.U16();
    fields.Bytes(2 + 2 + 4);  // part, attributes
    member.header = fields.U32();
    const std::string name(fields.Bytes(name_size));
    const bool extra_ok = ReadZip64Extra(fields.Bytes(extra_size), member);
    fields.Bytes(comment_size);
    if (!fields.ok() || !extra_ok) return DamagedZip(file_, "an entry in its list is cut off");
    if (name.ends_with('/')) continue;
    if ((flags & kZipEncrypted) != 0)
      return Unimplemented(path(), ": member ", name, " is encrypted, which is not supported");
    if (method != kZipStored && method != kZipDeflated) {
      return Unimplemented(path(), ": member ", name, " is compressed with method ", method,
                           "; expected 0 (stored) or 8 (deflated)");
    }
    const bool plausible =
        member.deflated ? member.size / kMostRatio <= member.packed : member.size == member.packed;
    if (member.packed > file_.size() || !plausible)
      return DamagedZip(file_, StrCat("the size of member ", name, " is impossible"));
    if (!members_.emplace(name, member).second)
      return DamagedZip(file_, StrCat("it has two members ", name));
  }
  return OkStatus();
}

StatusOr<std::unique_ptr<ZipStream>> ZipReader::Stream(const std::string& name) const {
  ASSIGN_OR_RETURN(const uint64_t data, DataOf(name));
  return std::unique_ptr<ZipStream>(
      std::make_unique<StreamOfMember>(file_, name, members_.at(name), data));
}

StatusOr<uint64_t> ZipReader::DataOf(const std::string& name) const {
  const auto found = members_.find(name);
  if (found == members_.end()) {
    std::vector<std::string> names;
    for (const auto& [other, member] : members_) {
      if (names.size() < 10) names.push_back(other);
    }
    return NotFound(path(), " has no member ", name, "; it has ",
                    names.empty() ? "none" : absl::StrJoin(names, ", "),
                    members_.size() > names.size() ? ", …" : "");
  }
  const ZipMember& member = found->second;
  if (member.header > file_.size() || file_.size() - member.header < kZipLocalHeaderBytes)
    return DamagedZip(file_, StrCat("member ", name, " is outside of the file"));
  ASSIGN_OR_RETURN(const std::string text, TextAt(file_, member.header, kZipLocalHeaderBytes));
  Fields header(text);
  if (header.U32() != kZipLocalHeader)
    return DamagedZip(file_, StrCat("member ", name, " has no header"));
  header.Bytes(22);  // skips fields that the list of members also has
  const uint64_t name_size = header.U16(), extra_size = header.U16();
  const uint64_t data = member.header + kZipLocalHeaderBytes + name_size + extra_size;
  if (data > file_.size() || member.packed > file_.size() - data)
    return DamagedZip(file_, StrCat("member ", name, " is outside of the file"));
  return data;
}

StatusOr<std::string> ZipReader::Read(const std::string& name, uint64_t most) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<ZipStream> stream, Stream(name));
  const uint64_t size = members_.at(name).size;
  if (size > most) {
    return InvalidArgument(path(), ": member ", name, " has ", size, " bytes; expected at most ",
                           most);
  }
  std::string text(size, '\0');
  RETURN_IF_ERROR(stream->Read(std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace tfjob::io
