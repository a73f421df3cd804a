#include "tests/fuzz/checkpoint_property.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/bundle_writer.h"
#include "runtime/io/checkpoint_directory.h"
#include "runtime/io/crc32c.h"
#include "runtime/io/forged_index.h"
#include "runtime/io/object_graph.h"
#include "runtime/io/record.h"
#include "runtime/train/model_dir/run_mark.h"

namespace tfjob::fuzz {
namespace {

// A folder that contains the model's folder. Removed at the end of the process.
class Folders {
 public:
  Folders() {
    char name[] = "/tmp/tfjob_checkpoint_fuzz_XXXXXX";
    ENFORCE(mkdtemp(name) != nullptr, "mkdtemp");
    outer_ = name;
    ENFORCE(MakeDirectories(model()).ok(), "mkdir");
  }
  ~Folders() {
    std::error_code ignored;
    std::filesystem::remove_all(outer_, ignored);
  }
  std::string model() const { return outer_ + "/model"; }
  std::string path(const std::string& name) const { return outer_ + "/" + name; }

 private:
  std::string outer_;
};

const Folders& TheFolders() {
  static const Folders folders;
  return folders;
}

void Write(const std::string& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

// Adds the entry of a slice of the tensor `w`. The otherwise unused location of `w` selects the
// distance of the slices, which may share bytes, and the size of their elements.
void AddSlice(const io::BundleEntryProto& whole, const io::TensorSliceProto& slice,
              std::string_view data, std::map<std::string, io::BundleEntryProto>& entries) {
  std::vector<int64_t> starts, lengths;
  io::BundleEntryProto entry;
  int64_t elements = 1;
  for (const auto& extent : slice.extent()) {
    const auto d = static_cast<int>(starts.size());
    starts.push_back(extent.start());
    lengths.push_back(extent.has_length() ? extent.length() : -1);
    int64_t dim = extent.length();
    if (!extent.has_length() && d < whole.shape().dim_size()) dim = whole.shape().dim(d).size();
    entry.mutable_shape()->add_dim()->set_size(dim);
    elements = std::min<int64_t>(elements * std::clamp<int64_t>(dim, 0, 101), 101);
  }
  entry.set_dtype(whole.dtype());
  entry.set_offset((whole.offset() & 63) * static_cast<int64_t>(entries.size() - 1));
  entry.set_size(elements * (whole.size() & 15));
  const auto begin = static_cast<size_t>(std::min<int64_t>(entry.offset(), 100));
  const std::string_view values = data.substr(begin, static_cast<size_t>(entry.size()));
  entry.set_crc32c(io::MaskCrc(io::Crc32c(values)));
  entries[io::SliceKey("w", starts, lengths)] = entry;
}

}  // namespace

void CheckIndexProperties(std::string_view bytes) {
  const std::string prefix = TheFolders().model() + "/model.ckpt-1";
  const std::string data(100, 'x');
  Write(io::DataFileName(prefix, 0, 1), data);
  Write(io::IndexFileName(prefix), bytes);
  const auto reader = io::BundleReader::Open(prefix);
  if (!reader.ok()) return;
  for (const auto& [name, entry] : (*reader)->entries()) {
    const StatusOr<Tensor> tensor = (*reader)->Read(name);
    ENFORCE(!tensor.ok() || tensor->num_bytes() <= data.size(), "no more bytes than the file has");
    const StatusOr<std::string> text = (*reader)->ReadString(name);
    ENFORCE(!text.ok() || text->size() <= data.size(), "no more bytes than the file has");
  }
  if (io::IsObjectBased(**reader)) (void)io::ObjectVariables(**reader);
}

void CheckSliceProperties(std::string_view bytes) {
  io::BundleEntryProto whole;
  if (!whole.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) return;
  const std::string prefix = TheFolders().model() + "/model.ckpt-1";
  std::string data;
  for (int i = 0; i < 100; ++i) data += static_cast<char>(i);
  std::map<std::string, io::BundleEntryProto> entries = {{"w", whole}};
  for (const io::TensorSliceProto& slice : whole.slices()) AddSlice(whole, slice, data, entries);
  Write(io::DataFileName(prefix, 0, 1), data);
  Write(io::IndexFileName(prefix), io::IndexOf(1, entries));
  const auto reader = io::BundleReader::Open(prefix);
  if (!reader.ok()) return;
  const StatusOr<Tensor> tensor = (*reader)->Read("w");
  const StatusOr<io::StoredTensor> stored = (*reader)->Store("w");
  ENFORCE(tensor.ok() == stored.ok(), "both ways of reading accept the same tensors");
  if (!tensor.ok()) return;
  ENFORCE(tensor->num_bytes() <= data.size(), "no more bytes than the file has");
  std::vector<std::byte> pieces(tensor->num_bytes());
  for (size_t at = 0; at < pieces.size(); at += 3) {
    const std::span<std::byte> rest = std::span(pieces).subspan(at);
    const auto piece = rest.first(std::min<size_t>(3, rest.size()));
    ENFORCE(stored->Read(static_cast<int64_t>(at), piece).ok(), "every byte can be read");
  }
  ENFORCE(std::ranges::equal(pieces, tensor->bytes()), "both ways return the same bytes");
}

void CheckListProperties(std::string_view text) {
  const std::string folder = TheFolders().model();
  const std::string inside[] = {"model.ckpt-1", "model.ckpt-2"};
  for (const std::string& name : inside) {
    Write(io::IndexFileName(folder + "/" + name), "an index");
    Write(io::DataFileName(folder + "/" + name, 0, 1), "data");
  }
  // This file outside of the model's folder could be reached by a path with "..".
  const std::string outside = TheFolders().path("model.ckpt-1");
  Write(io::IndexFileName(outside), "an index");
  Write(io::DataFileName(outside, 0, 1), "data");
  Write(folder + "/checkpoint", text);
  const auto listed = io::ListCheckpoints(folder);
  for (const io::Checkpoint& checkpoint : listed.value_or(std::vector<io::Checkpoint>()))
    ENFORCE(ParentFolder(checkpoint.prefix) == folder, "a checkpoint of the folder");
  const auto latest = io::LatestCheckpoint(folder);
  if (latest.ok() && *latest) ENFORCE(ParentFolder((*latest)->prefix) == folder, "in the folder");
  const bool registered = io::RegisterCheckpoint(folder, 2, 1, Time()).ok();
  ENFORCE(registered == listed.ok(), "a list that reads can be replaced");
  ENFORCE(std::filesystem::exists(io::IndexFileName(outside)), "nothing outside is deleted");
  ENFORCE(std::filesystem::exists(io::DataFileName(outside, 0, 1)), "nothing outside is deleted");
  if (registered) ENFORCE((*io::LatestCheckpoint(folder))->step == 2, "the newest is found");
}

void CheckMarkProperties(std::string_view text) {
  Write(TheFolders().model() + "/finished.json", text);
  (void)train::FinishedStep(TheFolders().model(), {"uid", 1});
  (void)train::FinishedStep(TheFolders().model(), {"", 0, Time(Duration(1))});
}

void CheckRecordProperties(std::string_view bytes) {
  const auto records = io::ParseRecords(bytes);
  if (!records.ok()) return;
  std::string written;
  for (const std::string& record : *records) io::AppendRecord(record, written);
  ENFORCE(bytes.starts_with(written), "written records must be the same bytes");
}

}  // namespace tfjob::fuzz
