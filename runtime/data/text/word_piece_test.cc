// Tests WordPiece: the words of a text, their pieces, and invalid vocabularies.
#include "runtime/data/text/word_piece.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/data/text/byte_tokenizer.h"
#include "runtime/data/text/sequence_encoder.h"
#include "runtime/data/text/test_files.h"
#include "runtime/data/text/text_lines.h"

namespace tfjob::text {
namespace {

using Ids = std::vector<int64_t>;
using testing::IdsOf;
using testing::TextFolder;

std::vector<std::string> WordsOf(std::string_view text, BasicOptions options = {}) {
  std::vector<std::string> words;
  BasicTokenizer(options).Split(text, [&](const Word& word) {
    words.push_back(word.too_long ? "(long)" : std::string(word.text));
    return true;
  });
  return words;
}

using Words = std::vector<std::string>;

TEST(BasicTokenizer, SeparatesWordsAndPunctuation) {
  EXPECT_EQ(WordsOf("Hello, World! it's\ta-b\n"),
            (Words{"hello", ",", "world", "!", "it", "'", "s", "a", "-", "b"}));
  EXPECT_EQ(WordsOf("\u00A0x\u3000y\u2028z"), (Words{"x", "y", "z"}));
  EXPECT_EQ(WordsOf(""), Words{});
  EXPECT_EQ(WordsOf(" \n"), Words{});
}

TEST(BasicTokenizer, DropsControlCharactersAndWhatIsNotUtf8) {
  EXPECT_EQ(WordsOf(std::string_view("a\0b\x07"
                                     "c\x7F"
                                     "d",
                                     7)),
            (Words{"abcd"}));
  EXPECT_EQ(WordsOf("a\u200Bb\u00ADc"), (Words{"abc"}));
  EXPECT_EQ(WordsOf("a\xFF"
                    "b\xC3"
                    " c\xE2\x82"),
            (Words{"ab", "c"}));
}

TEST(BasicTokenizer, EveryIdeographIsAWord) {
  EXPECT_EQ(WordsOf("ab漢字c"), (Words{"ab", "漢", "字", "c"}));
  EXPECT_EQ(WordsOf("ひらカ"), (Words{"ひらカ"}));
  EXPECT_EQ(WordsOf("한"), (Words{"\u1112\u1161\u11AB"})) << "syllables are decomposed";
  EXPECT_EQ(WordsOf("\uF900x"), (Words{"豈", "x"})) << "decomposes to U+8C48";
}

TEST(BasicTokenizer, StripsAccentsAndLowersCase) {
  EXPECT_EQ(WordsOf("Éa İ Ñ"), (Words{"ea", "i", "n"}));
  EXPECT_EQ(WordsOf("É İ", {.lower_case = true, .strip_accents = false}), (Words{"é", "i\u0307"}));
  EXPECT_EQ(WordsOf("É", {.lower_case = false, .strip_accents = true}), (Words{"E"}));
  EXPECT_EQ(WordsOf("É", {.lower_case = false, .strip_accents = false}), (Words{"É"}));
  // "≠" decomposes to "=" (punctuation) and a combining mark.
  EXPECT_EQ(WordsOf("a≠b"), (Words{"a", "=", "b"}));
}

TEST(BasicTokenizer, BringsMarksIntoTheCanonicalOrder) {
  // The combining class of U+1B44 is 9, and that of U+302E is 224. Neither is a nonspacing mark.
  EXPECT_EQ(WordsOf("a\u302E\u1B44"), (Words{"a\u1B44\u302E"}));
  EXPECT_EQ(WordsOf("a\u302Eb\u1B44"), (Words{"a\u302Eb\u1B44"}));
  EXPECT_EQ(WordsOf("a\u302E \u1B44"), (Words{"a\u302E", "\u1B44"}));
}

TEST(BasicTokenizer, LongWordsAreMarked) {
  EXPECT_EQ(WordsOf(std::string(100, 'a')), (Words{std::string(100, 'a')}));
  EXPECT_EQ(WordsOf(std::string(101, 'a') + " b"), (Words{"(long)", "b"}));
  std::string marks = "a";
  for (int i = 0; i < 1000; ++i) marks += "\u302E";
  EXPECT_EQ(WordsOf(marks + " b"), (Words{"(long)", "b"}));
}

constexpr char kVocabulary[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\nun\n##aff\n##able\n##a\nrun\n##ning\n,\n";

StatusOr<std::shared_ptr<const Tokenizer>> Read(std::string_view vocabulary) {
  const TextFolder folder;
  return WordPieceTokenizer::Read({.vocabulary = folder.Write("vocab.txt", vocabulary)});
}

TEST(WordPiece, TakesTheLongestPieces) {
  const auto tokenizer = Read(kVocabulary);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  const auto encoder = (*tokenizer)->MakeEncoder();
  EXPECT_EQ(IdsOf(*encoder, "unaffable, Running"), (Ids{4, 5, 6, 10, 8, 9}));
  EXPECT_EQ(IdsOf(*encoder, "una"), (Ids{4, 7}));
  EXPECT_EQ(IdsOf(*encoder, "unx run"), (Ids{1, 8})) << "all of a word is unknown";
  EXPECT_EQ(IdsOf(*encoder, "aff"), (Ids{1})) << "a piece does not begin a word";
  EXPECT_EQ(IdsOf(*encoder, "[SEP]"), (Ids{1, 1, 1})) << "text is never a special token";
  EXPECT_EQ(IdsOf(*encoder, std::string(101, 'u')), (Ids{1}));
  EXPECT_EQ((*tokenizer)->size(), 11);
}

TEST(WordPiece, AcceptsWindowsLinesAndAByteOrderMark) {
  const auto tokenizer = Read("\xEF\xBB\xBF[UNK]\r\nrun\r\n");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(IdsOf(*(*tokenizer)->MakeEncoder(), "run x"), (Ids{1, 0}));
}

TEST(WordPiece, ReadsVocabulariesAsBertDoes) {
  const auto tokenizer = Read("[UNK] \nrun\t\n\na\u3000\nrun\n \n");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(IdsOf(*(*tokenizer)->MakeEncoder(), "run a x"), (Ids{4, 3, 0}))
      << "blank lines count, and the last of equal tokens";
  EXPECT_EQ((*tokenizer)->size(), 6);
  EXPECT_NE((*tokenizer)->fingerprint(), (*Read("[UNK]\na\nrun\n"))->fingerprint());
}

TEST(WordPiece, LeavesOutTokensThatNoWordHas) {
  const auto tokenizer = Read(std::string(1 << 20, 'a') + "\n[UNK]\nb\n");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(IdsOf(*(*tokenizer)->MakeEncoder(), "b a"), (Ids{2, 1}));
  EXPECT_LT(dynamic_cast<const WordPieceTokenizer&>(**tokenizer).bytes(), 200u);
  const std::string longest = std::string(100, 'x');
  const auto both = Read("[UNK]\n" + longest + "\n");
  ASSERT_TRUE(both.ok()) << both.status();
  EXPECT_EQ(IdsOf(*(*both)->MakeEncoder(), longest), (Ids{1}));
}

TEST(WordPiece, RefusesVocabulariesWithTheLine) {
  const auto error = [](std::string_view vocabulary) {
    return std::string(Read(vocabulary).status().message());
  };
  EXPECT_THAT(error("[UNK]\n" + std::string(kMostTokenizerBytes, 'a')),
              ::testing::HasSubstr("vocab.txt: expected a file of at most 33554432 bytes"));
  EXPECT_THAT(error("[UNK]\na\xFF\n"), ::testing::HasSubstr("vocab.txt: line 2: expected UTF-8"));
  EXPECT_THAT(error("a\nb\n"), ::testing::HasSubstr("vocab.txt: expected the token [UNK]"));
  EXPECT_THAT(error(""), ::testing::HasSubstr("expected the token [UNK]"));
}

TEST(WordPiece, FingerprintsCoverTokensAndOptions) {
  const TextFolder folder;
  const std::string path = folder.Write("v", kVocabulary), other = folder.Write("w", "[UNK]\na\n");
  const auto print = [](WordPieceOptions options) {
    return (*WordPieceTokenizer::Read(options))->fingerprint();
  };
  EXPECT_EQ(print({.vocabulary = path}), print({.vocabulary = path}));
  EXPECT_NE(print({.vocabulary = path}), print({.vocabulary = other}));
  EXPECT_NE(print({.vocabulary = path}),
            print({.vocabulary = path, .words = {.lower_case = false}}));
}

TEST(SequenceEncoder, PadsTruncatesAndAddsSpecialTokens) {
  const auto tokenizer = Read(kVocabulary);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  SequenceEncoder plain({.tokenizer = *tokenizer, .padding = -1});
  Ids ids(4);
  EXPECT_EQ(*plain.Encode("run run", ids), 2u);
  EXPECT_EQ(ids, (Ids{8, 8, -1, -1}));
  EXPECT_EQ(*plain.Encode("unaffable run", ids), 4u);
  const StatusOr<size_t> long_text = plain.Encode("unaffable run run", ids);
  EXPECT_TRUE(absl::IsInvalidArgument(long_text.status()));
  EXPECT_THAT(std::string(long_text.status().message()),
              ::testing::HasSubstr("at most 4 tokens, got more"));

  SequenceEncoder special({.tokenizer = *tokenizer, .add_special_tokens = true, .truncate = true});
  EXPECT_EQ(*special.Encode("unaffable run", ids), 4u);
  EXPECT_EQ(ids, (Ids{2, 4, 5, 3}));
  EXPECT_EQ(*special.Encode("", ids), 2u);
  EXPECT_EQ(ids, (Ids{2, 3, 0, 0}));
  EXPECT_FALSE(special.Encode("", std::span(ids).first(1)).ok());

  SequenceEncoder open({.tokenizer = *tokenizer,
                        .add_special_tokens = true,
                        .truncate = true,
                        .end_if_complete = true});
  EXPECT_EQ(*open.Encode("run run", ids), 4u);
  EXPECT_EQ(ids, (Ids{2, 8, 8, 3}));
  EXPECT_EQ(*open.Encode("unaffable run", ids), 4u);
  EXPECT_EQ(ids, (Ids{2, 4, 5, 6})) << "a text that goes on has no end";
}

TEST(ByteTokenizer, EveryByteIsAToken) {
  const ByteTokenizer tokenizer;
  EXPECT_EQ(IdsOf(*tokenizer.MakeEncoder(), "a\xFF"), (Ids{'a' + 3, 0xFF + 3}));
  EXPECT_EQ(tokenizer.special().end, 1);
  EXPECT_EQ(tokenizer.special().begin, std::nullopt);
}

}  // namespace
}  // namespace tfjob::text
