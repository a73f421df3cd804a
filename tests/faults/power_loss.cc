#include "tests/faults/power_loss.h"

#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/file.h"

namespace tfjob::faults {

class RecordingFile : public OutputFile {
 public:
  RecordingFile(std::string name, RecordingFiles& files, std::unique_ptr<OutputFile> file)
      : name_(std::move(name)), files_(files), file_(std::move(file)) {}

  Status Append(std::string_view bytes) override {
    files_.operations_.push_back({RecordingFiles::Kind::kAppend, name_, std::string(bytes)});
    return file_->Append(bytes);
  }
  Status Sync() override {
    files_.operations_.push_back({RecordingFiles::Kind::kSync, name_, ""});
    return file_->Sync();
  }

 private:
  const std::string name_;
  RecordingFiles& files_;
  const std::unique_ptr<OutputFile> file_;
};

RecordingFiles::RecordingFiles(std::string folder, Files before)
    : folder_(std::move(folder)), before_(std::move(before)) {}

std::string RecordingFiles::NameOf(const std::string& path) const {
  ENFORCE(ParentFolder(path) == folder_, path);
  return path.substr(folder_.size() + 1);
}

StatusOr<std::unique_ptr<OutputFile>> RecordingFiles::Create(const std::string& path) {
  operations_.push_back({Kind::kCreate, NameOf(path), ""});
  ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, RealFileSystem().Create(path));
  return std::unique_ptr<OutputFile>(
      std::make_unique<RecordingFile>(NameOf(path), *this, std::move(file)));
}

Status RecordingFiles::Rename(const std::string& from, const std::string& to) {
  operations_.push_back({Kind::kRename, NameOf(from), NameOf(to)});
  return RealFileSystem().Rename(from, to);
}

Status RecordingFiles::Remove(const std::string& path) {
  operations_.push_back({Kind::kRemove, NameOf(path), ""});
  return RealFileSystem().Remove(path);
}

Status RecordingFiles::SyncDirectory(const std::string& path) {
  operations_.push_back({Kind::kSyncDirectory, "", ""});
  return RealFileSystem().SyncDirectory(path);
}

// Identifies files by the names under which they were created.
void RecordingFiles::AddStatesAt(size_t count, std::vector<Files>& states) const {
  Files content = before_;                // by name at creation: content that is on the disk
  Files written = before_;                // by name at creation: content that was written
  std::vector<const Operation*> pending;  // changes to names; each may be lost
  std::vector<const Operation*> kept;
  for (size_t i = 0; i < count; ++i) {
    const Operation& operation = operations_[i];
    switch (operation.kind) {
      case Kind::kAppend:
        written[operation.name] += operation.argument;
        break;
      case Kind::kSync:
        content[operation.name] = written[operation.name];
        break;
      case Kind::kSyncDirectory:
        kept.insert(kept.end(), pending.begin(), pending.end());
        pending.clear();
        break;
      default:
        pending.push_back(&operation);
    }
  }
  for (size_t lost = 0; lost < size_t{1} << pending.size(); ++lost) {
    std::map<std::string, std::string> names;  // name → name at creation
    for (const auto& [name, bytes] : before_) names[name] = name;
    const auto apply = [&](const Operation& operation) {
      if (operation.kind == Kind::kCreate) names[operation.name] = operation.name;
      if (operation.kind == Kind::kRemove) names.erase(operation.name);
      if (operation.kind != Kind::kRename) return;
      // If a rename is kept, the file exists, even if the name under which it was created is lost.
      const auto found = names.find(operation.name);
      const std::string file = found == names.end() ? operation.name : found->second;
      names.erase(operation.name);
      names[operation.argument] = file;
    };
    for (const Operation* operation : kept) apply(*operation);
    for (size_t i = 0; i < pending.size(); ++i) {
      if ((lost >> i & 1) == 0) apply(*pending[i]);
    }
    Files state;
    for (const auto& [name, file] : names) state[name] = content[file];
    states.push_back(std::move(state));
  }
}

std::vector<Files> RecordingFiles::StatesAfterPowerLoss() const {
  std::vector<Files> states;
  for (size_t count = 0; count <= operations_.size(); ++count) AddStatesAt(count, states);
  return states;
}

Files ReadFolder(const std::string& folder) {
  Files files;
  const auto names = ListDirectory(folder);
  ENFORCE(names.ok(), folder);
  for (const std::string& name : *names) files[name] = *ReadFile(folder + "/" + name);
  return files;
}

void WriteFolder(const std::string& folder, const Files& files) {
  std::filesystem::remove_all(folder);
  ENFORCE(MakeDirectories(folder).ok(), folder);
  for (const auto& [name, bytes] : files) {
    std::ofstream(folder + "/" + name, std::ios::binary) << bytes;
  }
}

}  // namespace tfjob::faults
