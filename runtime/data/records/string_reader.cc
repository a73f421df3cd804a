#include "runtime/data/records/string_reader.h"

namespace tfjob::data {

StringReader::StringReader(const ExampleFeature& feature) : feature_(feature) {
  if (feature.tokens) encoder_.emplace(*feature.tokens);
}

void StringReader::Begin(std::span<std::byte> elements) {
  ids_ = {reinterpret_cast<int64_t*>(elements.data()), elements.size() / sizeof(int64_t)};
  strings_ = 0;
}

Status StringReader::Add(std::string_view string) {
  const size_t most = encoder_ ? 1 : ids_.size();
  const size_t number = strings_++;
  if (number >= most) return OkStatus();  // End will return an error with the number of strings
  if (encoder_) return encoder_->Encode(string, ids_).status();
  ASSIGN_OR_RETURN(ids_[number], feature_.vocabulary->Find(string));
  return OkStatus();
}

Status StringReader::End() {
  if (encoder_) return strings_ == 1 ? OkStatus() : WrongCount();
  if (strings_ > ids_.size() || (strings_ < ids_.size() && !feature_.variable)) return WrongCount();
  if (strings_ < ids_.size()) FillMissing(feature_, std::as_writable_bytes(ids_.subspan(strings_)));
  return OkStatus();
}

Status StringReader::WrongCount() const {
  return InvalidArgument("expected ", encoder_ ? "one string" : CountText(feature_), ", got ",
                         strings_);
}

}  // namespace tfjob::data
