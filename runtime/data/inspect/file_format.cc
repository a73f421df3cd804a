#include "runtime/data/inspect/file_format.h"

#include <sys/stat.h>
#include <zlib.h>

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/data/images/decode/image_decoder.h"
#include "runtime/data/records/unpack.h"
#include "runtime/io/random_access_file.h"
#include "runtime/io/record.h"

namespace tfjob::data {
namespace {

constexpr size_t kStart = 1 << 20;
constexpr std::string_view kImages = "images";

bool IsTfRecord(const FileStart& start) {
  return start.bytes.size() >= io::kRecordHeader &&
         io::RecordLength(start.bytes.substr(0, io::kRecordHeader)).has_value();
}

bool IsNpy(const FileStart& start) {
  return start.bytes.starts_with("\x93NUMPY");
}

bool IsNpz(const FileStart& start) {
  return start.bytes.starts_with("PK\x03\x04");
}

bool IsIdx(const FileStart& start) {
  const std::string_view bytes = start.bytes;
  return bytes.size() >= 4 && bytes[0] == 0 && bytes[1] == 0 && bytes[2] == 8 && bytes[3] >= 1 &&
         bytes[3] <= 8;
}

// Returns whether the file starts with "{", possibly after a byte order mark and white space.
bool IsJsonLines(const FileStart& start) {
  std::string_view text = start.bytes;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

bool IsImageFile(const FileStart& start) {
  return IsImage(start.bytes);
}

// Returns false, because any file may be text: only --format or the name (".text") selects this
// format.
bool IsNoOtherText(const FileStart&) {
  return false;
}

constexpr FileFormat kFormats[] = {
    {"tfrecord", IsTfRecord, SummariseTfRecords},
    {"npy", IsNpy, SummariseNpy},
    {"npz", IsNpz, SummariseNpz},
    {"idx", IsIdx, SummariseIdx},
    {"jsonl", IsJsonLines, SummariseJsonLines},
    {kImages, IsImageFile, SummariseImages},
    {"csv", IsCsv, SummariseCsv},
    {"text", IsNoOtherText, SummariseText},
};

// Returns the unpacked content of the first bytes of a compressed file.
std::string Unpacked(std::string_view packed) {
  z_stream stream{};
  if (inflateInit2(&stream, MAX_WBITS + 32) != Z_OK) return {};  // + 32: gzip or zlib
  std::string bytes(kStart, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(bytes.data());
  stream.avail_out = kStart;
  // A gzip file may consist of several members, so continue with the next one.
  while (inflate(&stream, Z_SYNC_FLUSH) == Z_STREAM_END && stream.avail_in > 0 &&
         inflateReset(&stream) == Z_OK) {
  }
  bytes.resize(kStart - stream.avail_out);
  inflateEnd(&stream);
  return bytes;
}

std::string Names() {
  return absl::StrJoin(FileFormats(), ", ", [](std::string* text, const FileFormat& format) {
    text->append(format.name);
  });
}

// Returns the format whose name occurs as an extension in the file's name, as in "train.tfrecord",
// "train.tfrecord-00000-of-00010" and "train.csv.gz". Returns null if there is none.
const FileFormat* NamedIn(std::string_view path) {
  path.remove_prefix(path.rfind('/') + 1);
  size_t dot = path.find('.');
  while (dot != std::string_view::npos) {
    path.remove_prefix(dot + 1);
    dot = path.find('.');
    const std::string_view ending = path.substr(0, std::min(dot, path.find('-')));
    const auto found = std::ranges::find(FileFormats(), ending, &FileFormat::name);
    if (found != FileFormats().end()) return &*found;
  }
  return nullptr;
}

// Recognises the format of a file or folder. Returns null if no format matches.
StatusOr<const FileFormat*> Recognised(const std::string& path) {
  if (IsFolder(path)) return &*std::ranges::find(FileFormats(), kImages, &FileFormat::name);
  ASSIGN_OR_RETURN(const FileStart start, StartOfFile(path));
  for (const FileFormat& format : FileFormats()) {
    if (format.suits(start)) return &format;
  }
  // If the file is empty or its beginning is damaged, only the name can determine the format.
  return NamedIn(path);
}

StatusOr<const FileFormat*> FormatOf(const std::string& path, const std::string& name) {
  if (name.empty()) {
    ASSIGN_OR_RETURN(const FileFormat* const format, Recognised(path));
    if (format != nullptr) return format;
    return InvalidArgument(path, ": the format is not recognised; expected one of ", Names(),
                           "; if the file has one of these formats, name it with --format");
  }
  const auto found = std::ranges::find(FileFormats(), name, &FileFormat::name);
  if (found != FileFormats().end()) return &*found;
  return InvalidArgument("--format: expected one of ", Names(), ", got ", name);
}

}  // namespace

bool IsFolder(const std::string& path) {
  struct stat found{};
  return stat(path.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
}

StatusOr<FileStart> StartOfFile(const std::string& path) {
  ASSIGN_OR_RETURN(const io::RandomAccessFile file, io::RandomAccessFile::Open(path));
  FileStart start{.path = path};
  start.bytes.resize(std::min<uint64_t>(kStart, file.size()));
  RETURN_IF_ERROR(file.Read(0, std::as_writable_bytes(std::span(start.bytes))));
  // If no byte can be unpacked, keep the original bytes, because text may start like zlib data.
  if (!IsCompressed(start.bytes)) return start;
  if (std::string unpacked = Unpacked(start.bytes); !unpacked.empty())
    start.bytes = std::move(unpacked);
  return start;
}

std::span<const FileFormat> FileFormats() {
  return kFormats;
}

StatusOr<FileSummary> Summarise(const std::string& path, const std::string& format,
                                const SummaryOptions& options, const StopSource& stop) {
  ASSIGN_OR_RETURN(const FileFormat* const found, FormatOf(path, format));
  return found->summarise(path, options, stop);
}

}  // namespace tfjob::data
