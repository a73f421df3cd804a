#include "runtime/train/model_dir/run_claim.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tfjob::train {
namespace {

std::string ClaimPath(const std::string& folder) {
  return folder + "/group.json";
}

}  // namespace

Status WriteClaim(const std::string& folder, const Claim& claim, FileSystem& files) {
  RETURN_IF_ERROR(MakeDirectories(folder));
  const Json text = {
      {"first_term", claim.first_term}, {"job_uid", claim.job_uid}, {"attempt", claim.attempt}};
  return WriteFileAtomically(ClaimPath(folder), PrintJson(text) + "\n", files);
}

StatusOr<Claim> ReadClaim(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(ClaimPath(folder)));
  const auto read = [&]() -> StatusOr<Claim> {
    ASSIGN_OR_RETURN(const Json document, ParseJson(text, ClaimPath(folder)));
    const JsonField root(document);
    Claim claim;
    ASSIGN_OR_RETURN(claim.first_term, root["first_term"].Int());
    // Earlier versions wrote only the number.
    if (!root["job_uid"].present()) return claim;
    ASSIGN_OR_RETURN(claim.job_uid, root["job_uid"].String());
    ASSIGN_OR_RETURN(const int64_t attempt, root["attempt"].Int());
    claim.attempt = static_cast<int32_t>(attempt);
    return claim;
  };
  StatusOr<Claim> claim = read();
  if (!claim.ok()) return DataLoss(ClaimPath(folder), ": ", Message(claim.status()));
  return claim;
}

void LateClaim::Expect(const Claim& claim) {
  MutexLock lock(mutex_);
  expected_ = claim;
}

// Does not hold the lock while it writes, because TakeWritten must not wait for the disk.
Status LateClaim::Write(const std::string& folder, FileSystem& files) {
  std::optional<Claim> claim;
  {
    MutexLock lock(mutex_);
    claim = expected_;
  }
  if (!claim) return OkStatus();
  RETURN_IF_ERROR(WriteClaim(folder, *claim, files));
  MutexLock lock(mutex_);
  written_ = expected_ == claim;
  if (written_) expected_.reset();
  return OkStatus();
}

bool LateClaim::TakeWritten() {
  MutexLock lock(mutex_);
  return std::exchange(written_, false);
}

}  // namespace tfjob::train
