#include "runtime/data/operators/cache_file.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <optional>
#include <utility>

#include "runtime/base/fnv1a.h"
#include "runtime/base/log.h"
#include "runtime/base/version.h"
#include "runtime/data/column_rows.h"
#include "runtime/data/dataset.h"
#include "runtime/data/row_memory.h"
#include "runtime/data/staged_rows.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/random_access_file.h"

namespace tfjob::data {
namespace {

constexpr Logger kCacheLog("data");
constexpr int64_t kExamplesPerPass = 256;
// The version of the values and of the file format. Increment it if a source or an operator
// computes different values from the same files, or if the format of cache files changes.
constexpr uint64_t kExamplesVersion = 1;
// If a temporary file has not changed for this long, its writer no longer exists.
constexpr std::chrono::hours kAbandonedAfter{1};

// The header of a cache file. The file consists of a header and one record per example. A record
// contains the values of all fields, and a checksum of these values. Numbers are little-endian. The
// size of the file follows from the header.
struct CacheHeader {
  char magic[16];
  uint64_t program;  // a hash of the program's version
  uint64_t values;   // a hash of everything that the values depend on
  uint64_t layout;   // a hash of the fields
  uint64_t examples;
  uint64_t example_bytes;  // the size of a record without the checksum
};
constexpr std::string_view kMagic("tfjob data cache", sizeof(CacheHeader::magic));
using Checksum = uint32_t;

static_assert(std::endian::native == std::endian::little);

size_t BytesOf(const Field& field) {
  return static_cast<size_t>(field.shape.num_elements()) * SizeOf(field.dtype);
}

CacheHeader HeaderOf(const Source& source, uint64_t values) {
  CacheHeader header{};
  std::memcpy(header.magic, kMagic.data(), kMagic.size());
  Fnv1a layout;
  for (const Field& field : source.fields()) {
    layout.Add(StrCat(field.name, " ", Name(field.dtype), " ", field.shape.ToString(), "\n"));
    header.example_bytes += BytesOf(field);
  }
  header.program = Fnv1a().Add(kVersion).AddWord(kExamplesVersion).hash();
  header.values = values;
  header.layout = layout.hash();
  header.examples = static_cast<uint64_t>(source.size());
  return header;
}

std::string_view BytesOf(const CacheHeader& header) {
  return {reinterpret_cast<const char*>(&header), sizeof(header)};
}

uint64_t Stride(const CacheHeader& header) {
  return header.example_bytes + sizeof(Checksum);
}

// ---- reading

class FileCache : public Source {
 public:
  FileCache(SourcePtr source, io::RandomAccessFile file, const CacheHeader& header)
      : source_(std::move(source)), file_(std::move(file)), header_(header) {}

  int64_t size() const override { return source_->size(); }
  const std::vector<Field>& fields() const override { return source_->fields(); }
  bool in_memory() const override { return false; }
  std::vector<int64_t> file_starts() const override { return source_->file_starts(); }
  std::string Describe() const override {
    return StrCat(source_->Describe(), "; cached in ", file_.path(), ": ", file_.size(), " bytes");
  }
  std::string LeftOut() const override { return source_->LeftOut(); }
  uint64_t fingerprint() const override { return source_->fingerprint(); }
  std::optional<uint64_t> values_hash() const override { return header_.values; }
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override;

  const io::RandomAccessFile& file() const { return file_; }
  const CacheHeader& header() const { return header_; }

 private:
  const SourcePtr source_;  // its values are not read again
  const io::RandomAccessFile file_;
  const CacheHeader header_;
};

class FileCacheReader : public RowReader {
 public:
  FileCacheReader(const FileCache& source, std::vector<Column> columns)
      : source_(source),
        columns_(std::move(columns)),
        example_(static_cast<size_t>(Stride(source.header()))),
        rows_(source.fields()) {}

  Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) override {
    Dataset& dataset = rows_.For(rows.size());
    dataset.place = [this, rows](int64_t index) {
      return StrCat(source_.file().path(), ": example ", rows[static_cast<size_t>(index)]);
    };
    for (size_t i = 0; i < rows.size(); ++i) RETURN_IF_ERROR(ReadExample(rows[i], i, dataset));
    for (size_t i = 0; i < columns_.size(); ++i) {
      ASSIGN_OR_RETURN(const ColumnValues values, ReadColumn(dataset, columns_[i]));
      CopyRows(values, rows_.numbers(rows.size()), tensors[i].value);
    }
    return OkStatus();
  }

