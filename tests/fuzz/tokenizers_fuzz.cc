// Checks the tokenizers with arbitrary texts and vocabularies. The first byte of an input selects
// how the following lines are read: as a vocabulary of WordPiece (v), merges (m), terms (t), a
// tokenizer.json (j), or otherwise as a text.
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/data/text/byte_alphabet.h"
#include "runtime/data/text/byte_pair.h"
#include "runtime/data/text/byte_tokenizer.h"
#include "runtime/data/text/code_points.h"
#include "runtime/data/text/tokenizer_json.h"
#include "runtime/data/text/vocabulary.h"
#include "runtime/data/text/word_piece.h"

namespace tfjob::fuzz {
namespace {

using text::BytePairTokenizer;
using text::TokenEncoder;
using text::Tokenizer;
using text::WordPieceTokenizer;

// Writes the file `name`, which the process overwrites for each input. Returns the path of the
// file.
std::string Write(const char* name, std::string_view content) {
  const std::string path = "/tmp/tfjob_tokenizers_fuzz_" + std::to_string(getpid()) + name;
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string ByteTokens() {
  nlohmann::json vocabulary = {{"ab", 256}, {"abab", 257}, {"Ġa", 258}};
  for (size_t byte = 0; byte < 256; ++byte) {
    std::string token;
    text::AppendUtf8(text::ByteAlphabet()[byte], token);
    vocabulary[token] = byte;
  }
  return vocabulary.dump();
}

std::vector<int64_t> Ids(TokenEncoder& encoder, std::string_view content, size_t most) {
  std::vector<int64_t> ids(most);
  text::TokenSink sink(ids);
  if (!encoder.Encode(content, sink).ok()) return {};
  ids.resize(std::min(sink.count(), most));
  return ids;
}

// Checks that the same text yields the same ids, that all ids are in range, and that a shorter sink
// receives the first ids.
void CheckTokenizer(const Tokenizer& tokenizer, std::string_view content) {
  const auto encoder = tokenizer.MakeEncoder();
  const std::vector<int64_t> ids = Ids(*encoder, content, 1 << 16);
  if (ids.empty()) return;
  for (const int64_t id : ids) ENFORCE(id >= 0 && id < tokenizer.size(), "an id out of range");
  ENFORCE(Ids(*encoder, content, 1 << 16) == ids, "the ids depend on the texts before");
  const std::vector<int64_t> first = Ids(*encoder, content, 3);
  ENFORCE(first.size() <= ids.size() && std::equal(first.begin(), first.end(), ids.begin()),
          "a limit changes the first ids");
}

// Checks that every byte belongs to one character, and that bytes that are not UTF-8 are read as
// U+FFFD.
void CheckCodePoints(std::string_view rest) {
  while (!rest.empty()) {
    const text::CodePoint next = text::FirstCodePoint(rest);
    ENFORCE(next.bytes >= 1 && next.bytes <= rest.size(), "a character outside of the text");
    std::string again;
    text::AppendUtf8(next.value, again);
    ENFORCE(again == rest.substr(0, next.bytes) || next.value == text::kReplacement,
            "another character");
    rest.remove_prefix(next.bytes);
  }
}

void CheckText(std::string_view content) {
  static const auto pieces = *WordPieceTokenizer::Read(
      {.vocabulary = Write(".vocab", "[UNK]\na\n##a\nb\n##b\nab\n##ab\n漢\n,\ne\n")});
  static const auto cased =
      *WordPieceTokenizer::Read({.vocabulary = Write(".vocab", "[UNK]\na\nA\n##A\n"),
                                 .words = {.lower_case = false, .strip_accents = false}});
  static const auto pairs = *BytePairTokenizer::Read(
      {.vocabulary = Write(".json", ByteTokens()), .merges = Write(".m", "a b\nab ab\nĠ a\n")});
  CheckCodePoints(content);
  CheckTokenizer(*pieces, content);
  CheckTokenizer(*cased, content);
  CheckTokenizer(*pairs, content);
  CheckTokenizer(text::ByteTokenizer(), content);
}

void CheckVocabulary(std::string_view content) {
  const auto read = WordPieceTokenizer::Read({.vocabulary = Write(".vocab", content)});
  if (read.ok()) CheckTokenizer(**read, content);
}

void CheckMerges(std::string_view content) {
  static const std::string vocabulary = Write(".json", ByteTokens());
  const auto read =
      BytePairTokenizer::Read({.vocabulary = vocabulary, .merges = Write(".m", content)});
  if (read.ok()) CheckTokenizer(**read, content);
  // Use the same bytes as a vocabulary.
  const auto other =
      BytePairTokenizer::Read({.vocabulary = Write(".other", content), .merges = Write(".m", "")});
  if (other.ok()) CheckTokenizer(**other, content);
}

void CheckTokenizerJson(std::string_view content) {
  const auto read = text::ReadTokenizerJson(Write(".tokenizer.json", content));
  if (!read.ok()) return;
  CheckTokenizer(**read, content);
  const text::SpecialTokens& special = (*read)->special();
  for (const std::optional<int64_t>& id : {special.begin, special.end, special.padding})
    ENFORCE(!id || (*id >= 0 && *id < (*read)->size()), "a special token out of range");
}

void CheckTerms(std::string_view content) {
  const auto read = text::Vocabulary::Read(Write(".terms", content), 2);
  if (!read.ok()) return;
  const auto id = read->Find(content.substr(0, content.find('\n')));
  ENFORCE(id.ok() && *id >= 0 && *id < read->size(), "an id out of range");
}

}  // namespace
}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tfjob::fuzz;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (input.empty()) return 0;
  const std::string_view rest = input.substr(1);
  if (input[0] == 'v') {
    CheckVocabulary(rest);
  } else if (input[0] == 'm') {
    CheckMerges(rest);
  } else if (input[0] == 'j') {
    CheckTokenizerJson(rest);
  } else if (input[0] == 't') {
    CheckTerms(rest);
  } else {
    CheckText(rest);
  }
  return 0;
}
