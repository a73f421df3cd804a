#include "runtime/io/bundle_writer.h"

#include <fcntl.h>
#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/tensor_bundle.pb.h"

namespace tfjob::io {
namespace {

Status FromLevelDb(const leveldb::Status& status, const std::string& path) {
  if (status.ok()) return OkStatus();
  return Unavailable("write ", path, ": ", status.ToString());
}

std::string Header() {
  BundleHeaderProto header;
  header.set_num_shards(1);
  header.mutable_version()->set_producer(1);
  return header.SerializeAsString();
}

Status RenameFile(const std::string& from, const std::string& to) {
  if (rename(from.c_str(), to.c_str()) == 0) return OkStatus();
  return ErrnoStatus(errno, StrCat("rename ", from, " to ", to));
}

}  // namespace

// The data file. Writes are not buffered: since tensors are large, a buffer would only add a copy.
struct BundleWriter::DataFile {
  explicit DataFile(const std::string& path)
      : path(path), fd(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {}
  ~DataFile() {
    if (fd >= 0) close(fd);
  }

  Status Append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = write(fd, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return ErrnoStatus(errno, StrCat("write ", path));
      bytes = bytes.subspan(static_cast<size_t>(written));
      size += written;
    }
    return OkStatus();
  }

  const std::string path;
  const int fd;
  int64_t size = 0;
};

std::string DataFileName(const std::string& prefix, int shard, int shards) {
  char suffix[64];
  std::snprintf(suffix, sizeof(suffix), ".data-%05d-of-%05d", shard, shards);
  return prefix + suffix;
}

std::string IndexFileName(const std::string& prefix) {
  return prefix + ".index";
}

BundleWriter::BundleWriter(std::string prefix)
    : prefix_(std::move(prefix)),
      temporary_data_(StrCat(DataFileName(prefix_, 0, 1), ".tmp.", getpid())),
      temporary_index_(StrCat(IndexFileName(prefix_), ".tmp.", getpid())),
      data_(std::make_unique<DataFile>(temporary_data_)) {}

BundleWriter::~BundleWriter() {
  if (data_ == nullptr) return;  // finished
  unlink(temporary_data_.c_str());
  unlink(temporary_index_.c_str());
}

StatusOr<std::unique_ptr<BundleWriter>> BundleWriter::Create(std::string prefix) {
  std::unique_ptr<BundleWriter> writer(new BundleWriter(std::move(prefix)));
  if (writer->data_->fd < 0) return ErrnoStatus(errno, StrCat("create ", writer->temporary_data_));
  writer->entries_[""] = Header();
  return writer;
}

Status BundleWriter::Add(const std::string& name, DType dtype, const Shape& shape,
                         std::span<const std::byte> bytes) {
  ENFORCE(data_ != nullptr, "Add after Finish");
  ENFORCE(bytes.size() == static_cast<size_t>(shape.num_elements()) * SizeOf(dtype),
          "as many bytes as the shape holds");
  if (name.empty()) return InvalidArgument("a tensor of a checkpoint needs a name");
  BundleEntryProto entry;
  entry.set_dtype(static_cast<int>(dtype));
  entry.mutable_shape();  // written even when empty
  for (int64_t dim : shape.dims()) entry.mutable_shape()->add_dim()->set_size(dim);
  entry.set_offset(data_->size);
  entry.set_size(static_cast<int64_t>(bytes.size()));
  entry.set_crc32c(MaskCrc(Crc32c(bytes)));
  if (!entries_.emplace(name, entry.SerializeAsString()).second) {
    return AlreadyExists("checkpoint ", prefix_, ": two tensors are named ", name);
  }
  return data_->Append(bytes);
}

Status BundleWriter::Add(const std::string& name, const Tensor& tensor) {
  return Add(name, tensor.dtype(), tensor.shape(), tensor.bytes());
}

Status BundleWriter::WriteIndex() {
  leveldb::WritableFile* raw = nullptr;
  RETURN_IF_ERROR(FromLevelDb(leveldb::Env::Default()->NewWritableFile(temporary_index_, &raw),
                              temporary_index_));
  std::unique_ptr<leveldb::WritableFile> file(raw);
  leveldb::Options options;
  options.block_size = 262144;
  options.block_restart_interval = 16;
  options.compression = leveldb::kNoCompression;
  leveldb::TableBuilder builder(options, file.get());
  for (const auto& [name, entry] : entries_) builder.Add(name, entry);
  RETURN_IF_ERROR(FromLevelDb(builder.Finish(), temporary_index_));
  RETURN_IF_ERROR(FromLevelDb(file->Sync(), temporary_index_));
  return FromLevelDb(file->Close(), temporary_index_);
}

Status BundleWriter::Finish() {
  ENFORCE(data_ != nullptr, "Finish twice");
  if (fsync(data_->fd) != 0) return ErrnoStatus(errno, StrCat("fsync ", temporary_data_));
  RETURN_IF_ERROR(WriteIndex());
  // Removing the old index first invalidates an older checkpoint with this prefix, so that an
  // index never refers to another checkpoint's data.
  unlink(IndexFileName(prefix_).c_str());
  RETURN_IF_ERROR(RenameFile(temporary_data_, DataFileName(prefix_, 0, 1)));
  RETURN_IF_ERROR(RenameFile(temporary_index_, IndexFileName(prefix_)));
  data_.reset();
  const std::string folder = std::filesystem::path(prefix_).parent_path();
  return SyncDirectory(folder.empty() ? "." : folder);
}

}  // namespace tfjob::io