 private:
  Status ReadExample(int64_t number, size_t row, Dataset& dataset) {
    RETURN_IF_ERROR(source_.file().Read(
        sizeof(CacheHeader) + static_cast<uint64_t>(number) * example_.size(), example_));
    const std::span<const std::byte> values =
        std::span(example_).first(example_.size() - sizeof(Checksum));
    Checksum stored = 0;
    std::memcpy(&stored, values.data() + values.size(), sizeof(stored));
    if (io::Crc32c(values) != stored) {
      return DataLoss(source_.file().path(), ": example ", number,
                      ": its checksum is wrong; remove the file, and it is written again");
    }
    size_t at = 0;
    for (Array& array : dataset.arrays) {
      const std::span<std::byte> bytes = array.values.bytes();
      const size_t width = bytes.size() / static_cast<size_t>(array.values.shape().dim(0));
      std::ranges::copy(values.subspan(at, width), bytes.subspan(row * width).begin());
      at += width;
    }
    return OkStatus();
  }

  const FileCache& source_;
  const std::vector<Column> columns_;
  std::vector<std::byte> example_;  // as in the file
  StagedRows rows_;
};

StatusOr<std::unique_ptr<RowReader>> FileCache::Open(const std::vector<Column>& columns) const {
  for (const Column& column : columns) {
    if (Find(column.array) != nullptr) continue;
    return InvalidArgument(file_.path(), ": the cache has no ", column.array);
  }
  return std::make_unique<FileCacheReader>(*this, columns);
}

// Opens the file if it is a complete cache of the source. Returns null if the file does not exist
// or is outdated.
StatusOr<SourcePtr> OpenCache(const SourcePtr& source, const std::string& path,
                              const CacheHeader& header) {
  StatusOr<io::RandomAccessFile> file = io::RandomAccessFile::Open(path);
  if (absl::IsNotFound(file.status())) return nullptr;
  RETURN_IF_ERROR(file.status());
  CacheHeader found{};
  const size_t bytes = std::min<size_t>(file->size(), sizeof(found));
  RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span(&found, 1)).first(bytes)));
  if (bytes < kMagic.size() || std::string_view(found.magic, kMagic.size()) != kMagic) {
    return InvalidArgument(path, ": expected a cache file of examples, or no file, got another ",
                           "file; name another one, or remove it");
  }
  const uint64_t size = sizeof(header) + header.examples * Stride(header);
  if (bytes < sizeof(found) || BytesOf(found) != BytesOf(header) || file->size() != size) {
    kCacheLog.Info("the cache file is of other data or another version, and is written again",
                   {{"file", path}});
    return nullptr;
  }
  return std::make_shared<const FileCache>(source, *std::move(file), header);
}

// ---- writing

// Removes the temporary files of writers that were killed.
void RemoveAbandoned(const std::string& path, FileSystem& files) {
  namespace fs = std::filesystem;
  const fs::path cache(path);
  const fs::path folder = cache.has_parent_path() ? cache.parent_path() : fs::path(".");
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string name = entry->path().filename();
    if (!name.starts_with(cache.filename().string() + ".") || !IsTemporaryName(name)) continue;
    std::error_code unknown;
    const fs::file_time_type changed = entry->last_write_time(unknown);
    if (unknown || fs::file_time_type::clock::now() - changed < kAbandonedAfter) continue;
    kCacheLog.Info("a temporary file whose writer has ended is removed",
                   {{"file", entry->path().string()}});
    (void)files.Remove(entry->path());
  }
}

class CacheWriter {
 public:
  CacheWriter(FileSystem& files, const std::string& path) : files_(files), path_(path) {}

