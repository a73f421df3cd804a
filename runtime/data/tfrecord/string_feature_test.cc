// Tests features in TFRecord files that are texts or terms.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/data/text/byte_tokenizer.h"
#include "runtime/data/tfrecord/test_records.h"

namespace tfjob::data {
namespace {

using testing::BytesFeature;
using testing::ExampleOf;
using testing::Folder;
using testing::Int64Feature;
using testing::SequenceExampleOf;
using Ids = std::vector<int64_t>;

ExampleFeature Text(int64_t length) {
  const text::SequenceOptions bytes{.tokenizer = std::make_shared<text::ByteTokenizer>()};
  return {.name = "text", .dtype = DType::kInt64, .shape = {length}, .tokens = bytes};
}

ExampleFeature Colours(Shape shape, bool variable) {
  auto terms = text::Vocabulary::FromTerms({"red", "green"}, 0, "colours");
  return {.name = "colour",
          .dtype = DType::kInt64,
          .shape = std::move(shape),
          .variable = variable,
          .vocabulary = std::make_shared<const text::Vocabulary>(*std::move(terms))};
}

// Reads a feature of one example.
StatusOr<Ids> ReadRecord(const std::string& example, const ExampleFeature& feature) {
  const Folder folder;
  std::string content;
  io::AppendRecord(example, content);
  ASSIGN_OR_RETURN(const std::shared_ptr<const Source> source,
                   OpenTfRecords({.files = {folder.Write("a.tfrecord", content)},
                                  .features = {feature},
                                  .fields = {{"x", feature.name}}}));
  ASSIGN_OR_RETURN(
      const std::unique_ptr<RowReader> reader,
      source->Open({{.name = "x", .array = "x", .dtype = DType::kInt64, .shape = feature.shape}}));
  std::vector<int64_t> dims = feature.shape.dims();
  dims.insert(dims.begin(), 1);
  std::vector<NamedTensor> tensors = {{"x", Tensor(DType::kInt64, Shape(dims))}};
  RETURN_IF_ERROR(reader->Read(Ids{0}, tensors));
  const auto values = tensors[0].value.data<int64_t>();
  return Ids(values.begin(), values.end());
}

std::string ErrorOf(const std::string& example, const ExampleFeature& feature) {
  const Status error = ReadRecord(example, feature).status();
  EXPECT_TRUE(absl::IsInvalidArgument(error)) << error;
  return std::string(error.message());
}

TEST(StringFeatures, BecomeIds) {
  const auto tokens = ReadRecord(ExampleOf({{"text", BytesFeature({"a\xFF"})}}), Text(3));
  ASSERT_TRUE(tokens.ok()) << tokens.status();
  EXPECT_EQ(*tokens, (Ids{'a' + 3, 0xFF + 3, 0}));
  const auto terms =
      ReadRecord(ExampleOf({{"colour", BytesFeature({"green", "red"})}}), Colours({3}, true));
  ASSERT_TRUE(terms.ok()) << terms.status();
  EXPECT_EQ(*terms, (Ids{1, 0, 0}));
}

TEST(StringFeatures, AreCheckedWithTheRecord) {
  EXPECT_THAT(ErrorOf(ExampleOf({{"text", BytesFeature({"a", "b"})}}), Text(3)),
              ::testing::HasSubstr("a.tfrecord: record at byte 0: feature text: expected one "
                                   "string, got 2"));
  EXPECT_THAT(ErrorOf(ExampleOf({{"text", Int64Feature({1})}}), Text(3)),
              ::testing::HasSubstr("expected one string in a bytes_list, got an int64_list"));
  EXPECT_THAT(
      ErrorOf(SequenceExampleOf({}, {{"colour", {BytesFeature({"red"})}}}), Colours({3}, true)),
      ::testing::HasSubstr("got a list of steps; lists of steps are supported for numbers and "
                           "decode_raw only"));
  EXPECT_THAT(ErrorOf(ExampleOf({{"text", BytesFeature({"abcd"})}}), Text(3)),
              ::testing::HasSubstr("expected a text of at most 3 tokens, got more"));
  EXPECT_THAT(ErrorOf(ExampleOf({{"colour", BytesFeature({"blue"})}}), Colours({}, false)),
              ::testing::HasSubstr("feature colour: expected a term of the vocabulary colours"));
  EXPECT_THAT(ErrorOf(ExampleOf({{"colour", BytesFeature({})}}), Colours({}, false)),
              ::testing::HasSubstr("feature colour: expected 1 string, got 0"));
  EXPECT_THAT(ErrorOf(ExampleOf({}), Colours({2}, false)),
              ::testing::HasSubstr("expected 2 strings in a bytes_list, but the example does not"));
}

}  // namespace
}  // namespace tfjob::data
