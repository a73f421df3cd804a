#include "runtime/data/arrays/array_files.h"

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/data/array_checks.h"
#include "runtime/data/arrays/array_source.h"
#include "runtime/data/arrays/stored_array.h"
#include "runtime/data/byte_source.h"
#include "runtime/data/records/unpack.h"
#include "runtime/data/table_source.h"
#include "runtime/io/npz.h"

namespace tfjob::data {
namespace {

using SourcePtr = std::shared_ptr<const Source>;

constexpr size_t kPiece = 1 << 20;

SourcePtr InMemory(Dataset dataset) {
  return TableSource(std::make_shared<const Dataset>(std::move(dataset)));
}

// Creates the temporary file when the first array needs it.
class Temporary {
 public:
  explicit Temporary(const StorageOptions& storage) : folder_(TemporaryFolder(storage.cache_dir)) {}

  StatusOr<std::shared_ptr<TemporaryFile>> Get() {
    if (file_ == nullptr) {
      ASSIGN_OR_RETURN(TemporaryFile created, TemporaryFile::Create(folder_));
      file_ = std::make_shared<TemporaryFile>(std::move(created));
    }
    return file_;
  }

 private:
  const std::string folder_;
  std::shared_ptr<TemporaryFile> file_;
};

// ---- IDX

StatusOr<bool> IsGzipped(const std::string& path) {
  ASSIGN_OR_RETURN(const ByteSource source, ByteSource::Open(path));
  return source.compressed();
}

// Returns DataLoss unless `size` is the size of a file with this header.
Status CheckIdxSize(const std::string& path, const IdxHeader& header, uint64_t size) {
  const auto expected = static_cast<uint64_t>(header.shape.num_elements());
  const uint64_t got = size - std::min(size, header.begin);
  if (got == expected) return OkStatus();
  if (got < expected) {
    return DataLoss(path, ": expected ", expected, " bytes of data of shape ",
                    header.shape.ToString(), ", the file ends after ", got);
  }
  return DataLoss(path, ": expected the end of the file after data of shape ",
                  header.shape.ToString(), ", got more bytes");
}

StatusOr<StoredArray> StoreIdx(const std::string& name, const std::string& path,
                               const IdxHeader& header, Temporary& temporary) {
  ASSIGN_OR_RETURN(const std::shared_ptr<const ArrayFile> file, ArrayFile::Open(path));
  StoredArray array{.name = name,
                    .from = path,
                    .layout = {.kind = 'u', .item = 1, .shape = header.shape},
                    .dtype = DType::kUInt8,
                    .bytes = {.file = file, .temporary = nullptr, .begin = header.begin},
                    .version = file->version()};
  ASSIGN_OR_RETURN(const bool gzipped, IsGzipped(path));
  if (!gzipped) {
    RETURN_IF_ERROR(CheckIdxSize(path, header, file->file().size()));
    return array;
  }
  ASSIGN_OR_RETURN(const std::shared_ptr<TemporaryFile> to, temporary.Get());
  const uint64_t begin = to->size();
  RETURN_IF_ERROR(Unpack(file->file(), *to));
  RETURN_IF_ERROR(CheckIdxSize(path, header, to->size() - begin));
  array.bytes = {.file = nullptr, .temporary = to, .begin = begin + header.begin};
  return array;
}

// ---- NumPy

// An array in a file, of which only the header has been read.
struct FoundArray {
  std::string name;  // of the field
  std::string path;  // of the file
  std::string from;  // the file and, in an archive, the array, for messages
  io::NpyItems items;
  std::string member = {};  // of the archive; "" for an NPY file

  uint64_t bytes() const {
    return static_cast<uint64_t>(items.layout.shape.num_elements()) * SizeOf(items.dtype);
  }
};

// Finds the arrays of a dataset.
class NpzFiles {
 public:
  explicit NpzFiles(const NpzOptions& options) : options_(options) {}

