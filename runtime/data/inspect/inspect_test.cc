// Tests the summaries of files of examples.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "runtime/data/images/test_folder.h"
#include "runtime/data/inspect/file_format.h"
#include "runtime/data/text/word_piece.h"
#include "runtime/data/tfrecord/test_records.h"
#include "runtime/io/npy.h"
#include "runtime/io/npz.h"

namespace tfjob::data {
namespace {

using testing::BytesFeature;
using testing::Compressed;
using testing::ExampleOf;
using testing::FloatFeature;
using testing::Folder;
using testing::Int64Feature;
using testing::NumberedRecords;
using testing::SequenceExampleOf;

StatusOr<FileSummary> Summary(const std::string& path, const SummaryOptions& options = {},
                              const std::string& format = "") {
  const StopSource stop;
  return Summarise(path, format, options, stop);
}

// Returns the summary, with "FOLDER" in place of the name of the folder, or the error.
std::string Described(const Folder& folder, const std::string& path,
                      const SummaryOptions& options = {}) {
  const StatusOr<FileSummary> summary = Summary(path, options);
  std::string text = summary.ok() ? summary->Describe() : std::string(Message(summary.status()));
  for (size_t at = 0; (at = text.find(folder.path(), at)) != std::string::npos;)
    text.replace(at, folder.path().size(), "FOLDER");
  return text;
}

std::string Records(const std::vector<std::string>& examples) {
  std::string content;
  for (const std::string& example : examples) io::AppendRecord(example, content);
  return content;
}

TEST(Inspect, DescribesTheFeaturesOfExamples) {
  const Folder folder;
  const std::string first = ExampleOf({{"image", BytesFeature({std::string(50, '\x01')})},
                                       {"label", Int64Feature({-3})},
                                       {"words", BytesFeature({"caf\xC3\xA9", "\"\n"})},
                                       {"z", FloatFeature({1.5f, NAN, 2, 3, 4, 5, 6, 7, 8, 9})}});
  const std::string second = ExampleOf({{"image", BytesFeature({std::string(2, '\0')})},
                                        {"label", Int64Feature({INT64_MAX})},
                                        {"words", BytesFeature({})},
                                        {"z", Int64Feature({})}});
  EXPECT_EQ(
      Described(folder, folder.Write("a", Records({first, second})), {.examples = 1}),
      "FOLDER/a: TFRecord, 2 examples, no damage\n"
      "fields:\n"
      "  image: bytes_list, in 2 examples, 1 value of 2 to 50 bytes\n"
      "  label: int64_list, in 2 examples, 1 value, from -3 to 9223372036854775807\n"
      "  words: bytes_list, in 2 examples, 0 to 2 values of 2 to 5 bytes\n"
      "  z: float_list, in 1 example, 10 values, from 1.5 to 9, 1 NaN or infinite\n"
      "  z: int64_list, in 1 example, 0 values\n"
      "first examples:\n"
      "  FOLDER/a: record at byte 0\n"
      "    image: \"" +
          [] {
            std::string bytes;
            for (int i = 0; i < 40; ++i) bytes += "\\x01";
            return bytes;
          }() +
          "\"… (50 bytes)\n"
          "    label: -3\n"
          "    words: \"caf\\xc3\\xa9\", \"\\\"\\n\"\n"
          "    z: 1.5, nan, 2, 3, 4, 5, 6, 7 and 2 more\n");
}

TEST(Inspect, DescribesSequences) {
  const Folder folder;
  const std::string step = Int64Feature({1, 2});
  const std::string first = SequenceExampleOf({{"label", Int64Feature({3})}},
                                              {{"s", {step, step, step, step}}, {"e", {}}});
  const std::string second = SequenceExampleOf({}, {{"s", {Int64Feature({-5})}}});
  EXPECT_EQ(Described(folder, folder.Write("a", Records({first, second})), {.examples = 1}),
            "FOLDER/a: TFRecord, 2 examples, no damage\n"
            "fields:\n"
            "  e: feature list, in 1 example, 0 steps\n"
            "  label: int64_list, in 1 example, 1 value, always 3\n"
            "  s: steps of int64_list, in 2 examples, 1 to 4 steps of 1 to 2 values, from -5 to 2\n"
            "first examples:\n"
            "  FOLDER/a: record at byte 0\n"
            "    label: 3\n"
            "    s: 1, 2; 1, 2; 1, 2 and 1 more step\n"
            "    e: no steps\n");
}

TEST(Inspect, ListsDamagedRecordsAndReadsOn) {
  const Folder folder;
  std::vector<uint64_t> offsets;
  std::string content = NumberedRecords(0, 12, &offsets);
  ++content[offsets[3] + 20];
  ++content[offsets[7]];
  ++content[offsets[11] + 20];
  const std::string path = folder.Write("a.tfrecord", content);
  const StatusOr<FileSummary> summary = Summary(path, {.most_damage = 2});
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->examples, 9);
  EXPECT_EQ(summary->damaged(), 3);
  EXPECT_EQ(summary->DescribeDamage(),
            StrCat(path, ": TFRecord, 9 examples, 3 damaged places\ndamaged:\n", "  ", path,
                   ": record at byte ", offsets[3], ": the checksum of its payload is wrong\n",
                   "  ", path, ": record at byte ", offsets[7],
                   ": the checksum of its length is wrong\n", "  and 1 more\n"));
  EXPECT_TRUE(summary->Describe().ends_with("  and 1 more\n")) << summary->Describe();
}

TEST(Inspect, DescribesLinesOfText) {
  const Folder folder;
  const std::string path = folder.Write("a.txt", "a film\r\n\nfilm film odd\n\xFF\n");
  const auto described = [&](const SummaryOptions& options) {
    const StatusOr<FileSummary> summary = Summary(path, options, "text");
    EXPECT_TRUE(summary.ok()) << summary.status();
    return summary->Describe().substr(path.size());
  };
  EXPECT_EQ(described({.examples = 1}),
            ": text, 3 examples, no damage\n"
            "fields:\n"
            "  line: not UTF-8, in 1 example, of 1 bytes\n"
            "  line: text, in 2 examples, of 6 to 13 bytes\n"
            "first examples:\n"
            "  " +
                path +
                ": line 1\n"
                "    line: \"a film\"\n");
  const auto tokenizer =
      text::WordPieceTokenizer::Read({.vocabulary = folder.Write("vocab.txt", "[UNK]\na\nfilm\n")});
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(described({.examples = 1, .tokenizer = *tokenizer, .most_tokens = 2}),
            ": text, 3 examples, no damage\n"
            "fields:\n"
            "  line: not UTF-8, in 1 example, of 1 bytes\n"
            "  line: text, in 2 examples, of 6 to 13 bytes\n"
            "  tokens: ids, in 3 examples, 0 to 3 values, 5 in all\n"
            "  tokens: more than 2, in 1 example, 3 values, 3 in all\n"
            "  tokens: unknown, in 1 example, 1 value, 1 in all\n"
            "first examples:\n"
            "  " +
                path +
                ": line 1\n"
                "    line: \"a film\"\n"
                "    tokens: 1, 2\n");
}

TEST(Inspect, RecognisesDamagedFilesByTheirNames) {
  const Folder folder;
  EXPECT_EQ(Described(folder, folder.Write("a.tfrecord", "")),
            "FOLDER/a.tfrecord: TFRecord, 0 examples, 1 damaged place\n"
            "damaged:\n"
            "  FOLDER/a.tfrecord: record at byte 0: the file is empty; expected a record\n");
  EXPECT_EQ(
      Described(folder, folder.Write("a.txt", "some text")),
      "FOLDER/a.txt: the format is not recognised; expected one of tfrecord, npy, npz, idx, "
      "jsonl, images, csv, text; if the file has one of these formats, name it with --format");
  for (const char* name : {"b.tfrecord-00000-of-00010", "b.tfrecord.gz", "b.2.tfrecord"}) {
    EXPECT_TRUE(Described(folder, folder.Write(name, "")).ends_with("expected a record\n")) << name;
  }
  std::filesystem::create_directory(folder.path() + "/a.tfrecord.d");
  for (const char* name :
       {"a.tfrecord.d/b.txt", "npyuser", "tfrecord", "mycsv.txt", "a.csvs", "a-b.txt"}) {
    EXPECT_NE(Described(folder, folder.Write(name, "some text")).find("is not recognised"),
              std::string::npos)
        << name;
  }
  const StatusOr<FileSummary> named = Summary(folder.path() + "/a.txt", {}, "tfrecord");
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->damaged(), 1);
  EXPECT_EQ(
      Message(Summary(folder.path() + "/a.txt", {}, "hdf5").status()),
      "--format: expected one of tfrecord, npy, npz, idx, jsonl, images, csv, text, got hdf5");
  EXPECT_EQ(Summary(folder.path() + "/missing").status().code(), StatusCode::kNotFound);
}

