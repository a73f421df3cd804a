// Tests string features in JSON lines: texts that are converted to tokens, and terms that are
// converted to ids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/data/jsonl/jsonl.h"
#include "runtime/data/text/byte_tokenizer.h"
#include "runtime/data/tfrecord/test_records.h"

namespace tfjob::data {
namespace {

using testing::Folder;
using Ids = std::vector<int64_t>;

ExampleFeature Text(int64_t length, bool truncate = false) {
  return {.name = "text",
          .dtype = DType::kInt64,
          .shape = {length},
          .tokens = text::SequenceOptions{.tokenizer = std::make_shared<text::ByteTokenizer>(),
                                          .truncate = truncate,
                                          .padding = -1}};
}

ExampleFeature Colours(Shape shape, bool variable, int64_t oov = 1) {
  auto terms = text::Vocabulary::FromTerms({"red", "green"}, oov, "colours");
  return {.name = "colour",
          .dtype = DType::kInt64,
          .shape = std::move(shape),
          .variable = variable,
          .vocabulary = std::make_shared<const text::Vocabulary>(*std::move(terms))};
}

// Reads one feature from all lines.
StatusOr<Ids> ReadLines(std::string_view lines, const ExampleFeature& feature) {
  const Folder folder;
  ASSIGN_OR_RETURN(const std::shared_ptr<const Source> source,
                   OpenJsonLines({.files = {folder.Write("a.jsonl", lines)},
                                  .features = {feature},
                                  .fields = {{"x", feature.name}}}));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<RowReader> reader,
      source->Open({{.name = "x", .array = "x", .dtype = DType::kInt64, .shape = feature.shape}}));
  std::vector<int64_t> dims = feature.shape.dims();
  dims.insert(dims.begin(), source->size());
  std::vector<NamedTensor> tensors = {{"x", Tensor(DType::kInt64, Shape(dims))}};
  Ids rows(static_cast<size_t>(source->size()));
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
  RETURN_IF_ERROR(reader->Read(rows, tensors));
  const auto values = tensors[0].value.data<int64_t>();
  return Ids(values.begin(), values.end());
}

std::string ErrorOf(std::string_view lines, const ExampleFeature& feature) {
  const Status error = ReadLines(lines, feature).status();
  EXPECT_TRUE(absl::IsInvalidArgument(error)) << error;
  return std::string(error.message());
}

TEST(StringFeatures, TextsBecomeTokens) {
  const auto ids = ReadLines("{\"text\": \"ab\"}\n{\"text\": \"\"}\n", Text(3));
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(*ids, (Ids{'a' + 3, 'b' + 3, -1, -1, -1, -1}));
  const auto cut = ReadLines(R"({"text": "abcde"})", Text(3, /*truncate=*/true));
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(*cut, (Ids{'a' + 3, 'b' + 3, 'c' + 3}));
}

TEST(StringFeatures, WrongTextsAreNamed) {
  EXPECT_THAT(ErrorOf("{\"text\": \"a\"}\n{\"text\": \"abcde\"}\n", Text(3)),
              ::testing::HasSubstr("a.jsonl: line 2: feature text: expected a text of at most 3"));
  EXPECT_THAT(ErrorOf(R"({"text": 5})", Text(3)),
              ::testing::HasSubstr("feature text: expected a string, got a number"));
  EXPECT_THAT(ErrorOf(R"({"text": ["a"]})", Text(3)),
              ::testing::HasSubstr("feature text: expected a string, got a list"));
  EXPECT_THAT(ErrorOf(R"({"text": null})", Text(3)),
              ::testing::HasSubstr("feature text: expected a string, but the example does not"));
}

TEST(StringFeatures, TermsBecomeIds) {
  const auto one =
      ReadLines("{\"colour\": \"green\"}\n{\"colour\": \"blue\"}\n", Colours({}, false));
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(*one, (Ids{2, 0}));
  const auto list = ReadLines(R"({"colour": ["red", "green"]})", Colours({3}, true));
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(*list, (Ids{1, 2, 0}));
  const auto grid = ReadLines(R"({"colour": [["red"], ["green"]]})", Colours({2, 1}, false));
  ASSERT_TRUE(grid.ok()) << grid.status();
  EXPECT_EQ(*grid, (Ids{1, 2}));
  ExampleFeature with_default = Colours({}, false);
  with_default.fill = 7;
  const auto missing = ReadLines("{}", with_default);
  ASSERT_TRUE(missing.ok()) << missing.status();
  EXPECT_EQ(*missing, (Ids{7}));
}

TEST(StringFeatures, WrongTermsAreNamed) {
  EXPECT_THAT(ErrorOf("{\"colour\": \"red\"}\n{\"colour\": \"blue\"}\n", Colours({}, false, 0)),
              ::testing::HasSubstr("a.jsonl: line 2: feature colour: expected a term of the "
                                   "vocabulary colours, got \"blue\""));
  EXPECT_THAT(
      ErrorOf(R"({"colour": ["red"]})", Colours({2}, false)),
      ::testing::HasSubstr("feature colour: expected a list of 2 strings, got a list of 1"));
  EXPECT_THAT(ErrorOf(R"({"colour": ["red", "red", "red"]})", Colours({2}, true)),
              ::testing::HasSubstr("expected a list of at most 2 strings, got a list of 3"));
  EXPECT_THAT(ErrorOf(R"({"colour": ["red", 1]})", Colours({2}, true)),
              ::testing::HasSubstr("got a number after 1 string"));
}

}  // namespace
}  // namespace tfjob::data
