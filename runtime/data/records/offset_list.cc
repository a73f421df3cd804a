#include "runtime/data/records/offset_list.h"

namespace tfjob::data {

Status OffsetList::Append(uint64_t value) {
  if (pending_.size() == most_) RETURN_IF_ERROR(Store());
  pending_.push_back(value);
  return OkStatus();
}

Status OffsetList::Store() {
  if (!file_) {
    ASSIGN_OR_RETURN(TemporaryFile created, TemporaryFile::Create(folder_));
    file_.emplace(std::move(created));
  }
  RETURN_IF_ERROR(file_->Append(
      {reinterpret_cast<const char*>(pending_.data()), pending_.size() * sizeof(uint64_t)}));
  stored_ += pending_.size();
  pending_.clear();
  return OkStatus();
}

Status OffsetList::Finish() {
  if (!file_) {
    pending_.shrink_to_fit();
    return OkStatus();
  }
  RETURN_IF_ERROR(Store());
  std::vector<uint64_t>().swap(pending_);
  ASSIGN_OR_RETURN(const std::span<const std::byte> bytes, file_->Map());
  mapped_ = {reinterpret_cast<const uint64_t*>(bytes.data()), stored_};
  return OkStatus();
}

}  // namespace tfjob::data
