#include "runtime/data/dataset.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <fstream>

namespace tfjob::data {
namespace {

std::string InTemp(const std::string& name) {
  return testing::TempDir() + "/" + name;
}

std::string Write(const std::string& name, const std::string& content) {
  const std::string path = InTemp(name);
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string Gzip(const std::string& content) {
  const std::string path = InTemp("gzip.gz");
  gzFile file = gzopen(path.c_str(), "wb");
  gzwrite(file, content.data(), static_cast<unsigned>(content.size()));
  gzclose(file);
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string Word(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16),
          static_cast<char>(value >> 8), static_cast<char>(value)};
}

// Images returns an IDX file of three images of 2 × 2 pixels, with the values 0, 1, 2, …. Labels
// returns an IDX file of their labels.
std::string Images() {
  std::string text = Word(0x803) + Word(3) + Word(2) + Word(2);
  for (char i = 0; i < 12; ++i) text += i;
  return text;
}
std::string Labels() {
  return Word(0x801) + Word(3) + std::string("\x05\x00\x09", 3);
}

std::string IdxError(const std::string& images, const std::string& labels) {
  const StatusOr<Dataset> dataset = LoadIdx({Write("images", images), Write("labels", labels)});
  return dataset.ok() ? "accepted" : std::string(Message(dataset.status()));
}

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
#define EXPECT_HAS(text, part) EXPECT_TRUE(Has(text, part)) << text

TEST(Idx, ReadsPlainAndCompressedFilesAlike) {
  for (const auto& [images, labels] :
       {std::pair(Images(), Labels()), std::pair(Gzip(Images()), Gzip(Labels()))}) {
    const StatusOr<Dataset> dataset = LoadIdx({Write("images", images), Write("labels", labels)});
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_EQ(dataset->size(), 3);
    EXPECT_EQ(dataset->arrays[0].example_shape(), Shape({2, 2}));
    EXPECT_EQ(dataset->arrays[0].values.shape(), Shape({3, 2, 2}));
    EXPECT_EQ(dataset->arrays[0].values.data<uint8_t>()[11], 11);
    EXPECT_EQ(dataset->arrays[1].values.data<uint8_t>()[0], 5);
    EXPECT_EQ(dataset->arrays[1].values.data<uint8_t>()[2], 9);
  }
}

TEST(Idx, ReadsFashionMnist) {
  const std::string folder = "/usr/share/datasets/fashion-mnist/";
  if (!std::ifstream(folder + "t10k-images-idx3-ubyte.gz"))
    GTEST_SKIP() << "the package dataset-fashion-mnist is absent";
  const StatusOr<Dataset> dataset =
      LoadIdx({folder + "t10k-images-idx3-ubyte.gz", folder + "t10k-labels-idx1-ubyte.gz"});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->arrays[0].values.shape(), Shape({10000, 28, 28}));
}

TEST(Idx, RefusesTruncatedGzip) {
  const std::string whole = Gzip(Images());
  for (size_t size : {whole.size() - 1, whole.size() - 9, whole.size() / 2, size_t{12}}) {
    EXPECT_HAS(IdxError(whole.substr(0, size), Labels()),
               "images: the gzip data ends early: the file is truncated");
  }
}

TEST(Idx, RefusesDamagedGzip) {
  std::string damaged = Gzip(Images());
  damaged[damaged.size() - 6] ^= 1;  // the checksum
  EXPECT_HAS(IdxError(damaged, Labels()), "images: damaged gzip data: ");
}

TEST(Idx, RefusesAWrongMagic) {
  EXPECT_HAS(IdxError("PNG!" + Images(), Labels()),
             "images: not an IDX file: expected the magic 0000 08");
  EXPECT_HAS(IdxError(Word(0xd03) + Images(), Labels()),
             "images: IDX type 0d is not supported; expected 08");
  EXPECT_HAS(IdxError(Images(), Word(0x800)), "labels: not an IDX file");
  EXPECT_HAS(IdxError(Labels(), Labels()), "images: expected images of rank 2 or more");
  EXPECT_HAS(IdxError(Images(), Images()),
             "labels: expected labels of rank 1 (magic 00000801), got shape [3,2,2]");
}

TEST(Idx, RefusesZeroRowsAndEmptyFiles) {
  EXPECT_HAS(IdxError(Word(0x803) + Word(0) + Word(2) + Word(2), Labels()),
             "images: the file has zero rows");
  EXPECT_HAS(IdxError(Images(), Word(0x801) + Word(0)), "labels: the file has zero rows");
  EXPECT_HAS(IdxError(Word(0x803) + Word(3) + Word(0) + Word(2), Labels()),
             "images: rows of shape [3,0,2] are empty");
  EXPECT_HAS(IdxError("", Labels()),
             "images: expected 4 bytes of IDX magic, the file ends after 0");
}

TEST(Idx, RefusesFilesThatAreShorterOrLongerThanTheirHeader) {
  EXPECT_HAS(IdxError(Images().substr(0, 20), Labels()),
             "images: expected 12 bytes of data of shape [3,2,2], the file ends after 4");
  EXPECT_HAS(IdxError(Images() + "x", Labels()),
             "images: expected the end of the file after data of shape [3,2,2]");
  EXPECT_HAS(IdxError(Word(0x803) + Word(~0u) + Word(~0u) + Word(~0u), Labels()),
             "more than the file can hold");
}

TEST(Idx, RefusesImagesAndLabelsOfDifferentCounts) {
  const std::string error = IdxError(Images(), Word(0x801) + Word(2) + "ab");
  EXPECT_HAS(error, "images has 3 rows, but ");
  EXPECT_HAS(error, "labels has 2; expected as many labels as images");
}

TEST(Idx, RefusesMissingFilesAndFolders) {
  EXPECT_HAS(std::string(Message(LoadIdx({"/no/such/file", "x"}).status())), "/no/such/file");
  EXPECT_HAS(std::string(Message(LoadIdx({testing::TempDir(), "x"}).status())),
             "expected a file, got a folder");
}

StatusOr<Dataset> Csv(const std::string& content, CsvOptions options = {}) {
  options.file = Write("table.csv", content);
  return LoadCsv(options);
}
std::string CsvError(const std::string& content, CsvOptions options = {}) {
  const StatusOr<Dataset> dataset = Csv(content, options);
  return dataset.ok() ? "accepted" : std::string(Message(dataset.status()));
}

TEST(Csv, ReadsFeaturesAndLabels) {
  const StatusOr<Dataset> dataset = Csv("a,b,label\r\n1,2.5,3\n -4 ,5e1,+6\n");
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->arrays[0].values.shape(), Shape({2, 2}));
  EXPECT_EQ(dataset->arrays[0].values.data<float>()[1], 2.5f);
  EXPECT_EQ(dataset->arrays[0].values.data<float>()[2], -4.0f);
  EXPECT_EQ(dataset->arrays[0].values.data<float>()[3], 50.0f);
  EXPECT_EQ(dataset->arrays[1].values.data<double>()[0], 3);
  EXPECT_EQ(dataset->arrays[1].values.data<double>()[1], 6);
  EXPECT_EQ(dataset->first_row, 2);
}

