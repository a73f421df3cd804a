#include "runtime/io/bundle_reader.h"

#include <fcntl.h>
#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "runtime/io/bundle_writer.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/tensor_bundle.pb.h"

namespace tfjob::io {
namespace {

// Returns a hint for users who pass the data file, the index or the folder instead of the prefix;
// "" if `prefix` is none of these.
std::string Advice(const std::string& prefix) {
  const size_t cut = std::min(prefix.rfind(".data-"), prefix.rfind(".index"));
  if (cut != std::string::npos) return StrCat("; use the prefix ", prefix.substr(0, cut));
  if (std::filesystem::is_directory(prefix))
    return "; it is a folder: use the prefix of a checkpoint in it";
  return "";
}

StatusOr<BundleEntry> ParseEntry(const std::string& name, const leveldb::Slice& value) {
  BundleEntryProto proto;
  if (!proto.ParseFromArray(value.data(), static_cast<int>(value.size()))) {
    return DataLoss("the entry of ", name, " is not a BundleEntryProto");
  }
  std::vector<int64_t> dims;
  for (const auto& dim : proto.shape().dim()) {
    if (dim.size() < 0 || dim.size() > (int64_t{1} << 40))
      return DataLoss("the shape of ", name, " is invalid");
    dims.push_back(dim.size());
  }
  if (proto.offset() < 0 || proto.size() < 0)
    return DataLoss("the location of ", name, " is invalid");
  return BundleEntry{.tensorflow_dtype = proto.dtype(),
                     .shape = Shape(std::move(dims)),
                     .shard = proto.shard_id(),
                     .offset = proto.offset(),
                     .size = proto.size(),
                     .masked_crc = proto.crc32c(),
                     .partitioned = proto.slices_size() > 0};
}

Status ReadBytes(const std::string& path, int64_t offset, std::span<std::byte> bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, StrCat("open ", path));
  Status status;
  while (!bytes.empty() && status.ok()) {
    const ssize_t count = pread(fd, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) status = ErrnoStatus(errno, StrCat("read ", path));
    if (count == 0)
      status = DataLoss(path, " ends before byte ", offset + static_cast<int64_t>(bytes.size()));
    if (count > 0) {
      bytes = bytes.subspan(static_cast<size_t>(count));
      offset += count;
    }
  }
  close(fd);
  return status;
}

}  // namespace

StatusOr<std::unique_ptr<BundleReader>> BundleReader::Open(std::string prefix) {
  std::unique_ptr<BundleReader> reader(new BundleReader(std::move(prefix)));
  RETURN_IF_ERROR(reader->ReadIndex());
  RETURN_IF_ERROR(reader->CheckDataFiles());
  return reader;
}

Status BundleReader::ReadIndex() {
  const std::string path = IndexFileName(prefix_);
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  if (error)
    return NotFound("no checkpoint ", prefix_, " (", path, ": ", error.message(), ")",
                    Advice(prefix_));

  leveldb::RandomAccessFile* raw_file = nullptr;
  leveldb::Options options;
  options.paranoid_checks = true;
  leveldb::Status opened = leveldb::Env::Default()->NewRandomAccessFile(path, &raw_file);
  std::unique_ptr<leveldb::RandomAccessFile> file(raw_file);
  leveldb::Table* raw_table = nullptr;
  if (opened.ok()) opened = leveldb::Table::Open(options, file.get(), size, &raw_table);
  if (!opened.ok())
    return DataLoss(path, " is not a checkpoint index or is damaged: ", opened.ToString());
  const std::unique_ptr<leveldb::Table> table(raw_table);

  leveldb::ReadOptions read;
  read.verify_checksums = true;
  const std::unique_ptr<leveldb::Iterator> it(table->NewIterator(read));
  for (it->SeekToFirst(); it->Valid(); it->Next()) {
    const std::string name = it->key().ToString();
    if (name.empty()) {
      BundleHeaderProto header;
      if (!header.ParseFromArray(it->value().data(), static_cast<int>(it->value().size())) ||
          header.num_shards() < 1) {
        return DataLoss(path, ": its header is not a BundleHeaderProto");
      }
      if (header.endianness() != 0)
        return Unimplemented(path, ": big-endian checkpoints are not supported");
      shards_ = header.num_shards();
      continue;
    }
    if (name[0] == '\0') continue;  // a slice of a partitioned variable
    StatusOr<BundleEntry> entry = ParseEntry(name, it->value());
    if (!entry.ok()) return Annotate(entry.status(), path);
    entries_[name] = *std::move(entry);
  }
  if (!it->status().ok()) return DataLoss(path, " is damaged: ", it->status().ToString());
  if (shards_ == 0) return DataLoss(path, " has no header");
  return OkStatus();
}

Status BundleReader::CheckDataFiles() const {
  std::map<int, int64_t> ends;
  for (const auto& [name, entry] : entries_) {
    if (entry.partitioned) continue;
    if (entry.shard < 0 || entry.shard >= shards_)
      return DataLoss(prefix_, ": ", name, " is in a nonexistent shard ", entry.shard);
    ends[entry.shard] = std::max(ends[entry.shard], entry.offset + entry.size);
  }
  for (const auto& [shard, end] : ends) {
    const std::string path = DataFileName(prefix_, shard, shards_);
    std::error_code error;
    const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
    if (error) return NotFound("checkpoint ", prefix_, " lacks ", path, ": ", error.message());
    if (size < end)
      return DataLoss(path, " has ", size, " bytes, but the index requires at least ", end);
  }
  return OkStatus();
}

StatusOr<Tensor> BundleReader::Read(const std::string& name) const {
  auto found = entries_.find(name);
  if (found == entries_.end()) return NotFound("checkpoint ", prefix_, " has no tensor ", name);
  const BundleEntry& entry = found->second;
  const std::optional<DType> dtype = DTypeFromTensorFlow(entry.tensorflow_dtype);
  if (entry.partitioned)
    return Unimplemented("checkpoint ", prefix_, ": ", name, " is partitioned; save it whole");
  if (!dtype) {
    return Unimplemented("checkpoint ", prefix_, ": ", name, " has TensorFlow's element type ",
                         entry.tensorflow_dtype, ", which is not supported");
  }
  // Check the size against the file before allocating memory for the shape.
  const auto elements = static_cast<unsigned __int128>(entry.size) / SizeOf(*dtype);
  unsigned __int128 wanted = 1;
  for (int64_t dim : entry.shape.dims()) {
    wanted *= static_cast<unsigned __int128>(dim);
    if (wanted > (static_cast<unsigned __int128>(1) << 62)) break;
  }
  if (wanted != elements || static_cast<size_t>(entry.size) % SizeOf(*dtype) != 0) {
    return DataLoss("checkpoint ", prefix_, ": ", name, " has ", entry.size,
                    " bytes for the shape ", entry.shape.ToString());
  }
  Tensor tensor(*dtype, entry.shape);
  RETURN_IF_ERROR(
      ReadBytes(DataFileName(prefix_, entry.shard, shards_), entry.offset, tensor.bytes()));
  if (MaskCrc(Crc32c(tensor.bytes())) != entry.masked_crc) {
    return DataLoss("checkpoint ", prefix_, ": the checksum of ", name, " is wrong");
  }
  return tensor;
}

}  // namespace tfjob::io
