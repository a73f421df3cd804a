#include "runtime/data/lines/token_lines.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/data/jsonl/line_format.h"
#include "runtime/data/records/record_source.h"

namespace tfjob::data {
namespace {

// The indices of the features.
constexpr size_t kTokens = 0, kNext = 1, kWeights = 2;

template <typename T>
StatusOr<std::span<T>> TakeValues(ExampleRow& row, size_t feature) {
  ASSIGN_OR_RETURN(const std::span<std::byte> bytes, row.Take(feature));
  return std::span<T>(reinterpret_cast<T*>(bytes.data()), bytes.size() / sizeof(T));
}

class TokenParser : public RecordParser {
 public:
  // The label of each token is the token `shift` positions later.
  TokenParser(const text::SequenceOptions& sequence, int64_t length, size_t shift)
      : encoder_(sequence), shift_(shift), ids_(static_cast<size_t>(length) + shift) {}

  Status Parse(std::string_view line, ExampleRow& row) override {
    if (line.ends_with('\r')) line.remove_suffix(1);
    ASSIGN_OR_RETURN(const size_t count, encoder_.Encode(line, ids_));
    ASSIGN_OR_RETURN(const std::span<int64_t> tokens, TakeValues<int64_t>(row, kTokens));
    ASSIGN_OR_RETURN(const std::span<int64_t> next, TakeValues<int64_t>(row, kNext));
    ASSIGN_OR_RETURN(const std::span<float> weights, TakeValues<float>(row, kWeights));
    std::ranges::copy(std::span(ids_).first(tokens.size()), tokens.begin());
    std::ranges::copy(std::span(ids_).subspan(shift_), next.begin());
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = i + shift_ < count ? 1 : 0;
    return OkStatus();
  }

 private:
  text::SequenceEncoder encoder_;
  const size_t shift_;
  std::vector<int64_t> ids_;  // all tokens of a line
};

class TokenLines : public LineFormat {
 public:
  TokenLines(text::SequenceOptions sequence, int64_t length, size_t shift)
      : sequence_(std::move(sequence)), length_(length), shift_(shift) {}

  std::unique_ptr<RecordParser> MakeParser(const std::vector<ExampleFeature>&) const override {
    return std::make_unique<TokenParser>(sequence_, length_, shift_);
  }

 private:
  std::string_view LineName() const override { return "a line of text"; }
  LineCheck MakeCheck() const override { return nullptr; }  // text is never damaged

  const text::SequenceOptions sequence_;
  const int64_t length_;
  const size_t shift_;
};

}  // namespace

StatusOr<std::shared_ptr<const Source>> OpenTokenLines(const TokenLinesOptions& options) {
  ENFORCE(options.length > 0, "an example has at least one token");
  const Shape shape = {options.length};
  RecordOptions records{.files = options.files,
                        .skip_damaged = options.skip_damaged,
                        .cache_dir = options.cache_dir,
                        .threads = options.threads};
  text::SequenceOptions sequence = options.sequence;
  const bool next = options.labels == TokenLabels::kNextToken;
  sequence.end_if_complete = next;
  // The first feature contains the options of the tokens only because the fingerprint must cover
  // them.
  records.features = {
      {.name = "tokens", .dtype = DType::kInt64, .shape = shape, .tokens = sequence},
      {.name = next ? "next_token" : "same_token", .dtype = DType::kInt64, .shape = shape},
      {.name = "weights", .dtype = DType::kFloat32, .shape = shape}};
  records.fields = {{options.tokens, records.features[kTokens].name},
                    {options.next, records.features[kNext].name},
                    {options.weights, records.features[kWeights].name}};
  return OpenRecords(
      std::make_unique<const TokenLines>(std::move(sequence), options.length, next ? size_t{1} : 0),
      records);
}

}  // namespace tfjob::data
