#include "runtime/io/checkpoint_directory.h"

#include <google/protobuf/text_format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "runtime/base/file.h"
#include "runtime/io/bundle_writer.h"
#include "runtime/io/tensor_bundle.pb.h"

namespace tfjob::io {
namespace {

std::string StatePath(const std::string& folder) {
  return folder + "/checkpoint";
}

StatusOr<CheckpointState> ReadState(const std::string& folder) {
  StatusOr<std::string> text = ReadFile(StatePath(folder));
  if (absl::IsNotFound(text.status())) return CheckpointState();
  RETURN_IF_ERROR(text.status());
  CheckpointState state;
  if (!google::protobuf::TextFormat::ParseFromString(*text, &state)) {
    return DataLoss(StatePath(folder), " is not a CheckpointState in text form");
  }
  return state;
}

// Returns the full path: paths in the state file may be relative to the folder.
std::string Resolve(const std::string& folder, const std::string& path) {
  return path.starts_with('/') ? path : folder + "/" + path;
}

int64_t StepOf(const std::string& prefix) {
  int64_t step = -1;
  const size_t dash = prefix.rfind('-');
  if (dash == std::string::npos || !absl::SimpleAtoi(prefix.substr(dash + 1), &step)) return -1;
  return step;
}

bool Exists(const std::string& prefix) {
  std::error_code error;
  return std::filesystem::exists(IndexFileName(prefix), error);
}

// Deletes the index first, since the other files are not a checkpoint without it.
void DeleteFiles(const std::string& prefix) {
  unlink(IndexFileName(prefix).c_str());
  const std::filesystem::path path(prefix);
  const std::string name = path.filename().string() + ".data-";
  StatusOr<std::vector<std::string>> files = ListDirectory(path.parent_path());
  if (!files.ok()) return;
  for (const std::string& file : *files) {
    if (file.starts_with(name)) unlink((path.parent_path() / file).c_str());
  }
}

}  // namespace

std::string CheckpointPrefix(const std::string& folder, int64_t step) {
  return StrCat(folder, "/model.ckpt-", step);
}

StatusOr<std::vector<Checkpoint>> ListCheckpoints(const std::string& folder) {
  ASSIGN_OR_RETURN(CheckpointState state, ReadState(folder));
  std::vector<Checkpoint> checkpoints;
  for (const std::string& path : state.all_model_checkpoint_paths()) {
    const std::string prefix = Resolve(folder, path);
    if (Exists(prefix)) checkpoints.push_back({prefix, StepOf(prefix)});
  }
  return checkpoints;
}

StatusOr<std::optional<Checkpoint>> LatestCheckpoint(const std::string& folder) {
  ASSIGN_OR_RETURN(CheckpointState state, ReadState(folder));
  if (state.model_checkpoint_path().empty()) return std::optional<Checkpoint>();
  const std::string newest = Resolve(folder, state.model_checkpoint_path());
  if (Exists(newest)) return std::optional<Checkpoint>({newest, StepOf(newest)});
  ASSIGN_OR_RETURN(std::vector<Checkpoint> listed, ListCheckpoints(folder));
  if (listed.empty()) {
    return DataLoss(StatePath(folder), " names ", newest,
                    ", but neither it nor an older checkpoint exists");
  }
  return std::optional<Checkpoint>(listed.back());
}

Status RegisterCheckpoint(const std::string& folder, int64_t step, int keep, Time now) {
  ASSIGN_OR_RETURN(CheckpointState old, ReadState(folder));
  CheckpointState state;
  const std::string name = StrCat("model.ckpt-", step);
  state.set_model_checkpoint_path(name);
  std::vector<std::string> doomed;
  for (int i = 0; i < old.all_model_checkpoint_paths_size(); ++i) {
    const std::string& path = old.all_model_checkpoint_paths(i);
    const std::string prefix = Resolve(folder, path);
    if (StepOf(prefix) >= step || !Exists(prefix)) continue;
    state.add_all_model_checkpoint_paths(path);
    state.add_all_model_checkpoint_timestamps(i < old.all_model_checkpoint_timestamps_size()
                                                  ? old.all_model_checkpoint_timestamps(i)
                                                  : 0);
  }
  state.add_all_model_checkpoint_paths(name);
  state.add_all_model_checkpoint_timestamps(static_cast<double>(now.time_since_epoch().count()) /
                                            1e6);
  while (keep > 0 && state.all_model_checkpoint_paths_size() > keep) {
    doomed.push_back(Resolve(folder, state.all_model_checkpoint_paths(0)));
    state.mutable_all_model_checkpoint_paths()->erase(state.all_model_checkpoint_paths().begin());
    state.mutable_all_model_checkpoint_timestamps()->erase(
        state.all_model_checkpoint_timestamps().begin());
  }
  std::string text;
  google::protobuf::TextFormat::PrintToString(state, &text);
  RETURN_IF_ERROR(WriteFileAtomically(StatePath(folder), text));
  for (const std::string& prefix : doomed) DeleteFiles(prefix);
  return OkStatus();
}

}  // namespace tfjob::io
