#include "runtime/io/checkpoint_directory.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <span>

#include "absl/strings/numbers.h"
#include "runtime/base/file.h"
#include "runtime/io/bundle_writer.h"
#include "runtime/io/random_access_file.h"
#include "runtime/io/tensor_bundle.pb.h"

namespace tfjob::io {
namespace {

constexpr uint64_t kMaxStateBytes = 16 << 20;
constexpr std::string_view kOurPrefix = "model.ckpt-";

std::string StatePath(const std::string& folder) {
  return folder + "/checkpoint";
}

StatusOr<CheckpointState> ReadState(const std::string& folder) {
  // Refuses pipes and devices, which may have no end.
  const StatusOr<RandomAccessFile> file = RandomAccessFile::Open(StatePath(folder));
  if (absl::IsNotFound(file.status())) return CheckpointState();
  RETURN_IF_ERROR(file.status());
  if (file->size() > kMaxStateBytes) {
    return DataLoss(StatePath(folder), " has ", file->size(),
                    " bytes, more than a list of checkpoints may have");
  }
  std::string text(file->size(), '\0');
  RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span(text))));
  CheckpointState state;
  if (!google::protobuf::TextFormat::ParseFromString(text, &state)) {
    return DataLoss(StatePath(folder), " is not a CheckpointState in text form");
  }
  // Returns an error, because a run that started over would delete the checkpoints that the file
  // listed.
  if (state.model_checkpoint_path().empty()) {
    return DataLoss(StatePath(folder), " names no checkpoint: it is empty or damaged; restore it, ",
                    "or delete it to begin anew");
  }
  return state;
}

// Returns the last component of a path in the state file, or "" if it cannot be the name of a
// checkpoint. TensorFlow writes either names or full paths.
std::string NameOf(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  const bool usable = name != "." && name != ".." && name.find('\0') == std::string::npos;
  return usable ? name : "";
}

int64_t StepOf(const std::string& prefix) {
  int64_t step = -1;
  const size_t dash = prefix.rfind('-');
  if (dash == std::string::npos || !absl::SimpleAtoi(prefix.substr(dash + 1), &step)) return -1;
  return step;
}

// Returns whether the folder has a checkpoint with this name.
StatusOr<bool> Exists(const std::string& folder, const std::string& name) {
  if (name.empty()) return false;
  return HasIndex(folder + "/" + name);
}

// Deletes the index first, without which the other files are not a checkpoint, and then syncs the
// folder, so that a power failure cannot restore the index alone.
void DeleteCheckpoint(const std::string& folder, const std::string& name, FileSystem& files) {
  if (!files.Remove(IndexFileName(folder + "/" + name)).ok()) return;
  if (!files.SyncDirectory(folder).ok()) return;
  const StatusOr<std::vector<std::string>> present = ListDirectory(folder);
  if (!present.ok()) return;
  for (const std::string& file : *present) {
    if (file.starts_with(name + ".data-")) files.Remove(folder + "/" + file).IgnoreError();
  }
}

// Returns whether the state file lists the checkpoint, or true if the state file cannot be read.
bool Lists(const std::string& folder, const std::string& name) {
  const StatusOr<CheckpointState> state = ReadState(folder);
  if (!state.ok()) return true;
  const auto& paths = state->all_model_checkpoint_paths();
  return std::find(paths.begin(), paths.end(), name) != paths.end();
}

void List(const std::string& name, double time, CheckpointState& state) {
  state.add_all_model_checkpoint_paths(name);
  state.add_all_model_checkpoint_timestamps(time);
}

// Moves the oldest names beyond `keep` from the list to `doomed`.
void DropOldest(int keep, CheckpointState& state, std::vector<std::string>& doomed) {
  const int excess = state.all_model_checkpoint_paths_size() - keep;
  if (keep == 0 || excess <= 0) return;
  auto& paths = *state.mutable_all_model_checkpoint_paths();
  auto& times = *state.mutable_all_model_checkpoint_timestamps();
  doomed.insert(doomed.end(), paths.begin(), paths.begin() + excess);
  paths.erase(paths.begin(), paths.begin() + excess);
  times.erase(times.begin(), times.begin() + excess);
}