  // Reads the headers of all arrays.
  StatusOr<std::vector<FoundArray>> Find() {
    std::vector<FoundArray> arrays;
    for (const NpzOptions::Source& source : options_.arrays) {
      if (source.optional) {
        ASSIGN_OR_RETURN(const bool present, Has(source.array));
        if (!present) continue;
      }
      ASSIGN_OR_RETURN(FoundArray found,
                       source.array.ends_with(".npy") ? FindFile(source) : FindMember(source));
      RETURN_IF_ERROR(CheckArrayShape(found.items.layout.shape, found.from));
      const FoundArray& first = arrays.empty() ? found : arrays[0];
      RETURN_IF_ERROR(CheckSameExamples(first.from, first.items.layout.shape.dim(0), found.from,
                                        found.items.layout.shape.dim(0)));
      arrays.push_back(std::move(found));
    }
    return arrays;
  }

  // Makes the array readable from its own file, or from the temporary file.
  StatusOr<StoredArray> Store(const FoundArray& found, Temporary& temporary) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const ArrayFile> file, FileAt(found.path));
    StoredArray array{.name = found.name,
                      .from = found.from,
                      .layout = found.items.layout,
                      .dtype = found.items.dtype,
                      .bytes = {.file = file, .temporary = nullptr, .begin = found.items.begin},
                      .version = file->version()};
    if (!found.member.empty()) RETURN_IF_ERROR(StoreMember(found, temporary, array.bytes));
    if (!array.layout.fortran || array.layout.shape.rank() < 2) return array;
    ASSIGN_OR_RETURN(const std::shared_ptr<TemporaryFile> to, temporary.Get());
    RETURN_IF_ERROR(StoreInCOrder(array, to));
    return array;
  }

 private:
  StatusOr<const io::NpzReader*> Archive() {
    if (!archive_) {
      ASSIGN_OR_RETURN(io::NpzReader reader, io::NpzReader::Open(options_.file));
      archive_.emplace(std::move(reader));
    }
    return &*archive_;
  }

  StatusOr<bool> Has(const std::string& array) {
    if (array.ends_with(".npy")) {
      std::error_code error;  // for example, an unreadable folder: FindFile reports it
      return std::filesystem::exists(array, error) || static_cast<bool>(error);
    }
    ASSIGN_OR_RETURN(const io::NpzReader* archive, Archive());
    return archive->Has(array);
  }

  StatusOr<FoundArray> FindFile(const NpzOptions::Source& source) {
    ASSIGN_OR_RETURN(const std::shared_ptr<const ArrayFile> opened, FileAt(source.array));
    const io::RandomAccessFile& file = opened->file();
    uint64_t at = 0;
    ASSIGN_OR_RETURN(
        io::NpyItems items,
        io::ReadNpyItems(source.array, file.size(), file.size(), [&](std::span<std::byte> bytes) {
          at += bytes.size();
          return file.Read(at - bytes.size(), bytes);
        }));
    return FoundArray{
        .name = source.name, .path = source.array, .from = source.array, .items = std::move(items)};
  }

  StatusOr<FoundArray> FindMember(const NpzOptions::Source& source) {
    ASSIGN_OR_RETURN(const io::NpzReader* archive, Archive());
    ASSIGN_OR_RETURN(std::string member, archive->MemberOf(source.array));
    ASSIGN_OR_RETURN(const std::unique_ptr<io::ZipStream> stream,
                     archive->archive().Stream(member));
    const io::ZipMember& stored = archive->archive().members().at(member);
    const std::string what = StrCat(options_.file, ": array ", source.array);
    ASSIGN_OR_RETURN(io::NpyItems items, io::ReadNpyItems(what, stored.size, stored.packed,
                                                          [&](std::span<std::byte> bytes) {
                                                            return stream->Read(bytes);
                                                          }));
    return FoundArray{.name = source.name,
                      .path = options_.file,
                      .from = what,
                      .items = std::move(items),
                      .member = std::move(member)};
  }

