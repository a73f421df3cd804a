#include "runtime/io/bundle_writer.h"

#include <leveldb/env.h>
#include <leveldb/options.h>
#include <leveldb/table_builder.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/tensor_bundle.pb.h"

namespace tfjob::io {
namespace {

// An in-memory file: LevelDB writes its table to a string.
class TableText : public leveldb::WritableFile {
 public:
  leveldb::Status Append(const leveldb::Slice& data) override {
    text.append(data.data(), data.size());
    return leveldb::Status::OK();
  }
  leveldb::Status Close() override { return leveldb::Status::OK(); }
  leveldb::Status Flush() override { return leveldb::Status::OK(); }
  leveldb::Status Sync() override { return leveldb::Status::OK(); }

  std::string text;
};

// The number of bytes written at once. It is small enough that the bytes are still in the cache
// after their checksum has been computed.
constexpr size_t kBytesPerAppend = 256 << 10;

std::string Header() {
  BundleHeaderProto header;
  header.set_num_shards(1);
  header.mutable_version()->set_producer(1);
  return header.SerializeAsString();
}

}  // namespace

std::string DataFileName(const std::string& prefix, int shard, int shards) {
  char suffix[64];
  std::snprintf(suffix, sizeof(suffix), ".data-%05d-of-%05d", shard, shards);
  return prefix + suffix;
}

std::string IndexFileName(const std::string& prefix) {
  return prefix + ".index";
}

StatusOr<bool> HasIndex(const std::string& prefix) {
  const std::string path = IndexFileName(prefix);
  struct stat info{};
  if (stat(path.c_str(), &info) == 0) return true;
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return ErrnoStatus(errno, path);
}

BundleWriter::BundleWriter(std::string prefix, FileSystem& files)
    : prefix_(std::move(prefix)),
      files_(files),
      folder_(ParentFolder(prefix_)),
      temporary_data_(TemporaryPath(DataFileName(prefix_, 0, 1))),
      temporary_index_(TemporaryPath(IndexFileName(prefix_))) {}

BundleWriter::~BundleWriter() {
  data_.reset();
  for (const std::string& path : unfinished_) files_.Remove(path).IgnoreError();
}

StatusOr<std::unique_ptr<BundleWriter>> BundleWriter::Create(std::string prefix,
                                                             FileSystem& files) {
  std::unique_ptr<BundleWriter> writer(new BundleWriter(std::move(prefix), files));
  ASSIGN_OR_RETURN(writer->data_, files.Create(writer->temporary_data_));
  writer->unfinished_.push_back(writer->temporary_data_);
  writer->entries_[""] = Header();
  return writer;
}

Status BundleWriter::Add(const std::string& name, DType dtype, const Shape& shape,
                         std::span<const std::byte> bytes) {
  ENFORCE(bytes.size() == static_cast<size_t>(shape.num_elements()) * SizeOf(dtype),
          "as many bytes as the shape holds");
  RETURN_IF_ERROR(Begin(name, dtype, shape));
  return Append(bytes);
}

Status BundleWriter::Begin(const std::string& name, DType dtype, const Shape& shape) {
  ENFORCE(data_ != nullptr, "a tensor after Finish");
  ENFORCE(missing_ == 0, "the tensor before is complete");
  if (name.empty()) return InvalidArgument("a tensor of a checkpoint needs a name");
  if (entries_.contains(name))
    return AlreadyExists("checkpoint ", prefix_, ": two tensors are named ", name);
  name_ = name;
  crc_ = 0;
  missing_ = shape.num_elements() * static_cast<int64_t>(SizeOf(dtype));
  entry_ = std::make_unique<BundleEntryProto>();
  entry_->set_dtype(static_cast<int>(dtype));
  entry_->mutable_shape();  // written even if empty
  for (int64_t dim : shape.dims()) entry_->mutable_shape()->add_dim()->set_size(dim);
  entry_->set_offset(size_);
  entry_->set_size(missing_);
  if (missing_ == 0) EndTensor();
  return OkStatus();
}

Status BundleWriter::Append(std::span<const std::byte> bytes) {
  ENFORCE(bytes.size() <= static_cast<size_t>(missing_), "no more bytes than the shape holds");
  while (!bytes.empty()) {
    const std::span<const std::byte> piece = bytes.first(std::min(bytes.size(), kBytesPerAppend));
    crc_ = ExtendCrc32c(crc_, piece);
    RETURN_IF_ERROR(data_->Append({reinterpret_cast<const char*>(piece.data()), piece.size()}));
    size_ += static_cast<int64_t>(piece.size());
    missing_ -= static_cast<int64_t>(piece.size());
    bytes = bytes.subspan(piece.size());
    if (missing_ == 0) EndTensor();
  }
  return OkStatus();
}

void BundleWriter::EndTensor() {
  entry_->set_crc32c(MaskCrc(crc_));
  entries_.emplace(std::move(name_), entry_->SerializeAsString());
  entry_.reset();
}

Status BundleWriter::Add(const std::string& name, const Tensor& tensor) {
  return Add(name, tensor.dtype(), tensor.shape(), tensor.bytes());
}

Status BundleWriter::WriteIndex() {
  leveldb::Options options;
  options.block_size = 262144;
  options.block_restart_interval = 16;
  options.compression = leveldb::kNoCompression;
  TableText table;
  leveldb::TableBuilder builder(options, &table);
  for (const auto& [name, entry] : entries_) builder.Add(name, entry);
  const leveldb::Status built = builder.Finish();
  if (!built.ok()) return Internal("the index of ", prefix_, ": ", built.ToString());
  ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, files_.Create(temporary_index_));
  unfinished_.push_back(temporary_index_);
  RETURN_IF_ERROR(file->Append(table.text));
  return file->Sync();
}

// Invalidates an older checkpoint with this prefix, so that an index never refers to the data of
// another checkpoint.
Status BundleWriter::RemoveOldIndex() {
  ASSIGN_OR_RETURN(const bool present, HasIndex(prefix_));
  if (!present) return OkStatus();
  RETURN_IF_ERROR(files_.Remove(IndexFileName(prefix_)));
  return files_.SyncDirectory(folder_);
}

Status BundleWriter::Finish(const WriteRight& right) {
  ENFORCE(data_ != nullptr, "Finish twice");
  ENFORCE(missing_ == 0, "the last tensor is complete");
  RETURN_IF_ERROR(data_->Sync());
  RETURN_IF_ERROR(WriteIndex());
  RETURN_IF_ERROR(right.Check());
  RETURN_IF_ERROR(RemoveOldIndex());
  RETURN_IF_ERROR(right.Check());
  RETURN_IF_ERROR(files_.Rename(temporary_data_, DataFileName(prefix_, 0, 1)));
  unfinished_ = {temporary_index_};
  // If several processes may write, a file of this name may later belong to another process, so do
  // not remove it.
  if (!right.check) unfinished_.push_back(DataFileName(prefix_, 0, 1));
  RETURN_IF_ERROR(files_.SyncDirectory(folder_));
  RETURN_IF_ERROR(right.Check());
  RETURN_IF_ERROR(files_.Rename(temporary_index_, IndexFileName(prefix_)));
  // Keep the files even if the sync fails: the checkpoint is complete, and only a power failure
  // could still undo the rename.
  unfinished_.clear();
  data_.reset();
  return files_.SyncDirectory(folder_);
}

}  // namespace tfjob::io