TEST(Csv, IgnoresAByteOrderMark) {
  const StatusOr<Dataset> dataset =
      Csv("\xEF\xBB\xBF"
          "1,2\n3,4\n",
          {.header = false});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->arrays[0].values.data<float>()[0], 1);
  EXPECT_TRUE(Csv("\xEF\xBB\xBFlabel,b\n1,2\n", {.label_column = "label"}).ok());
}

TEST(Csv, FindsTheLabelByNameAndIndex) {
  const std::string text = "\"x\";\"y\";\"z\"\n1;2;3\n";
  for (const auto& [column, expected] :
       {std::pair("x", 1), {"1", 2}, {"-1", 3}, {"-3", 1}, {"", 3}}) {
    const StatusOr<Dataset> dataset = Csv(text, {.label_column = column, .delimiter = ';'});
    ASSERT_TRUE(dataset.ok()) << dataset.status();
    EXPECT_EQ(dataset->arrays[1].values.data<double>()[0], expected) << column;
  }
  EXPECT_HAS(CsvError("aa,bb\n1,2\n", {.label_column = "ab"}),
             "no column \"ab\"; did you mean \"aa\"?");
  EXPECT_HAS(CsvError("1,2\n", {.header = false, .label_column = "ab"}),
             "no column \"ab\"; the file has no header");
  EXPECT_HAS(CsvError("1,2\n", {.header = false, .label_column = "2"}),
             "expected an index from -2 to 1");
}