TEST(Inspect, DescribesFoldersOfImages) {
  const testing::ImageFolder folder;
  folder.Write("cats/1.png", testing::WritePng(testing::Gradient(4, 6, 3)));
  const std::string jpeg = testing::WriteJpeg(testing::Gradient(5, 9, 1));
  const std::string second = folder.Write("cats/2.png", jpeg);  // the name does not matter
  const std::string damaged = folder.Write("dogs/1.jpg", jpeg.substr(0, jpeg.size() - 2));
  std::filesystem::create_directories(folder.path() + "/empty");
  const StatusOr<FileSummary> summary = Summary(folder.path(), {.examples = 1});
  ASSERT_TRUE(summary.ok()) << summary.status();
  const size_t png_bytes = std::filesystem::file_size(folder.path() + "/cats/1.png");
  EXPECT_EQ(summary->Describe(),
            StrCat(folder.path(), ": folder of images, 2 examples, 1 damaged place\n",
                   "fields:\n"
                   "  cats: class, in 2 examples\n"
                   "  channels: number, in 2 examples, from 1 to 3\n"
                   "  dogs: class, in 0 examples\n"
                   "  empty: class, in 0 examples\n"
                   "  height: pixels, in 2 examples, from 4 to 5\n"
                   "  image: JPEG, in 1 example, of ",
                   jpeg.size(), " bytes\n  image: PNG, in 1 example, of ", png_bytes,
                   " bytes\n  width: pixels, in 2 examples, from 6 to 9\nfirst examples:\n  ",
                   folder.path(), "/cats/1.png\n",
                   "    image: PNG, 6 × 4 pixels, 3 channels\n"
                   "    class: \"cats\"\n"
                   "damaged:\n  ",
                   damaged, ": the JPEG image is damaged: it ends too early\n"));
  const StatusOr<FileSummary> one = Summary(second, {.fields = false});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->DescribeDamage(), second + ": image, 1 example, no damage\n");
  const testing::ImageFolder empty;
  EXPECT_TRUE(Message(Summary(empty.path(), {}).status())
                  .starts_with(empty.path() + ": expected a folder for each class"));
}

