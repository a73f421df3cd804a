#include "operator/keys/key_folder.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/base/file.h"
#include "runtime/base/log.h"

namespace tfjob::keys {
namespace {

const Logger kLog("keys");

// kLookInterval is the longest time for which a change to the Secret can go unnoticed, in addition
// to the kubelet's own delay of about a minute.
constexpr Duration kLookInterval = 10s;
constexpr char kKubeletsLink[] = "..data";

// Returns the folder that contains the files. Resolves the link only once, so that all files are
// read from the same folder even if a kubelet changes the link in the meantime.
std::string FolderOfFiles(const std::string& folder) {
  std::error_code error;
  const auto target = std::filesystem::canonical(folder + "/" + kKubeletsLink, error);
  return error ? folder : target.string();
}

// Checks the size before reading, because the folder may contain files of any size.
StatusOr<std::string> ReadSecret(const std::string& path) {
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(path, error);
  if (!error && !is_file) return InvalidArgument("expected a file");
  const std::uintmax_t size = error ? 0 : std::filesystem::file_size(path, error);
  if (error) return ErrnoStatus(error.value(), "reading the key");
  if (size > KeyRing::kMaxSecretBytes) {
    return InvalidArgument("expected at most ", KeyRing::kMaxSecretBytes, " bytes, got ", size);
  }
  return ReadFile(path);
}

}  // namespace

StatusOr<FoundKeys> ReadKeys(const std::string& folder) {
  const std::string place = FolderOfFiles(folder);
  ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(place));
  FoundKeys found;
  for (const std::string& name : names) {
    if (name.starts_with('.')) continue;
    const StatusOr<std::string> secret = ReadSecret(StrCat(place, "/", name));
    if (absl::IsNotFound(secret.status())) {
      return Unavailable(folder, "/", name, ": vanished while the keys were being read");
    }
    const Status added = secret.ok() ? found.ring.Add(name, *secret) : secret.status();
    if (!added.ok()) found.problems.push_back(StrCat(folder, "/", name, ": ", Message(added)));
  }
  return found;
}

std::shared_ptr<const KeyRing> KeyFolder::Ring() {
  MutexLock lock(mutex_);
  const Duration now = clock_.Monotonic();
  if (!read_at_ || now - *read_at_ >= kLookInterval) {
    read_at_ = now;
    Read();
  }
  return ring_;
}

void KeyFolder::Read() {
  if (folder_.empty()) return Replace({});
  StatusOr<FoundKeys> found = ReadKeys(folder_);
  if (found.ok()) return Replace(*std::move(found));
  LogNew({StrCat(folder_, ": ", Message(found.status()))});
  if (!logged_) LogRing();
}

void KeyFolder::Replace(FoundKeys found) {
  LogNew(std::move(found.problems));
  const bool keeps = found.ring.ids().empty() && !ring_->ids().empty();
  if (keeps && !keeps_) {
    kLog.Warning("there are no job keys any more; those from before stay in use until the restart",
                 {{"folder", folder_}, {"all", absl::StrJoin(ring_->ids(), ",")}});
  }
  keeps_ = keeps;
  if (keeps) return;
  const bool is_new = !(found.ring == *ring_);
  if (is_new) ring_ = std::make_shared<const KeyRing>(std::move(found.ring));
  if (is_new || !logged_) LogRing();
}

void KeyFolder::LogRing() {
  logged_ = true;
  const std::vector<std::string> ids = ring_->ids();
  if (ids.empty()) {
    kLog.Warning("there are no job keys, so the tasks of new jobs accept any peer",
                 {{"folder", folder_.empty() ? "none (--job-keys-dir is not set)" : folder_}});
  } else {
    kLog.Info("job keys",
              {{"folder", folder_}, {"newest", ids.back()}, {"all", absl::StrJoin(ids, ",")}});
  }
}

void KeyFolder::LogNew(std::vector<std::string> problems) {
  for (const std::string& problem : problems) {
    if (std::find(problems_.begin(), problems_.end(), problem) != problems_.end()) continue;
    kLog.Error("a job key cannot be used", {{"error", problem}});
  }
  problems_ = std::move(problems);
}

}  // namespace tfjob::keys
