#include "runtime/data/records/unpack.h"

#include <zlib.h>

#include <algorithm>
#include <string>

#include "runtime/io/random_access_file.h"
#include "runtime/io/record.h"

namespace tfjob::data {
namespace {

constexpr size_t kPart = 256 << 10;
// Only very repetitive data can be compressed to a hundredth of its size.
constexpr uint64_t kUsualRatio = 100;

bool IsGzip(std::string_view start) {
  return start.size() >= 2 && start[0] == '\x1f' && start[1] == '\x8b';
}

// Returns whether no byte is a control character. Compressed data contains control characters near
// its beginning.
bool IsText(std::string_view start) {
  return std::ranges::all_of(start, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte >= ' ' || byte == '\t' || byte == '\n' || byte == '\r';
  });
}

bool IsZlib(std::string_view start) {
  if (start.size() < 2) return false;
  const auto method = static_cast<unsigned char>(start[0]);
  const auto flags = static_cast<unsigned char>(start[1]);
  return (method & 0x0F) == Z_DEFLATED && method >> 4 <= 7 && (method * 256 + flags) % 31 == 0;
}

class Unpacker {
 public:
  Unpacker(const io::RandomAccessFile& file, TemporaryFile& to)
      : file_(file),
        to_(to),
        start_(to.size()),
        most_(std::max(kFreeUnpacked, file.size() * kUsualRatio)) {}
  ~Unpacker() { inflateEnd(&stream_); }

  Status Run() {
    if (inflateInit2(&stream_, MAX_WBITS + 32) != Z_OK)  // + 32: gzip or zlib, by the first bytes
      return ResourceExhausted(file_.path(), ": not enough memory to unpack it");
    for (;;) {
      RETURN_IF_ERROR(Refill());
      stream_.next_out = reinterpret_cast<Bytef*>(out_.data());
      stream_.avail_out = kPart;
      const int code = inflate(&stream_, Z_NO_FLUSH);
      RETURN_IF_ERROR(Keep(std::string_view(out_).substr(0, kPart - stream_.avail_out)));
      if (code == Z_STREAM_END) {
        ASSIGN_OR_RETURN(const bool more, NextMember());
        if (!more) return OkStatus();
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        return Damaged(stream_.msg == nullptr ? "it is not valid" : stream_.msg);
      } else if (stream_.avail_in == 0 && stream_.avail_out > 0 && read_ == file_.size()) {
        return Damaged("it ends early");
      }
    }
  }

 private:
  Status Refill() {
    if (stream_.avail_in > 0 || read_ == file_.size()) return OkStatus();
    const size_t size = std::min<uint64_t>(kPart, file_.size() - read_);
    RETURN_IF_ERROR(file_.Read(read_, std::as_writable_bytes(std::span(in_).first(size))));
    read_ += size;
    stream_.next_in = reinterpret_cast<Bytef*>(in_.data());
    stream_.avail_in = static_cast<uInt>(size);
    return OkStatus();
  }

  Status Keep(std::string_view bytes) {
    if (to_.size() - start_ + bytes.size() > most_) {
      return InvalidArgument(file_.path(), ": it unpacks to more than ", most_, " bytes, ",
                             kUsualRatio, " times its size; if it is meant to, unpack the file");
    }
    return to_.Append(bytes);
  }

  // Starts the next member, because a gzip file may consist of several members. Returns false at
  // the end of the file.
  StatusOr<bool> NextMember() {
    RETURN_IF_ERROR(Refill());
    if (stream_.avail_in == 0) return false;
    if (*stream_.next_in != 0x1f) return Damaged("bytes follow its end");
    inflateReset(&stream_);
    return true;
  }

  Status Damaged(std::string_view why) const {
    return DataLoss(file_.path(), ": the compressed data is damaged at byte ",
                    read_ - stream_.avail_in, ": ", why);
  }

  const io::RandomAccessFile& file_;
  TemporaryFile& to_;
  const uint64_t start_, most_;
  z_stream stream_{};
  uint64_t read_ = 0;
  std::string in_ = std::string(kPart, '\0'), out_ = std::string(kPart, '\0');
};

}  // namespace

bool IsCompressed(std::string_view start) {
  if (start.size() >= io::kRecordHeader && io::RecordLength(start)) return false;
  return IsGzip(start) || (IsZlib(start) && !IsText(start));
}

Status Unpack(const io::RandomAccessFile& file, TemporaryFile& to) {
  return Unpacker(file, to).Run();
}

}  // namespace tfjob::data