TEST(Inspect, ManyClassesOfImagesHideNothingElse) {
  const testing::ImageFolder folder;
  for (int i = 0; i < 1000; ++i)
    std::filesystem::create_directories(StrCat(folder.path(), "/", 1000 + i));
  folder.WriteGrey("1000/a", 7);
  const StatusOr<FileSummary> summary = Summary(folder.path());
  ASSERT_TRUE(summary.ok()) << summary.status();
  const std::string text = summary->Describe();
  for (const char* line :
       {"  1000: class, in 1 example\n", "  channels: number, in 1 example, always 3\n",
        "  height: pixels, in 1 example, always 2\n", "  image: PNG, in 1 example, of ",
        "  width: pixels, in 1 example, always 3\n", "  and more than 1000 in all\n"})
    EXPECT_NE(text.find(line), std::string::npos) << line;
}

TEST(Inspect, NamesOfFilesDoNotReachTheTerminalRaw) {
  const testing::ImageFolder folder;
  folder.WriteGrey("cats/a\x1b[2J\n.png", 7);
  const StatusOr<FileSummary> summary = Summary(folder.path(), {.examples = 1});
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->Describe().find('\x1b'), std::string::npos);
  EXPECT_NE(summary->Describe().find("/cats/a\\x1b[2J\\x0a.png\n"), std::string::npos);
  const StatusOr<FileSummary> one = Summary(folder.path() + "/cats/a\x1b[2J\n.png");
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_TRUE(one->DescribeDamage().starts_with(
      folder.path() + "/cats/a\\x1b[2J\\x0a.png: image, 1 example, no damage\n"));
}

