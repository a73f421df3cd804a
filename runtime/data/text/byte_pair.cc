#include "runtime/data/text/byte_pair.h"

#include <span>
#include <string>

#include "runtime/base/fnv1a.h"
#include "runtime/data/text/code_points.h"
#include "runtime/data/text/word_cache.h"
#include "runtime/data/text/word_merger.h"
#include "runtime/data/text/word_pattern.h"

namespace tfjob::text {
namespace {

class BytePairEncoder : public TokenEncoder {
 public:
  BytePairEncoder(const MergeTable& table, bool add_prefix_space)
      : merger_(table), add_prefix_space_(add_prefix_space) {}

  Status Encode(std::string_view text, TokenSink& to) override {
    if (add_prefix_space_ && !text.empty() && !text.starts_with(' ')) {
      spaced_.assign(1, ' ').append(text);
      text = spaced_;
    }
    while (!text.empty() && !to.overflown()) {
      const size_t bytes = FirstPart(Beginning(text));
      for (const int32_t id : TokensOf(text.substr(0, bytes))) to.Add(id);
      text.remove_prefix(bytes);
    }
    return OkStatus();
  }

 private:
  // Returns the first kMostWord bytes of `text`, or slightly fewer, so that no character is split.
  static std::string_view Beginning(std::string_view text) {
    if (text.size() <= BytePairTokenizer::kMostWord) return text;
    size_t end = BytePairTokenizer::kMostWord;
    const auto continues = [&] { return (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80; };
    for (int i = 0; i < 3 && continues(); ++i) --end;  // a character has at most 4 bytes
    return text.substr(0, end);
  }

  // Returns the tokens of a word, which stay valid until the next call.
  std::span<const int32_t> TokensOf(std::string_view word) {
    const std::span<const int32_t> known = cache_.Find(word);
    if (!known.empty()) return known;
    const std::span<const int32_t> tokens = merger_.Merge(Repaired(word));
    cache_.Add(word, tokens);
    return tokens;
  }

  // Returns the word with U+FFFD in place of bytes that are not UTF-8.
  std::string_view Repaired(std::string_view word) {
    repaired_.clear();
    for (std::string_view rest = word; !rest.empty();) {
      const CodePoint next = FirstCodePoint(rest);
      AppendUtf8(next.value, repaired_);
      rest.remove_prefix(next.bytes);
    }
    return repaired_;
  }

  WordMerger merger_;
  WordCache cache_;
  const bool add_prefix_space_;
  std::string repaired_, spaced_;
};

}  // namespace

BytePairTokenizer::BytePairTokenizer(MergeTable table, const BytePairOptions& options)
    : table_(std::move(table)), options_(options) {}

StatusOr<std::shared_ptr<const Tokenizer>> BytePairTokenizer::Read(const BytePairFiles& files) {
  ASSIGN_OR_RETURN(MergeTable table, MergeTable::Read(files));
  BytePairOptions options;
  if (const int32_t end = table.end_of_text(); end >= 0)
    options.special.end = options.special.padding = end;
  return std::make_shared<const BytePairTokenizer>(std::move(table), options);
}

uint64_t BytePairTokenizer::fingerprint() const {
  return Fnv1a()
      .Add(options_.add_prefix_space ? "prefix space" : "")
      .AddWord(table_.fingerprint())
      .AddWord(HashOf(options_.special))
      .hash();
}

std::unique_ptr<TokenEncoder> BytePairTokenizer::MakeEncoder() const {
  return std::make_unique<BytePairEncoder>(table_, options_.add_prefix_space);
}

}  // namespace tfjob::text
