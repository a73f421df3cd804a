#include "runtime/io/zip_writer.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/io/zip_format.h"

namespace tfjob::io {
namespace {

template <typename Number>
void PutNumber(std::string& text, Number number) {
  for (size_t i = 0; i < sizeof(Number); ++i)
    text += static_cast<char>(static_cast<uint64_t>(number) >> (8 * i));
}

void PutNumbers16(std::string& text, std::initializer_list<uint16_t> numbers) {
  for (uint16_t number : numbers) PutNumber(text, number);
}

constexpr uint16_t kDate = 1 << 5 | 1;  // 1 January 1980, the first date of the format

// Appends the fields that a member's header and its entry in the list have in common, up to the
// length of the extra field.
void PutMember(std::string& text, uint32_t crc, size_t name_size, size_t extra_size) {
  PutNumbers16(text, {kZipVersion64, kZipUtf8, kZipStored, 0, kDate});
  PutNumber(text, crc);
  PutNumber(text, kZip64Mark);
  PutNumber(text, kZip64Mark);
  PutNumbers16(text, {static_cast<uint16_t>(name_size), static_cast<uint16_t>(extra_size)});
}

std::string ExtraOf(std::initializer_list<uint64_t> numbers) {
  std::string extra;
  PutNumbers16(extra, {kZip64Extra, static_cast<uint16_t>(numbers.size() * sizeof(uint64_t))});
  for (uint64_t number : numbers) PutNumber(extra, number);
  return extra;
}

uint32_t ChecksumOf(std::span<const std::string_view> parts) {
  uLong crc = 0;
  for (std::string_view part : parts) {
    while (!part.empty()) {
      const auto piece = static_cast<uInt>(std::min<size_t>(part.size(), 1 << 30));
      crc = crc32(crc, reinterpret_cast<const Bytef*>(part.data()), piece);
      part.remove_prefix(piece);
    }
  }
  return static_cast<uint32_t>(crc);
}

}  // namespace

ZipWriter::ZipWriter(std::string path, FileSystem& files)
    : path_(std::move(path)), temporary_(TemporaryPath(path_)), files_(files) {}

ZipWriter::~ZipWriter() {
  file_.reset();
  if (!finished_) files_.Remove(temporary_).IgnoreError();
}

StatusOr<std::unique_ptr<ZipWriter>> ZipWriter::Create(const std::string& path, FileSystem& files) {
  std::unique_ptr<ZipWriter> writer(new ZipWriter(path, files));
  ASSIGN_OR_RETURN(writer->file_, files.Create(writer->temporary_));
  return writer;
}

Status ZipWriter::Append(std::string_view bytes) {
  size_ += bytes.size();
  return file_->Append(bytes);
}

// Uses 64-bit sizes for all members and for the archive, even if they are small.
Status ZipWriter::Add(std::string_view name, std::span<const std::string_view> parts) {
  if (name.empty() || name.size() > kZip64CountMark)
    return InvalidArgument(path_, ": a member's name has ", name.size(), " bytes");
  uint64_t size = 0;
  for (std::string_view part : parts) size += part.size();
  const uint32_t crc = ChecksumOf(parts);
  const std::string entry_extra = ExtraOf({size, size, size_});
  PutNumber(directory_, kZipDirectoryEntry);
  PutNumbers16(directory_, {kZipVersion64});
  PutMember(directory_, crc, name.size(), entry_extra.size());
  PutNumbers16(directory_, {0, 0, 0});  // no comment; part 0; internal attributes
  PutNumber(directory_, uint32_t{0});   // external attributes
  PutNumber(directory_, kZip64Mark);
  directory_ += name;
  directory_ += entry_extra;
  ++members_;

  const std::string extra = ExtraOf({size, size});
  std::string header;
  PutNumber(header, kZipLocalHeader);
  PutMember(header, crc, name.size(), extra.size());
  header += name;
  header += extra;
  RETURN_IF_ERROR(Append(header));
  for (std::string_view part : parts) RETURN_IF_ERROR(Append(part));
  return OkStatus();
}

Status ZipWriter::Finish() {
  const uint64_t directory_at = size_, end_at = size_ + directory_.size();
  std::string end;
  PutNumber(end, kZip64End);
  PutNumber(end, uint64_t{kZip64EndBytes - 12});  // the size of the rest of the record
  PutNumbers16(end, {kZipVersion64, kZipVersion64});
  PutNumber(end, uint64_t{0});  // part 0; the list starts in part 0
  for (uint64_t number : {members_, members_, uint64_t{directory_.size()}, directory_at})
    PutNumber(end, number);
  PutNumber(end, kZip64Locator);
  PutNumber(end, uint32_t{0});
  PutNumber(end, end_at);
  PutNumber(end, uint32_t{1});  // one part
  PutNumber(end, kZipEnd);
  PutNumbers16(end, {0, 0, kZip64CountMark, kZip64CountMark});
  PutNumber(end, kZip64Mark);
  PutNumber(end, kZip64Mark);
  PutNumbers16(end, {0});  // no comment
  RETURN_IF_ERROR(Append(directory_));
  RETURN_IF_ERROR(Append(end));
  RETURN_IF_ERROR(file_->Sync());
  RETURN_IF_ERROR(files_.Rename(temporary_, path_));
  finished_ = true;
  return files_.SyncDirectory(ParentFolder(path_));
}

}  // namespace tfjob::io