  // Writes all examples to the temporary file, and renames the file. Returns errors from reading
  // the examples, and stores errors from writing in `failed`.
  Status Write(const Source& source, const CacheHeader& header, Status& failed) {
    RemoveAbandoned(path_, files_);
    const std::string temporary = TemporaryPath(path_);
    const Status read = WriteTo(temporary, source, header, failed);
    if (read.ok() && failed.ok()) failed = files_.Rename(temporary, path_);
    if (!read.ok() || !failed.ok()) (void)files_.Remove(temporary);
    if (!read.ok() || !failed.ok()) return read;
    const std::string folder = std::filesystem::path(path_).parent_path();
    (void)files_.SyncDirectory(folder.empty() ? "." : folder);  // the file is complete
    return OkStatus();
  }

 private:
  Status WriteTo(const std::string& temporary, const Source& source, const CacheHeader& header,
                 Status& failed) {
    StatusOr<std::unique_ptr<OutputFile>> file = files_.Create(temporary);
    failed = file.status();
    if (failed.ok()) failed = (*file)->Append(BytesOf(header));
    if (!failed.ok()) return OkStatus();
    ASSIGN_OR_RETURN(const std::unique_ptr<RowReader> reader, source.Open(ColumnsOfFields(source)));
    for (int64_t begin = 0; begin < source.size() && failed.ok(); begin += kExamplesPerPass) {
      const int64_t end = std::min(begin + kExamplesPerPass, source.size());
      RETURN_IF_ERROR(ReadRows(source, *reader, begin, end));
      failed = (*file)->Append(buffer_);
    }
    if (failed.ok()) failed = (*file)->Sync();
    return OkStatus();
  }

  // Stores the examples [begin, end) in the buffer, in the format of the file.
  Status ReadRows(const Source& source, RowReader& reader, int64_t begin, int64_t end) {
    std::vector<int64_t> rows(static_cast<size_t>(end - begin));
    std::iota(rows.begin(), rows.end(), begin);
    std::vector<NamedTensor> tensors;
    for (const Field& field : source.fields()) {
      tensors.push_back(
          {field.name, RowMemory(field.dtype, field.shape, end - begin).First(end - begin)});
    }
    RETURN_IF_ERROR(reader.Read(rows, tensors));
    buffer_.clear();
    for (size_t row = 0; row < rows.size(); ++row) {
      const size_t start = buffer_.size();
      for (size_t i = 0; i < tensors.size(); ++i) {
        const std::span<const std::byte> all = std::as_const(tensors[i].value).bytes();
        const size_t width = all.size() / rows.size();
        buffer_.append(reinterpret_cast<const char*>(all.data()) + row * width, width);
      }
      const Checksum checksum = io::Crc32c(std::string_view(buffer_).substr(start));
      buffer_.append(reinterpret_cast<const char*>(&checksum), sizeof(checksum));
    }
    return OkStatus();
  }

  FileSystem& files_;
  const std::string& path_;
  std::string buffer_;
};

}  // namespace

StatusOr<SourcePtr> CacheInFile(SourcePtr source, const std::string& path,
                                const std::string& version, FileSystem& files) {
  if (source->in_memory()) return source;
  const std::optional<uint64_t> values = source->values_hash();
  if (!values && version.empty()) {
    return InvalidArgument(path, ": expected a version of the cached examples, because functions ",
                           "of the program compute them, so a change would not be noticed; pass ",
                           "one to CacheFile, and change it whenever the examples change");
  }
  const CacheHeader header =
      HeaderOf(*source, Fnv1a().AddWord(values.value_or(0)).Add(version).hash());
  ASSIGN_OR_RETURN(SourcePtr cache, OpenCache(source, path, header));
  if (cache != nullptr) return cache;
  Status failed;
  RETURN_IF_ERROR(CacheWriter(files, path).Write(*source, header, failed));
  if (failed.ok()) {
    ASSIGN_OR_RETURN(cache, OpenCache(source, path, header));
    if (cache != nullptr) return cache;
    failed = FailedPrecondition("another task, with other data, has replaced the file");
  }
  kCacheLog.Warning("the cache file cannot be written, so the examples are read as without it",
                    {{"file", path}, {"error", Message(failed)}});
  return source;
}

}  // namespace tfjob::data
