#include "runtime/io/checkpoint_directory.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <memory>
#include <span>
#include <tuple>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
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

// The start of the comment that records the term and the step at which the state file was written:
// "# tfjob: term 7, step 1200". TensorFlow's parsers skip comments.
constexpr char kComment[] = "# tfjob: ";
// The highest term that a state file may record. The limit leaves room for later terms.
constexpr int64_t kMostTerm = int64_t{1} << 62;

// The content of the state file.
struct StateFile {
  CheckpointState state;
  int64_t term = 0;  // 0: the file records none
  int64_t step = -1;
};

Status ReadComment(const std::string& folder, absl::string_view line, StateFile& file) {
  const std::vector<std::string> words = absl::StrSplit(line, absl::ByAnyChar(" ,"));
  const bool valid = words.size() == 5 && words[0] == "term" && words[3] == "step" &&
                     absl::SimpleAtoi(words[1], &file.term) &&
                     absl::SimpleAtoi(words[4], &file.step) && file.term > 0 &&
                     file.term <= kMostTerm && file.step >= 0;
  if (valid) return OkStatus();
  return DataLoss(StatePath(folder), " begins with a damaged comment: expected '", kComment,
                  "term NUMBER, step NUMBER'; delete this line if no job is running");
}

StatusOr<StateFile> ParseState(const std::string& folder, const std::string& text) {
  StateFile file;
  if (!google::protobuf::TextFormat::ParseFromString(text, &file.state)) {
    return DataLoss(StatePath(folder), " is not a CheckpointState in text form");
  }
  // Return an error, because a run that starts from scratch would delete the checkpoints that the
  // file listed.
  if (file.state.model_checkpoint_path().empty()) {
    return DataLoss(StatePath(folder), " names no checkpoint: it is empty or damaged; restore it, ",
                    "or delete it to begin anew");
  }
  absl::string_view line = absl::string_view(text).substr(0, text.find('\n'));
  if (absl::ConsumePrefix(&line, kComment)) RETURN_IF_ERROR(ReadComment(folder, line, file));
  return file;
}

// Reads the state file. Opens it again each time, because a client of a shared file system may
// otherwise see an earlier file of this name.
StatusOr<StateFile> ReadState(const std::string& folder) {
  // Open refuses pipes and devices, because they may have no end.
  const StatusOr<RandomAccessFile> file = RandomAccessFile::Open(StatePath(folder));
  if (absl::IsNotFound(file.status())) return StateFile();
  RETURN_IF_ERROR(file.status());
  if (file->size() > kMaxStateBytes) {
    return DataLoss(StatePath(folder), " has ", file->size(),
                    " bytes, more than a list of checkpoints may have");
  }
  std::string text(file->size(), '\0');
  RETURN_IF_ERROR(file->Read(0, std::as_writable_bytes(std::span(text))));
  return ParseState(folder, text);
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

// Deletes the files of a checkpoint. Deletes the index first, because the other files are not a
// checkpoint without it. Then syncs the folder, so that a power failure cannot restore the index
// alone.
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
  const StatusOr<StateFile> file = ReadState(folder);
  if (!file.ok()) return true;
  const CheckpointState& state = file->state;
  return NameOf(state.model_checkpoint_path()) == name ||
         std::ranges::any_of(state.all_model_checkpoint_paths(),
                             [&](const std::string& path) { return NameOf(path) == name; });
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

Status CheckTerm(const std::string& folder, int64_t step, const WriteRight& right,
                 const StateFile& file) {
  if (right.term == 0 || std::tie(right.term, step) >= std::tie(file.term, file.step)) {
    return OkStatus();
  }
  return FailedPrecondition(StatePath(folder), ": the checkpoint of step ", step,
                            " was written in term ", right.term, ", but step ", file.step,
                            " has been registered in term ", file.term,
                            ": another task saves now, and its checkpoints stay");
}

// Returns the list with the checkpoint as its newest entry. `doomed` receives the names of the
// checkpoints that are no longer listed.
StatusOr<CheckpointState> WithNewest(const std::string& folder, int64_t step, int keep, Time now,
                                     const CheckpointState& old, std::vector<std::string>& doomed) {
  const std::string newest = StrCat(kOurPrefix, step);
  CheckpointState state;
  state.set_model_checkpoint_path(newest);
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
  return state;
}

// Like WriteFileAtomically, but checks the right after the sync, which may take a long time.
Status WriteState(const std::string& folder, int64_t step, const CheckpointState& state,
                  FileSystem& files, const WriteRight& right) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(state, &text);
  if (right.term > 0) text = StrCat(kComment, "term ", right.term, ", step ", step, "\n", text);
  const std::string temporary = TemporaryPath(StatePath(folder));
  const Status written = [&] {
    ASSIGN_OR_RETURN(const std::unique_ptr<OutputFile> file, files.Create(temporary));
    RETURN_IF_ERROR(file->Append(text));
    RETURN_IF_ERROR(file->Sync());
    RETURN_IF_ERROR(CheckRight(folder, step, right));
    return files.Rename(temporary, StatePath(folder));
  }();
  if (!written.ok()) {
    files.Remove(temporary).IgnoreError();
    return written;
  }
  return files.SyncDirectory(folder);
}

