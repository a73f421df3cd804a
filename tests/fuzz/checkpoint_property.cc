#include "tests/fuzz/checkpoint_property.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/bundle_writer.h"
#include "runtime/io/checkpoint_directory.h"
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
