// Tests byte-level BPE: the parts of a text, merges, the cache, and invalid files.
#include "runtime/data/text/byte_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/base/philox.h"
#include "runtime/data/text/test_files.h"
#include "runtime/data/text/word_cache.h"
#include "runtime/data/text/word_merger.h"
#include "runtime/data/text/word_pattern.h"

namespace tfjob::text {
namespace {

using Ids = std::vector<int64_t>;
using Parts = std::vector<std::string>;
using testing::ByteVocabulary;
using testing::IdsOf;
using testing::TextFolder;

Parts PartsOf(std::string_view text) {
  Parts parts;
  while (!text.empty()) {
    const size_t bytes = FirstPart(text);
    parts.emplace_back(text.substr(0, bytes));
    text.remove_prefix(bytes);
  }
  return parts;
}

TEST(WordPattern, DividesAsTheRegularExpressionDoes) {
  EXPECT_EQ(PartsOf("Hello world"), (Parts{"Hello", " world"}));
  EXPECT_EQ(PartsOf("it's we'll I'D 'x"),
            (Parts{"it", "'s", " we", "'ll", " I", "'", "D", " '", "x"}));
  EXPECT_EQ(PartsOf("abc123 45!? ..."), (Parts{"abc", "123", " 45", "!?", " ..."}));
  EXPECT_EQ(PartsOf("a   b"), (Parts{"a", "  ", " b"}));
  EXPECT_EQ(PartsOf("a \n b"), (Parts{"a", " \n", " b"}));
  EXPECT_EQ(PartsOf("a\nb"), (Parts{"a", "\n", "b"}));
  EXPECT_EQ(PartsOf("a\n\nb"), (Parts{"a", "\n", "\n", "b"}));
  EXPECT_EQ(PartsOf("a  "), (Parts{"a", "  "}));
  EXPECT_EQ(PartsOf(" "), (Parts{" "}));
  EXPECT_EQ(PartsOf("é漢\u0301½٣"), (Parts{"é漢", "\u0301", "½٣"}));
  EXPECT_EQ(PartsOf("a\u00A0b"), (Parts{"a", "\u00A0", "b"}));
}

TEST(WordPattern, ConsumesBytesThatAreNotUtf8) {
  EXPECT_EQ(PartsOf("a\xFF\xE2\x82z"), (Parts{"a", "\xFF\xE2\x82", "z"}));
  EXPECT_EQ(PartsOf("\xC3"), (Parts{"\xC3"}));
}

// The tokens and merges of the tests. ByteVocabulary() adds the single-byte tokens, such as "l" and
// "o". "Ġ" represents a space.
const std::vector<std::string> kTokens = {"lo",   "low", "er",           "lower",
                                          "Ġlow", "ow",  "<|endoftext|>"};
constexpr char kMerges[] = "#version: 0.2\nl o\nlo w\ne r\nlow er\nĠ low\no w\n";

StatusOr<std::shared_ptr<const Tokenizer>> Read(const std::string& vocabulary,
                                                std::string_view merges) {
  const TextFolder folder;
  return BytePairTokenizer::Read({.vocabulary = folder.Write("vocab.json", vocabulary),
                                  .merges = folder.Write("merges.txt", merges)});
}

TEST(BytePair, MergesTheLowestRankFirst) {
  const auto tokenizer = Read(ByteVocabulary(kTokens).dump(), kMerges);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto encoder = (*tokenizer)->MakeEncoder();
  EXPECT_EQ(IdsOf(*encoder, "lower"), (Ids{259}));
  EXPECT_EQ(IdsOf(*encoder, "lowlow"), (Ids{257, 257}));
  EXPECT_EQ(IdsOf(*encoder, "wow"), (Ids{'w', 261}));
  EXPECT_EQ(IdsOf(*encoder, " lower"), (Ids{' ', 259})) << "\"lower\" is merged before \" low\"";
  EXPECT_EQ(IdsOf(*encoder, " low"), (Ids{260}));
  EXPECT_EQ(IdsOf(*encoder, "é"), (Ids{0xC3, 0xA9}));
  EXPECT_EQ(IdsOf(*encoder, "\xFF"), (Ids{0xEF, 0xBF, 0xBD})) << "U+FFFD";
  for (int i = 0; i < 2; ++i)  // the second result comes from the cache
    EXPECT_EQ(IdsOf(*encoder, "lower lower"), (Ids{259, ' ', 259}));
  EXPECT_EQ((*tokenizer)->size(), 263);
  EXPECT_EQ((*tokenizer)->special().end, 262);
}

// Merges a word without a heap, by searching for the lowest rank before each merge.
Ids SlowMerge(const MergeTable& table, std::string_view word) {
  Ids ids;
  for (const char byte : word) ids.push_back(table.IdOf(static_cast<unsigned char>(byte)));
  while (true) {
    const MergeTable::Merge* best = nullptr;
    size_t at = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto* merge =
          table.Find(static_cast<int32_t>(ids[i]), static_cast<int32_t>(ids[i + 1]));
      if (merge != nullptr && (best == nullptr || merge->rank < best->rank)) best = merge, at = i;
    }
    if (best == nullptr) return ids;
    ids[at] = best->id;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(WordMerger, AgreesWithASearchForTheLowestRank) {
  // Draw merges of the letters a, b and c, and of the results of earlier merges.
  PhiloxStream random(7);
  std::vector<std::string> tokens = {"a", "b", "c"}, merged;
  std::string merges;
  while (merged.size() < 60) {
    const std::string left = tokens[random.Next() % tokens.size()];
    const std::string right = tokens[random.Next() % tokens.size()];
    const std::string both = left + right;
    if (both.size() > 12 || std::ranges::find(tokens, both) != tokens.end()) continue;
    tokens.push_back(both);
    merged.push_back(both);
    merges += left + " " + right + "\n";
  }
  const TextFolder folder;
  const auto table =
      MergeTable::Read({.vocabulary = folder.Write("v", ByteVocabulary(merged).dump()),
                        .merges = folder.Write("m", merges)});
  ASSERT_TRUE(table.ok()) << table.status();
  WordMerger merger(*table);
  for (int i = 0; i < 500; ++i) {
    std::string word;
    for (uint64_t n = random.Next() % 80; n > 0; --n)
      word += static_cast<char>('a' + random.Next() % 3);
    const auto got = merger.Merge(word);
    EXPECT_EQ(Ids(got.begin(), got.end()), SlowMerge(*table, word)) << word;
  }
}

TEST(BytePair, DividesWordsThatAreTooLong) {
  const auto tokenizer = Read(ByteVocabulary(kTokens).dump(), kMerges);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto encoder = (*tokenizer)->MakeEncoder();
  const auto tokens_of = [&](std::string_view text) {
    Ids ids(10 * BytePairTokenizer::kMostWord);
    TokenSink sink(ids);
    EXPECT_TRUE(encoder->Encode(text, sink).ok());
    EXPECT_FALSE(sink.overflown());
    ids.resize(sink.count());
    return ids;
  };
  // Place "é", which has the bytes C3 and A9, directly after the first kMostWord bytes, and then
  // across their end. The character must not be split.
  for (const size_t letters : {BytePairTokenizer::kMostWord, BytePairTokenizer::kMostWord - 1}) {
    const Ids ids = tokens_of(std::string(letters, 'a') + "élow");
    ASSERT_EQ(ids.size(), letters + 3);
    EXPECT_EQ(Ids(ids.end() - 3, ids.end()), (Ids{0xC3, 0xA9, 257}));
  }
  const Ids merged = tokens_of(std::string(BytePairTokenizer::kMostWord - 1, 'a') + "low");
  EXPECT_EQ(Ids(merged.end() - 2, merged.end()), (Ids{'l', 261})) << "no merge across the cut";
  EXPECT_EQ(tokens_of(std::string(3 * BytePairTokenizer::kMostWord, '\x80')).size(),
            9 * BytePairTokenizer::kMostWord)
      << "U+FFFD per byte";
}

TEST(BytePair, RefusesFilesWithTheLine) {
  const std::string vocabulary = ByteVocabulary(kTokens).dump();
  const auto error = [](const std::string& tokens, std::string_view merges) {
    return std::string(Read(tokens, merges).status().message());
  };
  EXPECT_THAT(error(vocabulary, "l o\nl x o\n"),
              ::testing::HasSubstr("merges.txt: line 2: expected two tokens"));
  EXPECT_THAT(error(vocabulary, "l o\n\n"),
              ::testing::HasSubstr("merges.txt: line 2: expected two"));
  EXPECT_THAT(error(vocabulary, "l o\nx y\n"),
              ::testing::HasSubstr("merges.txt: line 2: expected tokens of the vocabulary, got "
                                   "\"xy\""));
  EXPECT_THAT(error(vocabulary, "l o\nl o\n"), ::testing::HasSubstr("line 2: expected each merge"));
  EXPECT_THAT(error("[1]", ""), ::testing::HasSubstr("vocab.json: expected an object"));
  EXPECT_THAT(error("{\"a\": 1,}", ""), ::testing::HasSubstr("vocab.json"));
  EXPECT_THAT(error("{\"a\": 0}", ""), ::testing::HasSubstr("expected a token for every byte"));
  EXPECT_THAT(error("{\"a\": -1}", ""),
              ::testing::HasSubstr("vocab.json: token \"a\": expected an id from 0 to"));
  EXPECT_THAT(error("{\"a\": 1, \"b\": 1}", ""),
              ::testing::HasSubstr("expected a different id for each token, got 1"));
}

TEST(WordCache, KeepsShortWordsOnly) {
  WordCache cache;
  const std::vector<int32_t> tokens = {1, 2};
  cache.Add("word", tokens);
  EXPECT_TRUE(std::ranges::equal(cache.Find("word"), tokens));
  EXPECT_TRUE(cache.Find("other").empty());
  cache.Add("", tokens);
  EXPECT_TRUE(cache.Find("").empty());
  const std::string long_word(WordCache::kMostBytes + 1, 'a');
  cache.Add(long_word, tokens);
  EXPECT_TRUE(cache.Find(long_word).empty());
  cache.Add("many", std::vector<int32_t>(WordCache::kMostTokens + 1));
  EXPECT_TRUE(cache.Find("many").empty());
}

}  // namespace
}  // namespace tfjob::text