TEST(Csv, NamesTheLineAndColumnOfBadValues) {
  EXPECT_HAS(CsvError("a,b\n1,2\n1,x\n"),
             "table.csv: line 3, column 1: expected a finite number, got \"x\"");
  EXPECT_HAS(CsvError("a,b\n1,nan\n"), "line 2, column 1: expected a finite number, got \"nan\"");
  for (const std::string text : {"+-5", "++5", "-+5", "--5", "+", "-"}) {
    EXPECT_HAS(CsvError("a,b\n1," + text + "\n"),
               "line 2, column 1: expected a finite number, got \"" + text + "\"");
  }
  EXPECT_HAS(CsvError("a,b\n1,2,3\n"), "table.csv: line 2: expected 2 columns, got 3");
  EXPECT_HAS(CsvError("a,b\n1,2\n\n1,2\n"), "line 3: expected 2 columns, got 1");
  EXPECT_HAS(CsvError("a\n1\n"), "expected at least two columns");
}

TEST(Csv, RefusesZeroRows) {
  EXPECT_HAS(CsvError("a,b\n"), "table.csv: the file has zero rows after its header");
  EXPECT_HAS(CsvError("", {.header = false}), "table.csv: the file has zero rows;");
}

TEST(Csv, ReadsGzipAndRefusesTruncated) {
  EXPECT_TRUE(Csv(Gzip("a,b\n1,2\n")).ok());
  const std::string whole = Gzip("a,b\n1,2\n");
  EXPECT_HAS(CsvError(whole.substr(0, whole.size() - 3)), "the gzip data ends early");
}

TEST(Csv, BoundsWhatACompressedFileUnpacksTo) {
  const std::string row = std::string(1000, '0') + ",0\n";
  std::string rows = "a,b\n";
  while (rows.size() < (65u << 20)) rows += row;
  const std::string bomb = Gzip(rows);
  ASSERT_LT(bomb.size(), rows.size() / 300);
  EXPECT_HAS(CsvError(bomb),
             "table.csv: the gzip data unpacks to more than 67108864 bytes, 100 "
             "times its size; if it is meant to, unpack the file (gunzip)");
  rows.resize((60 << 20) / row.size() * row.size() + 4);
  EXPECT_TRUE(Csv(Gzip(rows)).ok());
}

TEST(Linear, FollowsTheLineWithNoise) {
  const StatusOr<Dataset> dataset = MakeLinear({.seed = 1});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  EXPECT_EQ(dataset->arrays[0].values.shape(), Shape({100, 1}));
  auto x = dataset->arrays[0].values.data<float>();
  auto y = dataset->arrays[1].values.data<double>();
  EXPECT_EQ(x[0], -1);
  EXPECT_EQ(x[99], 1);
  double sum = 0, square = 0;
  for (size_t i = 0; i < 100; ++i) {
    const double noise = y[i] - (2 * x[i] + 10);
    sum += noise;
    square += noise * noise;
  }
  EXPECT_NEAR(sum / 100, 0, 0.1);
  EXPECT_NEAR(std::sqrt(square / 100), 0.33, 0.08);
  EXPECT_EQ(MakeLinear({.seed = 1})->arrays[1].values.data<double>()[7], y[7]);
  EXPECT_NE(MakeLinear({.seed = 2})->arrays[1].values.data<double>()[7], y[7]);
}

TEST(Linear, DrawsSeveralFeatures) {
  const StatusOr<Dataset> dataset = MakeLinear({.weights = {1, -1}, .noise = 0, .examples = 50});
  ASSERT_TRUE(dataset.ok()) << dataset.status();
  auto x = dataset->arrays[0].values.data<float>();
  for (size_t i = 0; i < 50; ++i) {
    EXPECT_NEAR(dataset->arrays[1].values.data<double>()[i], x[2 * i] - x[2 * i + 1] + 10, 1e-6);
  }
  EXPECT_FALSE(MakeLinear({.weights = {}}).ok());
  EXPECT_FALSE(MakeLinear({.examples = 0}).ok());
}

}  // namespace
}  // namespace tfjob::data
