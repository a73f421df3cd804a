#include "runtime/base/source_log.h"

namespace tfjob {

SourceLog::Entry* SourceLog::Find(const std::string& source, Duration now, bool& is_new) {
  if (auto found = sources_.find(source); found != sources_.end()) return &found->second;
  if (sources_.size() >= kMaxSources) {
    std::erase_if(sources_, [&](const auto& item) { return now - item.second.logged >= kSilence; });
  }
  if (sources_.size() >= kMaxSources) return nullptr;
  is_new = true;
  return &sources_[source];
}

std::optional<uint64_t> SourceLog::Note(const std::string& source, Duration now) {
  bool is_new = false;
  Entry* entry = Find(source, now, is_new);
  if (entry == nullptr) {
    is_new = !others_;
    if (is_new) others_ = Entry{};
    entry = &*others_;
  }
  if (!is_new && now - entry->logged < kSilence) {
    ++entry->left_out;
    return std::nullopt;
  }
  const uint64_t left_out = entry->left_out;
  *entry = {.logged = now, .left_out = 0};
  return left_out;
}

}  // namespace tfjob