  // Reads a member of the archive, which verifies its checksum, and finds or stores its bytes.
  Status StoreMember(const FoundArray& found, Temporary& temporary, StoredBytes& bytes) {
    const auto [known, inserted] = members_.try_emplace(found.member);
    if (!inserted) {
      bytes = known->second;
      return OkStatus();
    }
    ASSIGN_OR_RETURN(const io::NpzReader* archive, Archive());
    const io::ZipMember& member = archive->archive().members().at(found.member);
    ASSIGN_OR_RETURN(const uint64_t data, archive->archive().DataOf(found.member));
    bytes.begin = data + found.items.begin;
    std::shared_ptr<TemporaryFile> to;
    if (member.deflated) {
      ASSIGN_OR_RETURN(to, temporary.Get());
      bytes = {.file = nullptr, .temporary = to, .begin = to->size() + found.items.begin};
    }
    ASSIGN_OR_RETURN(const std::unique_ptr<io::ZipStream> stream,
                     archive->archive().Stream(found.member));
    std::vector<std::byte> piece(kPiece);
    for (uint64_t left = member.size; left > 0;) {
      const auto part = std::span(piece).first(std::min<uint64_t>(left, kPiece));
      RETURN_IF_ERROR(stream->Read(part));
      if (to != nullptr)
        RETURN_IF_ERROR(to->Append({reinterpret_cast<const char*>(part.data()), part.size()}));
      left -= part.size();
    }
    known->second = bytes;
    return OkStatus();
  }

  // Returns the file at `path`, which is opened only once.
  StatusOr<std::shared_ptr<const ArrayFile>> FileAt(const std::string& path) {
    std::shared_ptr<const ArrayFile>& file = files_[path];
    if (file == nullptr) {
      ASSIGN_OR_RETURN(file, ArrayFile::Open(path));
    }
    return file;
  }

  const NpzOptions& options_;
  std::optional<io::NpzReader> archive_;
  std::map<std::string, std::shared_ptr<const ArrayFile>> files_;
  std::map<std::string, StoredBytes> members_;  // of the archive, that have been read
};

}  // namespace

StatusOr<SourcePtr> OpenIdx(const IdxOptions& options, const StorageOptions& storage) {
  ASSIGN_OR_RETURN(const IdxHeader images, ReadIdxHeader(options.images));
  ASSIGN_OR_RETURN(const IdxHeader labels, ReadIdxHeader(options.labels));
  RETURN_IF_ERROR(CheckIdxShapes(options, images.shape, labels.shape));
  const auto bytes =
      static_cast<uint64_t>(images.shape.num_elements() + labels.shape.num_elements());
  if (bytes <= storage.most_in_memory) {
    ASSIGN_OR_RETURN(Dataset dataset, LoadIdx(options));
    return InMemory(std::move(dataset));
  }
  Temporary temporary(storage);
  std::vector<StoredArray> arrays;
  ASSIGN_OR_RETURN(arrays.emplace_back(),
                   StoreIdx(kFeaturesArray, options.images, images, temporary));
  ASSIGN_OR_RETURN(arrays.emplace_back(),
                   StoreIdx(kLabelsArray, options.labels, labels, temporary));
  return ArraySource(std::move(arrays));
}

StatusOr<SourcePtr> OpenNpz(const NpzOptions& options, const StorageOptions& storage) {
  ENFORCE(options.in_memory.empty(), "arrays in memory are not opened");
  NpzFiles files(options);
  ASSIGN_OR_RETURN(const std::vector<FoundArray> found, files.Find());
  uint64_t bytes = 0;
  for (const FoundArray& array : found) bytes += array.bytes();
  if (bytes <= storage.most_in_memory) {
    ASSIGN_OR_RETURN(Dataset dataset, LoadNpz(options));
    return InMemory(std::move(dataset));
  }
  Temporary temporary(storage);
  std::vector<StoredArray> arrays;
  for (const FoundArray& array : found) {
    ASSIGN_OR_RETURN(arrays.emplace_back(), files.Store(array, temporary));
  }
  return ArraySource(std::move(arrays));
}

}  // namespace tfjob::data
