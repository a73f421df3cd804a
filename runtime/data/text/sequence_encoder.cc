#include "runtime/data/text/sequence_encoder.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace tfjob::text {

std::string SequenceOptions::Print() const {
  return StrCat("tokens ", tokenizer->fingerprint(), add_special_tokens ? ", special" : "",
                truncate ? ", truncated" : "", end_if_complete ? ", end if complete" : "",
                ", padding ", padding);
}

SequenceEncoder::SequenceEncoder(SequenceOptions options)
    : options_(std::move(options)), encoder_(options_.tokenizer->MakeEncoder()) {}

StatusOr<size_t> SequenceEncoder::Encode(std::string_view text, std::span<int64_t> ids) {
  SpecialTokens special;
  if (options_.add_special_tokens) special = options_.tokenizer->special();
  const size_t before = special.begin ? 1 : 0, after = special.end ? 1 : 0;
  if (ids.size() < before + after) {
    return InvalidArgument("expected a length of at least ", before + after,
                           ", for the special tokens, got ", ids.size());
  }
  const size_t most = ids.size() - before - after;  // maximum for a complete text
  const size_t room = options_.end_if_complete ? most + after : most;
  TokenSink sink(ids.subspan(before, room));
  RETURN_IF_ERROR(encoder_->Encode(text, sink));
  const bool complete = sink.count() <= most;
  if (!complete && !options_.truncate) {
    return InvalidArgument("expected a text of at most ", ids.size(), " tokens",
                           before + after > 0 ? ", including special tokens" : "",
                           ", got more; increase max_length, or set truncate: true");
  }
  size_t count = before + std::min(sink.count(), room);
  if (special.begin) ids[0] = *special.begin;
  if (special.end && (complete || !options_.end_if_complete)) ids[count++] = *special.end;
  std::ranges::fill(ids.subspan(count), options_.padding);
  return count;
}

}  // namespace tfjob::text
