// Tests the ids of terms, and invalid vocabularies.
#include "runtime/data/text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/data/text/test_files.h"
#include "runtime/data/text/text_quote.h"

namespace tfjob::text {
namespace {

using testing::TextFolder;

TEST(Vocabulary, KnownTermsFollowThoseOutOfVocabulary) {
  const auto one = Vocabulary::FromTerms({"red", "green"}, 1, "colours");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(*one->Find("red"), 1);
  EXPECT_EQ(*one->Find("green"), 2);
  EXPECT_EQ(*one->Find("blue"), 0);
  EXPECT_EQ(*one->Find(""), 0);
  EXPECT_EQ(one->size(), 3);
}

TEST(Vocabulary, WithoutAnIdForOthersTheyAreErrors) {
  const auto none = Vocabulary::FromTerms({"red", "green"}, 0, "colours");
  ASSERT_TRUE(none.ok()) << none.status();
  EXPECT_EQ(*none->Find("red"), 0);
  const Status blue = none->Find("blue").status();
  EXPECT_TRUE(absl::IsInvalidArgument(blue));
  EXPECT_THAT(std::string(blue.message()),
              ::testing::HasSubstr("expected a term of the vocabulary colours, got \"blue\""));
}

TEST(Vocabulary, SeveralIdsForOthersAreChosenByAHash) {
  const auto three = Vocabulary::FromTerms({"red"}, 3, "colours");
  ASSERT_TRUE(three.ok()) << three.status();
  EXPECT_EQ(*three->Find("red"), 3);
  // These terms are the example in the documentation of tf.strings.to_hash_bucket_fast.
  const std::vector<std::string> terms = {"Hello", "TensorFlow", "2.x"};
  std::vector<int64_t> ids;
  for (const std::string& term : terms) ids.push_back(*three->Find(term));
  EXPECT_EQ(ids, (std::vector<int64_t>{0, 2, 2}));
}

TEST(Vocabulary, IsReadFromAFile) {
  const TextFolder folder;
  const auto read = Vocabulary::Read(folder.Write("v.txt", "red\r\ngreen\n"), 1);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read->Find("green"), 2);
  const auto listed = Vocabulary::FromTerms({"red", "green"}, 1, "");
  EXPECT_EQ(read->fingerprint(), listed->fingerprint());
  EXPECT_NE(read->fingerprint(), Vocabulary::FromTerms({"green", "red"}, 1, "")->fingerprint());
  EXPECT_NE(read->fingerprint(), Vocabulary::FromTerms({"red", "green"}, 2, "")->fingerprint());
}

TEST(Vocabulary, MessagesQuoteTermsWithoutControlCharacters) {
  EXPECT_EQ(Quote("größe\t\"x\""), "\"größe\\t\\\"x\\\"\"");
  EXPECT_EQ(Quote("a\u009Bm"), "\"a\\xc2\\x9bm\"") << "U+009B begins a command of terminals";
  EXPECT_EQ(Quote("ö\xFF"), "\"\\xc3\\xb6\\xff\"");
  EXPECT_EQ(Quote(std::string(59, 'a') + "ö"), "\"" + std::string(59, 'a') + "…\"");
}

TEST(Vocabulary, RefusesFilesWithTheLine) {
  const TextFolder folder;
  const auto error = [&](std::string_view content) {
    return std::string(Vocabulary::Read(folder.Write("v.txt", content), 1).status().message());
  };
  EXPECT_THAT(error("red\nred\n"), ::testing::HasSubstr("v.txt: line 2: expected each term once"));
  EXPECT_THAT(error("red\n\ngreen"), ::testing::HasSubstr("v.txt: line 2: expected a term"));
  EXPECT_THAT(error("red\n\xC0\n"),
              ::testing::HasSubstr("v.txt: line 2: expected UTF-8, got \"\\xc0\""));
  EXPECT_THAT(error(""), ::testing::HasSubstr("expected one term per line, got an empty file"));
  EXPECT_TRUE(absl::IsNotFound(Vocabulary::Read("/nonexistent/v.txt", 1).status()));
}

}  // namespace
}  // namespace tfjob::text