// Returns whether no other process has registered a checkpoint since this registration.
bool IsLast(const std::string& folder, int64_t step, const WriteRight& right) {
  if (right.term == 0) return true;
  const StatusOr<StateFile> file = ReadState(folder);
  return file.ok() && file->term == right.term && file->step == step && right.Check().ok();
}

// Returns whether the file is left over from an interrupted write. `present` is the sorted list of
// the names of the files in its folder.
bool IsLeftover(const std::vector<std::string>& present, const std::string& file) {
  const bool ours = file.starts_with(kOurPrefix) || file.starts_with("checkpoint.") ||
                    file.starts_with("finished.json.") || file.starts_with("group.json.") ||
                    file.starts_with(".writable.");
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
  ASSIGN_OR_RETURN(const StateFile file, ReadState(folder));
  std::vector<Checkpoint> checkpoints;
  for (const std::string& path : file.state.all_model_checkpoint_paths()) {
    const std::string name = NameOf(path);
    ASSIGN_OR_RETURN(const bool exists, Exists(folder, name));
    if (exists) checkpoints.push_back({StrCat(folder, "/", name), StepOf(name)});
  }
  return checkpoints;
}

StatusOr<std::optional<Checkpoint>> LatestCheckpoint(const std::string& folder) {
  ASSIGN_OR_RETURN(const StateFile file, ReadState(folder));
  const std::string& path = file.state.model_checkpoint_path();
  if (path.empty()) return std::optional<Checkpoint>();  // no state file
  const std::string newest = NameOf(path);
  ASSIGN_OR_RETURN(const bool exists, Exists(folder, newest));
  if (exists) return std::optional<Checkpoint>({StrCat(folder, "/", newest), StepOf(newest)});
  ASSIGN_OR_RETURN(std::vector<Checkpoint> listed, ListCheckpoints(folder));
  if (listed.empty()) {
    return DataLoss(StatePath(folder), " names ", path, ", but ", folder,
                    " has neither this checkpoint nor an older one");
  }
  return std::optional<Checkpoint>(listed.back());
}

Status RegisterCheckpoint(const std::string& folder, int64_t step, int keep, Time now,
                          FileSystem& files, const WriteRight& right) {
  const std::string newest = StrCat(kOurPrefix, step);
  std::vector<std::string> doomed;
  const Status written = [&] {
    ASSIGN_OR_RETURN(const StateFile old, ReadState(folder));
    RETURN_IF_ERROR(CheckTerm(folder, step, right, old));
    ASSIGN_OR_RETURN(const CheckpointState state,
                     WithNewest(folder, step, keep, now, old.state, doomed));
    ASSIGN_OR_RETURN(const bool complete, Exists(folder, newest));
    if (!complete) return FailedPrecondition(folder, " has no complete checkpoint ", newest);
    return WriteState(folder, step, state, files, right);
  }();
  if (!written.ok()) {
    // Delete the checkpoint if it is not listed, because it only uses space, and lack of space may
    // be the reason why the list could not be written. Without the right to write, keep the files:
    // they may already belong to another process, which will list them.
    if (!Lists(folder, newest) && CheckRight(folder, step, right).ok())
      DeleteCheckpoint(folder, newest, files);
    return written;
  }
  if (!IsLast(folder, step, right)) return OkStatus();
  for (const std::string& name : doomed) DeleteCheckpoint(folder, name, files);
  return OkStatus();
}

Status CheckRight(const std::string& folder, int64_t step, const WriteRight& right) {
  RETURN_IF_ERROR(right.Check());
  if (right.term == 0) return OkStatus();
  ASSIGN_OR_RETURN(const StateFile file, ReadState(folder));
  return CheckTerm(folder, step, right, file);
}

StatusOr<int64_t> RecordedTerm(const std::string& folder) {
  ASSIGN_OR_RETURN(const StateFile file, ReadState(folder));
  return file.term;
}

StatusOr<std::vector<std::string>> SweepLeftovers(const std::string& folder, FileSystem& files,
                                                  const WriteRight& right) {
  ASSIGN_OR_RETURN(const std::vector<std::string> present, ListDirectory(folder));
  std::vector<std::string> removed;
  for (const std::string& file : present) {
    if (!IsLeftover(present, file)) continue;
    RETURN_IF_ERROR(right.Check());
    RETURN_IF_ERROR(files.Remove(folder + "/" + file));
    removed.push_back(file);
  }
  return removed;
}

}  // namespace tfjob::io