TEST(Inspect, ReadsCompressedRecords) {
  const Folder folder;
  const std::string whole = Compressed(NumberedRecords(0, 500), 31);
  const StatusOr<FileSummary> summary = Summary(folder.Write("a", whole));
  ASSERT_TRUE(summary.ok()) << summary.status();
  EXPECT_EQ(summary->examples, 500);
  EXPECT_EQ(summary->DescribeDamage(),
            folder.path() + "/a: TFRecord (compressed), 500 examples, no damage\n");
  const StatusOr<FileSummary> cut = Summary(folder.Write("b", whole.substr(0, whole.size() / 2)));
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_GT(cut->examples, 100);
  EXPECT_GE(cut->damaged(), 1);
  EXPECT_NE(cut->Describe().find("the compressed data is damaged at byte"), std::string::npos);
}

TEST(Inspect, SaysThatThereAreTooManyFields) {
  const Folder folder;
  std::vector<std::pair<std::string, std::string>> features;
  for (size_t i = 0; i < FileSummary::kMostFields + 5; ++i)
    features.emplace_back(StrCat("f", i), Int64Feature({1}));
  const std::string text =
      Described(folder, folder.Write("a", Records({ExampleOf(features)})), {.examples = 0});
  EXPECT_NE(text.find("\n  and more than 1000 in all\n"), std::string::npos) << text;
}

TEST(Inspect, DescribesJsonLines) {
  const Folder folder;
  const std::string lines =
      R"({"id": 7, "m": [[1, 2.5], [3, 4]], "name": "ada", "tokens": [1, 2, 3], "ok": true})"
      "\n\n"
      R"({"id": -1, "m": [[1, 2], [3]], "name": null, "tokens": [], "ok": {"a": 1}})"
      "\n{\"id\": \n";
  for (const std::string& stored : {lines, Compressed(lines, 31)}) {
    const std::string text = Described(folder, folder.Write("a", stored), {.examples = 1});
    const size_t begin = text.find("2 examples"), reason = text.find("not valid JSON") + 14;
    EXPECT_EQ(text.substr(begin, reason - begin),
              "2 examples, 1 damaged place\n"
              "fields:\n"
              "  id: number, in 2 examples, from -1 to 7\n"
              "  m: list, in 1 example\n"
              "  m: numbers [2,2], in 1 example, from 1 to 4\n"
              "  name: null, in 1 example\n"
              "  name: string, in 1 example, of 3 bytes\n"
              "  ok: boolean, in 1 example\n"
              "  ok: object, in 1 example\n"
              "  tokens: list of numbers, in 2 examples, 0 to 3 values, from 1 to 3\n"
              "first examples:\n"
              "  FOLDER/a: line 1\n"
              "    id: 7\n"
              "    m: 1, 2.5, 3, 4\n"
              "    name: \"ada\"\n"
              "    tokens: 1, 2, 3\n"
              "    ok: true\n"
              "damaged:\n"
              "  FOLDER/a: line 4: expected a JSON object: not valid JSON");
  }
}

TEST(Inspect, DescribesArrays) {
  const Folder folder;
  const std::string path = folder.path() + "/a.npz";
  const std::vector<std::pair<std::string, Tensor>> arrays = {
      {"n", Tensor::Scalar<int64_t>(5)},
      {"x", Tensor::Of<float>({2, 3}, {1, 2, 3, INFINITY, 5, -6})},
      {"y", Tensor::Of<uint8_t>({2}, {7, 9})}};
  ASSERT_TRUE(io::WriteNpz(path, arrays).ok());
  EXPECT_EQ(Described(folder, path, {.examples = 1}),
            "FOLDER/a.npz: NumPy archive, 2 examples, no damage\n"
            "fields:\n"
            "  n: int64, a single number\n"
            "  x: float32 [3], in 2 examples, from -6 to 5, 1 NaN or infinite\n"
            "  y: uint8 [], in 2 examples, from 7 to 9\n"
            "first examples:\n"
            "  row 0\n"
            "    x: 1, 2, 3\n"
            "    y: 7\n");
  const std::string npy = folder.path() + "/b";
  ASSERT_TRUE(io::WriteNpy(npy, arrays[1].second).ok());
  EXPECT_EQ(Described(folder, npy, {.examples = 0}),
            "FOLDER/b: NumPy array, 2 examples, no damage\n"
            "fields:\n"
            "  array: float32 [3], in 2 examples, from -6 to 5, 1 NaN or infinite\n");
}

