// Tests CSV files of numbers: the values are the same in memory and on disk, and errors name the
// file and the line.
#include "runtime/data/csv/csv_numbers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "runtime/data/operators/cache.h"
#include "runtime/data/operators/fields.h"
#include "runtime/data/test_batches.h"
#include "runtime/data/text/test_files.h"

namespace tfjob::data {
namespace {

using ::testing::HasSubstr;
using text::testing::TextFolder;

const StorageOptions kOnDisk{.most_in_memory = 0};

std::string Gzip(const TextFolder& folder, const std::string& content) {
  const std::string path = folder.Write("packed.gz", "");
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
  return path;
}

// Returns rows of three numbers, some of which are quoted or surrounded by white space.
std::string Rows(int64_t count) {
  std::string text;
  for (int64_t i = 0; i < count; ++i) {
    text += StrCat(i, i % 3 == 0 ? " , " : ",", i % 5 == 0 ? "\"0.1\"" : "-1e-3", ",", 0.1 * i,
                   i % 2 == 0 ? "\r\n" : "\n");
  }
  return text;
}

TEST(CsvNumbers, AreTheSameInMemoryAndOnDisk) {
  const TextFolder folder;
  for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (const std::string& header : {std::string(), std::string("\xEF\xBB\xBF\"a\",b,c\n")}) {
      const CsvOptions options{.file = folder.Write("t.csv", header + Rows(97)),
                               .header = !header.empty(),
                               .label_column = "1",
                               .features = dtype};
      const auto memory = OpenCsv(options), disk = OpenCsv(options, kOnDisk);
      ASSERT_TRUE(memory.ok() && disk.ok()) << memory.status() << disk.status();
      EXPECT_TRUE((*memory)->in_memory());
      EXPECT_FALSE((*disk)->in_memory());
      EXPECT_EQ((*disk)->size(), 97);
      for (const bool shuffle : {false, true}) {
        for (const int64_t worker : {0, 1, 2}) {
          const PipelineOptions part{
              .batch_size = 7, .shuffle = shuffle, .worker = worker, .workers = 3};
          EXPECT_EQ(*Batches(*memory, part), *Batches(*disk, part)) << shuffle << worker;
        }
      }
    }
  }
}

TEST(CsvNumbers, AreOnDiskOnlyIfTheFileIsLarge) {
  const TextFolder folder;
  const std::string text = Rows(50), path = folder.Write("t.csv", text);
  const std::string packed = Gzip(folder, text);
  for (const std::string& file : {path, packed}) {
    const CsvOptions options{.file = file, .header = false};
    EXPECT_TRUE((*OpenCsv(options, {.most_in_memory = text.size()}))->in_memory());
    const auto disk = OpenCsv(options, {.most_in_memory = text.size() - 1});
    ASSERT_TRUE(disk.ok()) << disk.status();
    EXPECT_FALSE((*disk)->in_memory());
    EXPECT_EQ(*Batches(*disk), *Batches(*OpenCsv(options)));
    const auto cached = Cache(*disk);
    ASSERT_TRUE(cached.ok()) << cached.status();
    EXPECT_EQ(*Batches(*cached), *Batches(*OpenCsv(options)));
  }
  EXPECT_THAT((*OpenCsv({.file = packed, .header = false}, kOnDisk))->Describe(),
              HasSubstr(StrCat(text.size(), " bytes unpacked into a temporary file")));
}

TEST(CsvNumbers, ContinueAtEveryPosition) {
  const TextFolder folder;
  const CsvOptions options{.file = folder.Write("t.csv", Rows(23)), .header = false};
  const auto source = *OpenCsv(options, kOnDisk);
  const std::vector<double> all = *Batches(source, {.batch_size = 4});
  for (int64_t batch = 0; batch < 6; ++batch) {
    const std::vector<double> rest =
        *Batches(source, {.batch_size = 4, .start = {.epoch = 1, .batch = batch}});
    ASSERT_LT(rest.size(), all.size());
    EXPECT_TRUE(std::equal(rest.rbegin(), rest.rend(), all.rbegin())) << batch;
  }
}

std::string ErrorOf(const std::string& content, CsvOptions options = {}) {
  const TextFolder folder;
  options.file = folder.Write("t.csv", content);
  const auto source = OpenCsv(options, kOnDisk);
  if (!source.ok()) return std::string(Message(source.status()));
  const auto values = Batches(*source, {.batch_size = 2, .shuffle = false});
  return values.ok() ? "accepted" : std::string(Message(values.status()));
}

TEST(CsvNumbers, ErrorsOnDiskNameTheLine) {
  EXPECT_THAT(ErrorOf("a,b\n1,2\n1,x\n"),
              HasSubstr("t.csv: line 3: column 1: expected a finite number, got \"x\""));
  EXPECT_THAT(ErrorOf("a,b\n1,2\n3,4\n1,2,3\n"),
              HasSubstr("t.csv: line 4: expected 2 columns, got 3"));
  EXPECT_THAT(ErrorOf("a,b\n1,2\n\n1,2\n"),
              HasSubstr("t.csv: line 3: expected a row, got a blank line; replace the file"));
  EXPECT_THAT(ErrorOf("a,b\n1e300,2\n"), HasSubstr("t.csv: line 2: expected a finite number"));
  EXPECT_THAT(ErrorOf("a\n1\n"), HasSubstr("t.csv: expected at least two columns"));
  EXPECT_THAT(ErrorOf("a,b\n"), HasSubstr("t.csv: expected at least one intact record"));
  EXPECT_THAT(ErrorOf("a,b\n1,2\n", {.label_column = "c"}), HasSubstr("t.csv: no column \"c\""));
  EXPECT_EQ(ErrorOf("a,b\n1,2\n\n\r\n"), "accepted");
}

TEST(CsvNumbers, FilesMayGrowButNotChange) {
  const TextFolder folder;
  const std::string text = "a,b\n1,2\n3,4\n";
  const CsvOptions options{.file = folder.Write("t.csv", text)};
  const auto source = *OpenCsv(options, kOnDisk);
  std::ofstream(options.file, std::ios::app) << "5,6\n";
  EXPECT_EQ(Batches(source)->size(), 2u * (1 + 4)) << "the rows that the file had";
  folder.Write("t.csv", "a,b\n1,2\n");
  EXPECT_THAT(std::string(Message(Batches(source).status())),
              HasSubstr("t.csv: the file has changed since this task opened it"));
}

TEST(CsvNumbers, DamagedArchivesAreNamed) {
  const TextFolder folder;
  const std::string path = Gzip(folder, Rows(1000));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 3);
  for (const uint64_t most : {uint64_t{0}, kMostInMemory}) {
    const auto source = OpenCsv({.file = path, .header = false}, {.most_in_memory = most});
    EXPECT_THAT(std::string(Message(source.status())), HasSubstr(StrCat(path, ": the ")));
    EXPECT_THAT(std::string(Message(source.status())), HasSubstr("ends early"));
  }
}

}  // namespace
}  // namespace tfjob::data
