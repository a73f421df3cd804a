// Tests sources of texts in a folder with a subfolder per class.
#include "runtime/data/texts/text_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "runtime/data/pipeline.h"
#include "runtime/data/text/byte_tokenizer.h"

namespace tfjob::data {
namespace {

using Ids = std::vector<int64_t>;

class Texts : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove_all(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, std::string_view content) const {
    const std::filesystem::path file = folder_ + "/" + name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << content;
  }
  TextFolderOptions Options(int64_t length = 4) const {
    return {.folder = folder_,
            .sequence = {.tokenizer = std::make_shared<const text::ByteTokenizer>()},
            .length = length,
            .threads = 2};
  }
  static std::vector<Column> Columns(int64_t length = 4) {
    return {{.name = "x", .array = kFeaturesArray, .dtype = DType::kInt64, .shape = {length}},
            {.name = "y", .array = kLabelsArray, .dtype = DType::kInt64}};
  }
  std::string Error(const TextFolderOptions& options) const {
    return std::string(Message(OpenTexts(options).status()));
  }

  const std::string folder_ = testing::TempDir() + "text_source_test_" +
                              testing::UnitTest::GetInstance()->current_test_info()->name();
};

struct Rows {
  Ids tokens, labels;
};

StatusOr<Rows> ReadAll(const Source& source) {
  ASSIGN_OR_RETURN(const auto reader,
                   source.Open({{.name = "x",
                                 .array = kFeaturesArray,
                                 .dtype = DType::kInt64,
                                 .shape = source.fields()[0].shape},
                                {.name = "y", .array = kLabelsArray, .dtype = DType::kInt64}}));
  Ids rows;
  for (int64_t i = 0; i < source.size(); ++i) rows.push_back(i);
  const int64_t length = source.fields()[0].shape.dim(0);
  std::vector<NamedTensor> tensors = {{"x", Tensor(DType::kInt64, {source.size(), length})},
                                      {"y", Tensor(DType::kInt64, {source.size()})}};
  RETURN_IF_ERROR(reader->Read(rows, tensors));
  const auto ids = [&](size_t i) {
    const auto values = tensors[i].value.data<int64_t>();
    return Ids(values.begin(), values.end());
  };
  return Rows{ids(0), ids(1)};
}

int64_t Byte(char c) {
  return text::ByteTokenizer::kFirstByte + c;
}

TEST_F(Texts, AFileIsAnExampleOfItsClass) {
  Write("good/b.txt", "xy\n");
  Write("good/a.txt", "z");
  Write("bad/deep/c.txt", "");
  Write("bad/.hidden", "h");
  const auto source = OpenTexts(Options());
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->size(), 3);
  const auto rows = ReadAll(**source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->tokens, (Ids{0, 0, 0, 0,          // bad/deep/c.txt
                               Byte('z'), 0, 0, 0,  // good/a.txt
                               Byte('x'), Byte('y'), Byte('\n'), 0}));
  EXPECT_EQ(rows->labels, (Ids{0, 1, 1}));
  EXPECT_THAT((*source)->Describe(),
              ::testing::HasSubstr("texts of 2 classes, 4 bytes, read when"));
}

TEST_F(Texts, TheListOfClassesGivesTheirNumbers) {
  Write("good/a.txt", "z");
  Write("bad/b.txt", "y");
  Write("other/c.txt", "x");
  TextFolderOptions options = Options();
  options.classes = {"good", "bad"};
  const auto source = OpenTexts(options);
  ASSERT_TRUE(source.ok()) << source.status();
  const auto rows = ReadAll(**source);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->labels, (Ids{0, 1}));
  EXPECT_EQ(rows->tokens[0], Byte('z'));
}

TEST_F(Texts, FilesThatAreNotUtf8AreNamedOrLeftOut) {
  Write("a/1.txt", "ok");
  Write("a/2.txt", "\xff\xfe");
  Write("b/3.txt", "ok");
  const auto strict = OpenTexts(Options());
  ASSERT_TRUE(strict.ok()) << strict.status();
  const Status error = ReadAll(**strict).status();
  EXPECT_TRUE(absl::IsDataLoss(error)) << error;
  EXPECT_EQ(Message(error), StrCat(folder_, "/a/2.txt: expected text in UTF-8, got other bytes; ",
                                   "convert or remove the file, or set on_damaged: skip to leave ",
                                   "out what is damaged"));
  TextFolderOptions options = Options();
  options.skip_damaged = true;
  const auto source = OpenTexts(options);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->size(), 2);
  EXPECT_EQ((*source)->LeftOut(), StrCat("1 file is left out of the data, because they are not ",
                                         "text in UTF-8; the first: ", folder_, "/a/2.txt"));
  EXPECT_NE((*source)->fingerprint(), (*strict)->fingerprint());
  Write("a/1.txt", "\xff");
  Write("b/3.txt", "\xff");
  EXPECT_THAT(Error(options), ::testing::HasSubstr("none of the 3 files is text in UTF-8"));
}

TEST_F(Texts, LongTextsAndFilesAreNamed) {
  Write("a/1.txt", "abcde");
  const auto source = OpenTexts(Options());
  ASSERT_TRUE(source.ok()) << source.status();
  const Status error = ReadAll(**source).status();
  EXPECT_TRUE(absl::IsInvalidArgument(error)) << error;
  EXPECT_THAT(std::string(Message(error)),
              ::testing::StartsWith(folder_ + "/a/1.txt: expected a text of at most 4 tokens"));
  TextFolderOptions options = Options();
  options.sequence.truncate = true;
  EXPECT_TRUE(ReadAll(**OpenTexts(options)).ok());
  std::filesystem::resize_file(folder_ + "/a/1.txt", kMostTextBytes + 1);
  EXPECT_THAT(Error(options), ::testing::HasSubstr("a/1.txt: expected a file of at most 67108864"));
}

TEST_F(Texts, FilesThatChangeAreNamed) {
  Write("a/1.txt", "ab");
  const auto source = OpenTexts(Options());
  ASSERT_TRUE(source.ok()) << source.status();
  Write("a/1.txt", "abc");
  EXPECT_TRUE(absl::IsFailedPrecondition(ReadAll(**source).status()));
}

TEST_F(Texts, EmptyFoldersAreNamed) {
  std::filesystem::create_directories(folder_);
  EXPECT_EQ(Error(Options()), folder_ +
                                  ": expected a folder for each class, with the texts of the "
                                  "class, but there are no folders");
}

TEST_F(Texts, AreShuffledByThePipeline) {
  for (int i = 0; i < 30; ++i)
    Write(StrCat(i % 2 == 0 ? "even/" : "odd/", i), std::string(1, static_cast<char>('0' + i)));
  const auto source = OpenTexts(Options());
  ASSERT_TRUE(source.ok()) << source.status();
  const auto pipeline =
      Pipeline::Create(*source, {.batch_size = 7, .epochs = 1, .columns = Columns()});
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  Ids seen;
  while (const Batch* batch = (*pipeline)->Next()) {
    const auto tokens = batch->Find("x")->data<int64_t>();
    for (size_t i = 0; i < static_cast<size_t>(batch->size()); ++i) {
      seen.push_back(tokens[4 * i] - Byte('0'));
      EXPECT_EQ(batch->Find("y")->data<int64_t>()[i], seen.back() % 2);
    }
  }
  EXPECT_TRUE((*pipeline)->status().ok());
  std::ranges::sort(seen);
  Ids numbers;
  for (int64_t i = 0; i < 30; ++i) numbers.push_back(i);
  EXPECT_EQ(seen, numbers);
}

}  // namespace
}  // namespace tfjob::data