TEST(Inspect, DescribesIdxFiles) {
  const Folder folder;
  const std::string content("\0\0\x08\x02\0\0\0\x02\0\0\0\x03\x01\x02\x03\x04\x05\x06", 18);
  for (const std::string& stored : {content, Compressed(content, 31)}) {
    EXPECT_EQ(Described(folder, folder.Write("a", stored), {.examples = 1}),
              "FOLDER/a: IDX, 2 examples, no damage\n"
              "fields:\n"
              "  array: uint8 [3], in 2 examples, from 1 to 6\n"
              "first examples:\n"
              "  row 0\n"
              "    array: 1, 2, 3\n");
  }
  const StatusOr<FileSummary> cut = Summary(folder.Write("a", content.substr(0, 15)));
  ASSERT_TRUE(cut.ok()) << cut.status();
  EXPECT_EQ(cut->damaged(), 1);
}

TEST(Inspect, DescribesTablesOfNumbers) {
  const Folder folder;
  const std::string table = "height;weight;label\r\n1.5;-2;0\r\n2.5;7;1\r\n";
  for (const std::string& stored : {table, Compressed(table, 31)}) {
    EXPECT_EQ(Described(folder, folder.Write("a", stored), {.examples = 1}),
              "FOLDER/a: CSV with a header, 2 examples, no damage\n"
              "fields:\n"
              "  height: number, in 2 examples, from 1.5 to 2.5\n"
              "  label: number, in 2 examples, from 0 to 1\n"
              "  weight: number, in 2 examples, from -2 to 7\n"
              "first examples:\n"
              "  line 2\n"
              "    1.5, -2, 0\n");
  }
  EXPECT_EQ(Described(folder, folder.Write("a", "1,2\n3,4\n5\n"), {.examples = 0}),
            "FOLDER/a: CSV without a header, 2 examples, 1 damaged place\n"
            "fields:\n"
            "  column 0: number, in 2 examples, from 1 to 3\n"
            "  column 1: number, in 2 examples, from 2 to 4\n"
            "damaged:\n"
            "  FOLDER/a: line 3: expected 2 columns, got 1\n");
}

TEST(Inspect, ReadsOnAfterDamagedLinesOfTables) {
  const Folder folder;
  EXPECT_EQ(
      Described(folder, folder.Write("a.csv", "a,b\n1,2\n\n3\n5,\"6,7\"\n8,9\n\n\n"),
                {.examples = 0}),
      "FOLDER/a.csv: CSV with a header, 2 examples, 3 damaged places\n"
      "fields:\n"
      "  a: number, in 2 examples, from 1 to 8\n"
      "  b: number, in 2 examples, from 2 to 9\n"
      "damaged:\n"
      "  FOLDER/a.csv: line 3: expected a row, got none\n"
      "  FOLDER/a.csv: line 4: expected 2 columns, got 1\n"
      "  FOLDER/a.csv: line 5: expected 2 columns, got 3; a quoted value must not contain the "
      "delimiter\n");
}

TEST(Inspect, LimitsTheColumnsOfTables) {
  const Folder folder;
  const std::string most(1 << 20, ',');
  const std::string text =
      Described(folder, folder.Write("a.csv", StrCat("1,2\n", most, "\n3,4\n")), {.examples = 0});
  EXPECT_NE(text.find("2 examples, 1 damaged place\n"), std::string::npos) << text;
  EXPECT_NE(text.find("line 2: expected 2 columns, got 1048577\n"), std::string::npos) << text;
  const std::string wide = Described(folder, folder.Write("b.csv", most.substr(1) + "1\n"));
  EXPECT_NE(wide.find("and more than 1000 in all"), std::string::npos) << wide.substr(0, 1000);
}

TEST(Inspect, DescribesColumnsOfText) {
  const Folder folder;
  EXPECT_EQ(
      Described(folder, folder.Write("a.csv", "date, \"y\" ,z\n2024-01-01,1,\n2024-02-01,nan,7\n"),
                {.examples = 1}),
      "FOLDER/a.csv: CSV with a header, 2 examples, no damage\n"
      "fields:\n"
      "  date: text, in 2 examples, of 10 bytes\n"
      "  y: number, in 2 examples, always 1, 1 NaN or infinite\n"
      "  z: empty, in 1 example\n"
      "  z: number, in 1 example, always 7\n"
      "first examples:\n"
      "  line 2\n"
      "    \"2024-01-01\", 1, \"\"\n");
}

