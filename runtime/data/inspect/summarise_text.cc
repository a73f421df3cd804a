// Summarises lines of text and, if there is a tokenizer, their tokens. Does not count lines that
// are not UTF-8 as damage, because training replaces the invalid bytes.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/data/inspect/summarise_records.h"
#include "runtime/data/jsonl/line_format.h"

namespace tfjob::data {
namespace {

// The format of plain text, in which any line is intact.
class PlainLines : public LineFormat {
 public:
  std::unique_ptr<RecordParser> MakeParser(const std::vector<ExampleFeature>&) const override {
    return nullptr;  // summaries do not parse examples
  }

 private:
  std::string_view LineName() const override { return "a line of text"; }
  LineCheck MakeCheck() const override { return nullptr; }
};

class LineSummary {
 public:
  explicit LineSummary(const SummaryOptions& options)
      : options_(options),
        encoder_(options.tokenizer == nullptr ? nullptr : options.tokenizer->MakeEncoder()) {}

  Status Add(std::string_view line, FileSummary& summary, std::vector<std::string>* values) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (FieldSummary* field = summary.Field("line", IsUtf8(line) ? "text" : "not UTF-8")) {
      ++field->examples;
      field->bytes.Add(static_cast<int64_t>(line.size()));
    }
    if (values != nullptr) values->push_back(NamedText("line", ValueText(line)));
    return encoder_ == nullptr ? OkStatus() : AddTokens(line, summary, values);
  }

 private:
  Status AddTokens(std::string_view line, FileSummary& summary, std::vector<std::string>* values) {
    ids_.resize(std::max(ids_.size(), 3 * line.size() + 1));  // U+FFFD has three bytes
    text::TokenSink sink(ids_);
    RETURN_IF_ERROR(encoder_->Encode(line, sink));
    const std::span<const int64_t> ids = std::span(ids_).first(std::min(sink.count(), ids_.size()));
    const auto count = static_cast<int64_t>(ids.size());
    AddCount("tokens", "ids", count, summary);
    if (options_.most_tokens > 0 && count > options_.most_tokens)
      AddCount("tokens", StrCat("more than ", options_.most_tokens), count, summary);
    const std::optional<int64_t> unknown = options_.tokenizer->special().unknown;
    const int64_t unknowns = unknown ? std::ranges::count(ids, *unknown) : 0;
    if (unknowns > 0) AddCount("tokens", "unknown", unknowns, summary);
    if (values == nullptr) return OkStatus();
    std::vector<std::string> first;
    for (const int64_t id : ids.first(std::min<size_t>(ids.size(), kMostValues)))
      first.push_back(StrCat(id));
    values->push_back(NamedText("tokens", ListText(first, count)));
    return OkStatus();
  }

  // Adds the number of tokens in a line to the field of this name and kind.
  static void AddCount(std::string_view name, std::string_view kind, int64_t count,
                       FileSummary& summary) {
    FieldSummary* const field = summary.Field(name, kind);
    if (field == nullptr) return;
    ++field->examples;
    field->values.Add(count);
    field->total += count;
  }

  const SummaryOptions& options_;
  const std::unique_ptr<text::TokenEncoder> encoder_;  // null: lines are not split into tokens
  std::vector<int64_t> ids_;
};

}  // namespace

StatusOr<FileSummary> SummariseText(const std::string& path, const SummaryOptions& options,
                                    const StopSource& stop) {
  LineSummary lines(options);
  return SummariseRecords(
      path, "text", PlainLines(), options, stop,
      [&](std::string_view record, FileSummary& summary, std::vector<std::string>* values) {
        return lines.Add(record, summary, values);
      });
}

}  // namespace tfjob::data
