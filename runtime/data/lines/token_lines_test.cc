// Tests lines of text as examples for language models.
#include "runtime/data/lines/token_lines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/data/pipeline.h"
#include "runtime/data/text/byte_tokenizer.h"
#include "runtime/data/text/test_files.h"

namespace tfjob::data {
namespace {

using Ids = std::vector<int64_t>;
using text::testing::TextFolder;

TokenLinesOptions BytesOf(const std::string& path, int64_t length, bool truncate = false) {
  return {.files = {path},
          .sequence = {.tokenizer = std::make_shared<const text::ByteTokenizer>(),
                       .truncate = truncate},
          .length = length};
}

struct Rows {
  Ids tokens, next;
  std::vector<float> weights;
};

StatusOr<Rows> ReadRows(const Source& source, const std::vector<int64_t>& rows) {
  const auto column = [&](const char* name, DType dtype) {
    return Column{.name = name, .array = name, .dtype = dtype, .shape = source.Find(name)->shape};
  };
  const std::vector<Column> columns = {column("tokens", DType::kInt64),
                                       column("next", DType::kInt64),
                                       column("weights", DType::kFloat32)};
  ASSIGN_OR_RETURN(const std::unique_ptr<RowReader> reader, source.Open(columns));
  std::vector<NamedTensor> tensors;
  for (const Column& of : columns) {
    const auto count = static_cast<int64_t>(rows.size());
    tensors.push_back({of.name, Tensor(of.dtype, Shape({count, of.shape.dim(0)}))});
  }
  RETURN_IF_ERROR(reader->Read(rows, tensors));
  const auto ids = [&](size_t i) {
    const auto values = tensors[i].value.data<int64_t>();
    return Ids(values.begin(), values.end());
  };
  const auto weights = tensors[2].value.data<float>();
  return Rows{ids(0), ids(1), {weights.begin(), weights.end()}};
}

int64_t Byte(char c) {
  return text::ByteTokenizer::kFirstByte + c;
}

TEST(TokenLines, TheLabelsAreTheNextTokens) {
  const TextFolder folder;
  const auto source = OpenTokenLines(BytesOf(folder.Write("a.txt", "abcd\n\nxy\r\nz"), 3));
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->size(), 3) << "the blank line is no example";
  const auto rows = ReadRows(**source, {0, 1, 2});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->tokens, (Ids{Byte('a'), Byte('b'), Byte('c'),  //
                               Byte('x'), Byte('y'), 0,          //
                               Byte('z'), 0, 0}));
  EXPECT_EQ(rows->next, (Ids{Byte('b'), Byte('c'), Byte('d'),  //
                             Byte('y'), 0, 0,                  //
                             0, 0, 0}));
  EXPECT_EQ(rows->weights, (std::vector<float>{1, 1, 1, 1, 0, 0, 0, 0, 0}));
}

TEST(TokenLines, LinesThatAreTooLongAreNamedOrTruncated) {
  const TextFolder folder;
  const std::string path = folder.Write("a.txt", "abc\nabcde\n");
  const auto strict = OpenTokenLines(BytesOf(path, 3));
  ASSERT_TRUE(strict.ok()) << strict.status();
  const Status error = ReadRows(**strict, {1}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(error));
  EXPECT_THAT(std::string(error.message()),
              ::testing::HasSubstr("a.txt: line 2: expected a text of at most 4 tokens, got more"));
  const auto cut = OpenTokenLines(BytesOf(path, 3, /*truncate=*/true));
  ASSERT_TRUE(cut.ok()) << cut.status();
  const auto rows = ReadRows(**cut, {1});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->next, (Ids{Byte('b'), Byte('c'), Byte('d')}));
  EXPECT_NE((*strict)->fingerprint(), (*cut)->fingerprint());
}

TEST(TokenLines, SpecialTokensAreLearnt) {
  const TextFolder folder;
  TokenLinesOptions options = BytesOf(folder.Write("a.txt", "ab\n"), 4);
  options.sequence.add_special_tokens = true;
  const auto source = OpenTokenLines(options);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto rows = ReadRows(**source, {0});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->next, (Ids{Byte('b'), 1, 0, 0}));
  EXPECT_EQ(rows->weights, (std::vector<float>{1, 1, 0, 0}));
}

TEST(TokenLines, LinesThatAreTruncatedHaveNoEnd) {
  const TextFolder folder;
  TokenLinesOptions options = BytesOf(folder.Write("a.txt", "abc\nabcd\nabcde\n"), 3, true);
  options.sequence.add_special_tokens = true;
  const auto source = OpenTokenLines(options);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto rows = ReadRows(**source, {0, 1, 2});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->next, (Ids{Byte('b'), Byte('c'), 1,  // complete
                             Byte('b'), Byte('c'), Byte('d'), Byte('b'), Byte('c'), Byte('d')}));
  EXPECT_EQ(rows->weights, std::vector<float>(9, 1));
}

TEST(TokenLines, TheLabelsMayBeTheSameTokens) {
  const TextFolder folder;
  TokenLinesOptions options = BytesOf(folder.Write("a.txt", "abc\nx\n"), 3);
  const auto next = OpenTokenLines(options);
  options.labels = TokenLabels::kSameToken;
  const auto source = OpenTokenLines(options);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto rows = ReadRows(**source, {0, 1});
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->tokens, (Ids{Byte('a'), Byte('b'), Byte('c'), Byte('x'), 0, 0}));
  EXPECT_EQ(rows->next, rows->tokens);
  EXPECT_EQ(rows->weights, (std::vector<float>{1, 1, 1, 1, 0, 0}));
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_NE((*source)->fingerprint(), (*next)->fingerprint());
}

TEST(TokenLines, EmptyFilesAreErrorsUnlessDamageIsSkipped) {
  const TextFolder folder;
  const std::string empty = folder.Write("empty.txt", "");
  TokenLinesOptions options = BytesOf(empty, 3);
  EXPECT_THAT(
      std::string(OpenTokenLines(options).status().message()),
      ::testing::HasSubstr("empty.txt: line 1: the file is empty; expected a line of text"));
  options.files.push_back(folder.Write("b.txt", "b\n"));
  options.skip_damaged = true;
  const auto source = OpenTokenLines(options);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->size(), 1);
}

}  // namespace
}  // namespace tfjob::data