TEST(Inspect, RecognisesTablesByTheirContent) {
  const Folder folder;
  std::string names = "label", row = "3";
  for (int i = 0; i < 784; ++i) {
    names += StrCat(",pixel", i);
    row += StrCat(",", i % 256);
  }
  for (const auto& [content, heading] : std::vector<std::pair<std::string, std::string>>{
           {StrCat(names, "\n", row, "\n", row, "\n"), "CSV with a header, 2 examples"},
           {"\xEF\xBB\xBF"
            "1,2,0\n3,4,1\n",
            "CSV without a header, 2 examples"},
           {"nan,1,0\n3,4,1\n", "CSV without a header, 2 examples"},
           // The first two bytes look like a zlib header.
           {"H,W,label\n1,2,0\n", "CSV with a header, 1 example"},
           {"x^2,label\n1,2\n", "CSV with a header, 1 example"},
           {"80;1\n81;0\n", "CSV without a header, 2 examples"},
           {"x \ty\n1\t2\n", "CSV with a header, 1 example"}}) {
    EXPECT_EQ(Described(folder, folder.Write("a", content)).substr(0, heading.size() + 22),
              StrCat("FOLDER/a: ", heading, ", no damage\n"))
        << content.substr(0, 100);
  }
}

TEST(Inspect, ShowsNoCharactersThatATerminalInterprets) {
  const Folder folder;
  const std::string lines = R"({"\u009b31mx": 1, "a\u202eb": 2, "caf\u00e9": 3, "\u001b[0m": 4})"
                            "\n";
  const std::string text = Described(folder, folder.Write("a.jsonl", lines), {.examples = 1});
  for (const char* shown :
       {"\\xc2\\x9b31mx: 1", "a\\xe2\\x80\\xaeb: 2", "caf\xC3\xA9: 3", "\\x1b[0m: 4"})
    EXPECT_NE(text.find(shown), std::string::npos) << shown << "\n" << text;
  // The names of features may consist of any bytes, but must not be cut within a character.
  const std::string long_name = std::string(99, 'n') + "\xC3\xA9";
  const std::string records = Records({ExampleOf({{"\xFF", Int64Feature({1})},
                                                  {long_name + "1", Int64Feature({1})},
                                                  {long_name + "2", Int64Feature({1})}})});
  const std::string names = Described(folder, folder.Write("b", records), {.examples = 0});
  EXPECT_NE(names.find("\n  \\xff: int64_list"), std::string::npos) << names;
  const std::string cut = "\n  " + std::string(99, 'n') + "… (102 bytes, checksum ";
  const size_t first = names.find(cut);
  ASSERT_NE(first, std::string::npos) << names;
  EXPECT_NE(names.find(cut, first + 1), std::string::npos) << names;
}

TEST(Inspect, LimitsTheLinesOfAnExample) {
  const Folder folder;
  std::string line = "{";
  for (size_t i = 0; i < FileSummary::kMostFields + 5; ++i) line += StrCat("\"f", i, "\": 1, ");
  const std::string text = Described(folder, folder.Write("a", line + "\"last\": 1}\n"));
  EXPECT_TRUE(text.ends_with("\n    f999: 1\n    and 6 more\n")) << text;
}

TEST(Inspect, OnlyCountsIfFieldsAreNotWanted) {
  const Folder folder;
  EXPECT_EQ(
      Described(folder, folder.Write("a", NumberedRecords(0, 3)), {.fields = false, .examples = 0}),
      "FOLDER/a: TFRecord, 3 examples, no damage\n");
}

TEST(Inspect, StopsWhenAsked) {
  const Folder folder;
  StopSource stop;
  stop.Request(15);
  for (const std::string& content :
       {NumberedRecords(0, 3), std::string("{\"x\": 1}\n"), std::string("1,2\n3,4\n")}) {
    EXPECT_EQ(Summarise(folder.Write("a", content), "", {}, stop).status().code(),
              StatusCode::kCancelled)
        << content;
  }
}

}  // namespace
}  // namespace tfjob::data