// Returns whether the file is left over from an interrupted write. `present` lists the names of the
// files in its folder, in order.
bool IsLeftover(const std::vector<std::string>& present, const std::string& file) {
  const bool ours = file.starts_with(kOurPrefix) || file.starts_with("checkpoint.") ||
                    file.starts_with("finished.json.") || file.starts_with(".writable.");
  if (ours && IsTemporaryName(file)) return true;
  const size_t data = file.find(".data-");
  return file.starts_with(kOurPrefix) && data != std::string::npos &&
         !std::ranges::binary_search(present, IndexFileName(file.substr(0, data)));
}

}  // namespace

std::string CheckpointPrefix(const std::string& folder, int64_t step) {
  return StrCat(folder, "/", kOurPrefix, step);
}

StatusOr<std::vector<Checkpoint>> ListCheckpoints(const std::string& folder) {
  ASSIGN_OR_RETURN(CheckpointState state, ReadState(folder));
  std::vector<Checkpoint> checkpoints;
  for (const std::string& path : state.all_model_checkpoint_paths()) {
    const std::string name = NameOf(path);
    ASSIGN_OR_RETURN(const bool exists, Exists(folder, name));
    if (exists) checkpoints.push_back({StrCat(folder, "/", name), StepOf(name)});
  }
  return checkpoints;
}

StatusOr<std::optional<Checkpoint>> LatestCheckpoint(const std::string& folder) {
  ASSIGN_OR_RETURN(CheckpointState state, ReadState(folder));
  if (state.model_checkpoint_path().empty()) return std::optional<Checkpoint>();  // no state file
  const std::string newest = NameOf(state.model_checkpoint_path());
  ASSIGN_OR_RETURN(const bool exists, Exists(folder, newest));
  if (exists) return std::optional<Checkpoint>({StrCat(folder, "/", newest), StepOf(newest)});
  ASSIGN_OR_RETURN(std::vector<Checkpoint> listed, ListCheckpoints(folder));
  if (listed.empty()) {
    return DataLoss(StatePath(folder), " names ", state.model_checkpoint_path(), ", but ", folder,
                    " has neither this checkpoint nor an older one");
  }
  return std::optional<Checkpoint>(listed.back());
}

Status RegisterCheckpoint(const std::string& folder, int64_t step, int keep, Time now,
                          FileSystem& files) {
  ASSIGN_OR_RETURN(CheckpointState old, ReadState(folder));
  const std::string newest = StrCat(kOurPrefix, step);
  CheckpointState state;
  state.set_model_checkpoint_path(newest);
  std::vector<std::string> doomed;
  for (int i = 0; i < old.all_model_checkpoint_paths_size(); ++i) {
    const std::string name = NameOf(old.all_model_checkpoint_paths(i));
    if (name == newest) continue;
    ASSIGN_OR_RETURN(const bool exists, Exists(folder, name));
    if (!exists) continue;
    if (StepOf(name) >= step) {
      if (name.starts_with(kOurPrefix)) doomed.push_back(name);
      continue;
    }
    const bool dated = i < old.all_model_checkpoint_timestamps_size();
    List(name, dated ? old.all_model_checkpoint_timestamps(i) : 0, state);
  }
  List(newest, static_cast<double>(now.time_since_epoch().count()) / 1e6, state);
  DropOldest(keep, state, doomed);
  std::string text;
  google::protobuf::TextFormat::PrintToString(state, &text);
  const Status written = WriteFileAtomically(StatePath(folder), text, files);
  if (!written.ok()) {
    // Deletes an unlisted checkpoint, which only takes up space: the list may not have been written
    // for lack of space.
    if (!Lists(folder, newest)) DeleteCheckpoint(folder, newest, files);
    return written;
  }
  for (const std::string& name : doomed) DeleteCheckpoint(folder, name, files);
  return OkStatus();
}

StatusOr<std::vector<std::string>> SweepLeftovers(const std::string& folder, FileSystem& files) {
  ASSIGN_OR_RETURN(const std::vector<std::string> present, ListDirectory(folder));
  std::vector<std::string> removed;
  for (const std::string& file : present) {
    if (!IsLeftover(present, file)) continue;
    RETURN_IF_ERROR(files.Remove(folder + "/" + file));
    removed.push_back(file);
  }
  return removed;
}

}  // namespace tfjob::io
