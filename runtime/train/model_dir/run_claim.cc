#include "runtime/train/model_dir/run_claim.h"

#include <nlohmann/json.hpp>

#include "runtime/base/file.h"
#include "runtime/base/json.h"

namespace tfjob::train {
namespace {

std::string ClaimPath(const std::string& folder) {
  return folder + "/group.json";
}

}  // namespace

Status WriteClaim(const std::string& folder, int64_t number, FileSystem& files) {
  RETURN_IF_ERROR(MakeDirectories(folder));
  return WriteFileAtomically(ClaimPath(folder), PrintJson(Json{{"first_term", number}}) + "\n",
                             files);
}

StatusOr<int64_t> ReadClaim(const std::string& folder) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(ClaimPath(folder)));
  const StatusOr<Json> document = ParseJson(text, ClaimPath(folder));
  if (!document.ok()) return DataLoss(Message(document.status()));
  const StatusOr<int64_t> number = JsonField(*document)["first_term"].Int();
  if (!number.ok()) return DataLoss(ClaimPath(folder), ": ", Message(number.status()));
  return number;
}

}  // namespace tfjob::train
