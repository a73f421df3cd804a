// Tests files of JSON lines: their values, the order of the batches, and damaged files.
#include "runtime/data/jsonl/jsonl.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "runtime/base/philox.h"
#include "runtime/data/pipeline.h"
#include "runtime/data/tfrecord/test_records.h"

namespace tfjob::data {
namespace {

using testing::Compressed;
using testing::Drain;
using testing::Folder;
using testing::NumberedOptions;
using testing::OptionsFor;

// Returns example i of NumberedRecords (test_records.h) as JSON.
std::string NumberedLine(int64_t i) {
  return StrCat(R"({"pixels": [)", i, ", ", -i, R"(], "label": )", i % 10, R"(, "note": "n"})");
}

std::string NumberedLines(int64_t first, int64_t count, std::string_view end = "\n") {
  std::string content;
  for (int64_t i = first; i < first + count; ++i) content += StrCat(NumberedLine(i), end);
  return content;
}

std::vector<int64_t> Numbers(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

std::unique_ptr<Pipeline> Made(std::shared_ptr<const Source> source,
                               const PipelineOptions& options) {
  auto pipeline = Pipeline::Create(std::move(source), options);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  return *std::move(pipeline);
}

// Reads all lines, in the order of the files.
std::pair<std::vector<int64_t>, Status> ReadAll(const RecordOptions& options) {
  const auto source = OpenJsonLines(options);
  if (!source.ok()) return {{}, source.status()};
  PipelineOptions reading = OptionsFor(**source);
  reading.shuffle = false;
  return Drain(*Made(*source, reading));
}

// Writes a file with one line, and returns the first batch read from it, or the error.
StatusOr<Batch> OneBatch(const std::string& line, std::vector<ExampleFeature> features) {
  const Folder folder;
  RecordOptions options{.files = {folder.Write("one", line)}, .features = std::move(features)};
  for (const ExampleFeature& feature : options.features)
    options.fields.push_back({feature.name, feature.name});
  ASSIGN_OR_RETURN(const auto source, OpenJsonLines(options));
  ASSIGN_OR_RETURN(const auto pipeline, Pipeline::Create(source, OptionsFor(*source)));
  const Batch* batch = pipeline->Next();
  RETURN_IF_ERROR(pipeline->status());
  return *batch;
}

template <typename T>
std::vector<T> Values(const Batch& batch, std::string_view name) {
  const auto values = batch.Find(name)->data<T>();
  return {values.begin(), values.end()};
}

constexpr auto kInt64 = DType::kInt64;

TEST(JsonLines, ReadsNumbersAndNestedLists) {
  const auto batch =
      OneBatch(R"({"f": -1.5, "i": -9223372036854775808, "m": [[1, 2, 3], [4, 5, 6.25]], "w": 3.0,)"
               R"( "truth": true, "truths": [false, true], "other": {"f": 2}, "more": [null]})",
               {{.name = "f"},
                {.name = "i", .dtype = kInt64},
                {.name = "m", .shape = {2, 3}},
                {.name = "w", .dtype = kInt64},
                {.name = "truth", .dtype = kInt64},
                {.name = "truths", .shape = {2}}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(Values<float>(*batch, "f"), std::vector<float>{-1.5f});
  EXPECT_EQ(batch->Find("f")->shape(), Shape({1}));
  EXPECT_EQ(Values<int64_t>(*batch, "i"), std::vector<int64_t>{INT64_MIN});
  EXPECT_EQ(Values<float>(*batch, "m"), (std::vector<float>{1, 2, 3, 4, 5, 6.25f}));
  EXPECT_EQ(batch->Find("m")->shape(), Shape({1, 2, 3}));
  EXPECT_EQ(Values<int64_t>(*batch, "w"), std::vector<int64_t>{3});
  EXPECT_EQ(Values<int64_t>(*batch, "truth"), std::vector<int64_t>{1});
  EXPECT_EQ(Values<float>(*batch, "truths"), (std::vector<float>{0, 1}));
}

TEST(JsonLines, FillsInWhatExamplesLack) {
  const auto batch =
      OneBatch(R"({"tokens": [7, 8], "empty": [], "null": null})",
               {{.name = "tokens", .dtype = kInt64, .shape = {4}, .variable = true, .fill = -1},
                {.name = "empty", .shape = {2}, .variable = true},
                {.name = "absent", .shape = {2}, .variable = true},
                {.name = "null", .shape = {2}, .fill = 0.5}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(Values<int64_t>(*batch, "tokens"), (std::vector<int64_t>{7, 8, -1, -1}));
  EXPECT_EQ(Values<float>(*batch, "empty"), (std::vector<float>{0, 0}));
  EXPECT_EQ(Values<float>(*batch, "absent"), (std::vector<float>{0, 0}));
  EXPECT_EQ(Values<float>(*batch, "null"), (std::vector<float>{0.5f, 0.5f}));
}

TEST(JsonLines, ReadsSequencesOfSteps) {
  const ExampleFeature steps{
      .name = "x", .shape = {3, 2}, .variable = true, .sequence = true, .fill = -1};
  const auto batch = OneBatch(R"({"x": [[1, 2], [3, 4]]})", {steps});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(Values<float>(*batch, "x"), (std::vector<float>{1, 2, 3, 4, -1, -1}));
  const std::string error(Message(OneBatch(R"({"x": [[1, 2], [3]]})", {steps}).status()));
  EXPECT_NE(
      error.find("feature x: expected a list of at most 3 nested lists of numbers of shape [2], "
                 "got a list of 1 after 3 numbers"),
      std::string::npos)
      << error;
}

// Reads the line. Returns the error message, without the name of the file.
std::string Refusal(const std::string& line, const ExampleFeature& feature) {
  const std::string message(Message(OneBatch(line, {feature}).status()));
  const size_t place = message.find("/one: ");
  return place == std::string::npos ? message : message.substr(place + 6);
}

TEST(JsonLines, SaysWhichFeatureDoesNotFit) {
  const ExampleFeature one{.name = "x"}, two{.name = "x", .shape = {2}};
  const ExampleFeature integer{.name = "x", .dtype = kInt64};
  EXPECT_EQ(Refusal("\n\n{\"y\": 1}", two),
            "line 3: feature x: expected a list of 2 numbers, but the example does not have this "
            "feature");
  EXPECT_EQ(Refusal("{\"x\": null}", one).substr(0, 36), "line 1: feature x: expected a number");
  EXPECT_EQ(Refusal("{\"x\": 1}", two),
            "line 1: feature x: expected a list of 2 numbers, got a number");
  EXPECT_EQ(Refusal("{\"x\": [1]}", two),
            "line 1: feature x: expected a list of 2 numbers, got a list of 1 after 1 number");
  EXPECT_EQ(Refusal("{\"x\": [1, 2, 3]}", two),
            "line 1: feature x: expected a list of 2 numbers, got a list of 3 after 2 numbers");
  EXPECT_EQ(Refusal("{\"x\": [1, null]}", two),
            "line 1: feature x: expected a list of 2 numbers, got null after 1 number");
  EXPECT_EQ(Refusal("{\"x\": [[1, 2], [3]]}", {.name = "x", .shape = {2, 2}}),
            "line 1: feature x: expected a list of 2 nested lists of numbers of shape [2], got a "
            "list of 1 "
            "after 3 numbers");
  EXPECT_EQ(
      Refusal("{\"x\": [1, 2, 3]}", {.name = "x", .dtype = kInt64, .shape = {2}, .variable = true}),
      "line 1: feature x: expected a list of at most 2 numbers, got a list of 3 after 2 "
      "numbers");
  EXPECT_EQ(Refusal("{\"x\": \"1\"}", one), "line 1: feature x: expected a number, got a string");
  EXPECT_EQ(Refusal("{\"x\": 1e300}", one),
            "line 1: feature x: expected a number, got 1e+300, which does not fit into float32");
  for (const char* number : {"0.5", "1e300", "9223372036854775808"}) {
    EXPECT_NE(Refusal(StrCat("{\"x\": ", number, "}"), integer)
                  .find("which is not an integer of 64 bits"),
              std::string::npos)
        << number;
  }
  EXPECT_EQ(Refusal("{\"x\": 1e999}", one),
            "line 1: feature x: expected a number, got 1.7976931348623157e+308, which does not fit "
            "into float32");
  // A double of this magnitude may be a rounded integer.
  EXPECT_EQ(
      Refusal("{\"x\": 9007199254740993.0}", integer),
      "line 1: feature x: expected a number, got 9007199254740992, which may be rounded; such "
      "a large integer must be written without a decimal point or an exponent");
  EXPECT_EQ(Refusal("{\"x\": 1, \"x\": 2}", one), "line 1: feature x: the example has it twice");
}

TEST(JsonLines, RoundsIntegersOnce) {
  // 2^53 + 2^29 + 1 is just above the middle between two floats.
  const auto batch = OneBatch(R"({"x": 9007199791611905})", {{.name = "x"}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(Values<float>(*batch, "x"), std::vector<float>{0x1p53f + 0x1p30f});
}

// Tests values that JSON allows but JsonDocument refuses.
TEST(JsonLines, ReadsLinesWithUnusualValues) {
  const Folder folder;
  const std::string deep = std::string(300, '[') + "\"\\ud83d\"" + std::string(300, ']');
  for (const std::string& value :
       {std::string("184467440737095516160"), std::string("-9223372036854775809"),
        std::string(1000, '9'), std::string("1e999"), std::string("[-1.5e999, 1e-999]"),
        std::string(R"("\ud83d")"), std::string(R"("x\udc00\ud83d\ud83d\ude00")"),
        std::string(R"({"\ud83d": 1})"), deep}) {
    const std::string line = StrCat("{\"other\": ", value, ", ", NumberedLine(1).substr(1));
    const std::string path =
        folder.Write("a", StrCat(NumberedLines(0, 1), line, "\n", NumberedLines(2, 1)));
    for (const bool skip : {false, true}) {
      RecordOptions options = NumberedOptions({path});
      options.skip_damaged = skip;
      const auto got = ReadAll(options);
      EXPECT_EQ(got.first, Numbers(3)) << value << got.second;
    }
  }
}

TEST(JsonLinesDamage, OfPythonsNumbersIsExplained) {
  const Folder folder;
  RecordOptions options = NumberedOptions({folder.Write("a", R"({"y": "NaN", "x": -Infinity})")});
  EXPECT_TRUE(Message(ReadAll(options).second)
                  .starts_with(folder.path() +
                               "/a: line 1: expected a JSON object: Infinity is not JSON; write "
                               "null instead"));
}

TEST(JsonLinesDeathTest, RefusesFeaturesThatAreNotNumbers) {
  const ExampleFeature raw{.name = "x", .dtype = DType::kUInt8, .raw = true, .shape = {2}};
  EXPECT_DEATH((void)JsonLinesFormat()->MakeParser({raw}),
               "the features of JSON lines are numbers");
}

TEST(JsonLines, IgnoresBlankLinesAndAByteOrderMark) {
  const Folder folder;
  const std::string lines[] = {NumberedLine(0), NumberedLine(1), NumberedLine(2)};
  for (const std::string& content :
       {StrCat(lines[0], "\n", lines[1], "\n", lines[2], "\n"),
        StrCat(lines[0], "\r\n", lines[1], "\r\n", lines[2]),
        StrCat("\xEF\xBB\xBF", lines[0], "\n\n \t\r\n", lines[1], "\n  ", lines[2], "  \n\n")}) {
    for (const bool skip : {false, true}) {
      RecordOptions options = NumberedOptions({folder.Write("a", content)});
      options.skip_damaged = skip;
      const auto got = ReadAll(options);
      EXPECT_EQ(got.first, Numbers(3)) << content << got.second;
    }
  }
}

// Checks that each task gets the same batches as from records in another format, for every division
// of the examples among tasks.
TEST(JsonLines, GivesTheBatchesThatRecordsGive) {
  const Folder folder;
  folder.Write("part-1", NumberedLines(40, 63));
  folder.Write("part-0", Compressed(NumberedLines(0, 40, "\r\n"), 31));
  const auto lines = OpenJsonLines(NumberedOptions({folder.path() + "/part-*"}));
  ASSERT_TRUE(lines.ok()) << lines.status();
  const auto records =
      OpenTfRecords(NumberedOptions({folder.Write("records", testing::NumberedRecords(0, 103))}));
  ASSERT_TRUE(records.ok()) << records.status();
  for (const int64_t global_batch : {0, 12}) {
    for (int64_t worker = 0; worker < 3; ++worker) {
      PipelineOptions options = OptionsFor(**lines);
      options.epochs = 2;
      options.worker = worker;
      options.workers = 3;
      options.global_batch = global_batch;
      const auto got = Drain(*Made(*lines, options));
      EXPECT_TRUE(got.second.ok()) << got.second;
      EXPECT_EQ(got.first, Drain(*Made(*records, options)).first) << worker << " " << global_batch;
    }
  }
}

TEST(JsonLines, ContinuesAtEveryPosition) {
  const Folder folder;
  const auto source = OpenJsonLines(NumberedOptions({folder.Write("a", NumberedLines(0, 30))}));
  ASSERT_TRUE(source.ok()) << source.status();
  const std::vector<int64_t> whole = Drain(*Made(*source, OptionsFor(**source))).first;
  ASSERT_EQ(whole.size(), 30u);
  const auto pipeline = Made(*source, OptionsFor(**source));
  for (int64_t drawn = 7; drawn >= 0; --drawn) {
    pipeline->Seek(drawn);
    EXPECT_EQ(Drain(*pipeline).first, std::vector<int64_t>(whole.begin() + 4 * drawn, whole.end()));
  }
}

TEST(JsonLines, ReadsLinesThatAreLongerThanTheParts) {
  const Folder folder;
  std::string content;
  for (int64_t i = 0; i < 6; ++i) {
    // The reader searches parts of 64 KiB. Let lines end at different places in these parts.
    const std::string padding(static_cast<size_t>((64 << 10) * (i % 3) + 100 * i), ' ');
    content += StrCat(NumberedLine(i), padding, "\r\n");
  }
  const auto got = ReadAll(NumberedOptions({folder.Write("a", content)}));
  EXPECT_EQ(got.first, Numbers(6)) << got.second;
  for (uint64_t size = 65'530; size < 65'542; ++size) {
    const std::string line = NumberedLine(0);
    const std::string long_line = line + std::string(size - line.size(), ' ');
    const auto two =
        ReadAll(NumberedOptions({folder.Write("b", long_line + "\r\n" + NumberedLine(1))}));
    EXPECT_EQ(two.first, Numbers(2)) << size << two.second;
  }
}

TEST(JsonLines, KeepsALongIndexInAFile) {
  const Folder folder;
  RecordOptions options = NumberedOptions({folder.Write("a", NumberedLines(0, 100))});
  options.most_indexed_in_memory = 7;
  const auto source = OpenJsonLines(options);
  ASSERT_TRUE(source.ok()) << source.status();
  EXPECT_EQ((*source)->Describe(),
            StrCat(folder.path(), "/a; ", NumberedLines(0, 100).size(),
                   " bytes, read when a batch needs them; index of 800 bytes in a mapped "
                   "temporary file"));
  EXPECT_EQ(ReadAll(options).first, Numbers(100));
}

TEST(JsonLines, NamesTheLineOfAWrongLabel) {
  const Folder folder;
  const auto source =
      OpenJsonLines(NumberedOptions({folder.Write("a", "\n" + NumberedLines(0, 20))}));
  ASSERT_TRUE(source.ok()) << source.status();
  PipelineOptions options = OptionsFor(**source);
  options.shuffle = false;
  options.columns[1].classes = 7;
  const Status error = Drain(*Made(*source, options)).second;
  EXPECT_EQ(Message(error),
            StrCat(folder.path(), "/a: line 9: label 7 is out of range; expected an integer from ",
                   "0 to 6, since the model has 7 outputs"));
}

TEST(JsonLinesDamage, NamesTheLineAndIsLeftOut) {
  const Folder folder;
  const std::string before = NumberedLines(0, 4), after = NumberedLines(4, 3);
  for (const std::string& damaged :
       {std::string("{\"pixels\": [1, 2"), std::string("text"), std::string("[1, 2]"),
        std::string("7"), std::string("{\"pixels\": \"\xFF\"}"), NumberedLine(9) + "x",
        NumberedLine(9).substr(1), std::string("\0\0\0", 3), std::string(500, '['),
        std::string("{\"x\": 01e999}"), std::string("{\"x\": NaN}"), std::string("null"),
        StrCat("{\"x\": ", std::string(300, '['), "x", std::string(300, ']'), "}")}) {
    const std::string path = folder.Write("a", StrCat(before, "\n", damaged, "\n", after));
    const auto fails = ReadAll(NumberedOptions({path}));
    EXPECT_EQ(fails.second.code(), StatusCode::kDataLoss) << damaged;
    EXPECT_TRUE(Message(fails.second).starts_with(path + ": line 6: expected a JSON object"))
        << fails.second;
    EXPECT_TRUE(
        Message(fails.second).ends_with("set on_damaged: skip to leave out what is damaged"))
        << fails.second;
    RecordOptions skips = NumberedOptions({path});
    skips.skip_damaged = true;
    EXPECT_EQ(ReadAll(skips).first, Numbers(7)) << damaged;
    const auto source = OpenJsonLines(skips);
    ASSERT_TRUE(source.ok()) << source.status();
    const std::string report =
        StrCat("1 damaged place is left out of the data; the first: ", path, ": line 6: ");
    EXPECT_EQ((*source)->LeftOut().substr(0, report.size()), report);
  }
}

// Returns the examples of a file as text, one per line.
std::vector<std::string> Examples(const RecordOptions& options) {
  const auto source = OpenJsonLines(options);
  EXPECT_TRUE(source.ok()) << source.status();
  PipelineOptions reading = OptionsFor(**source);
  reading.shuffle = false;
  reading.batch_size = 1;
  const auto pipeline = Made(*source, reading);
  std::vector<std::string> examples;
  while (const Batch* batch = pipeline->Next()) {
    const std::vector<float> pixels = Values<float>(*batch, "features");
    examples.push_back(
        StrCat(pixels[0], " ", pixels[1], " ", Values<int64_t>(*batch, "labels")[0]));
  }
  const std::string place = StrCat(options.files[0], ": line ");
  if (!pipeline->status().ok())
    EXPECT_TRUE(Message(pipeline->status()).starts_with(place)) << pipeline->status();
  return examples;
}

// Changes one random byte at a time. Checks that either an error names the line of this byte, or
// the values of the line change, and that all other lines are read as before.
TEST(JsonLinesDamage, AtRandomPlacesChangesOnlyTheLine) {
  const Folder folder;
  const std::string whole = NumberedLines(0, 12);
  RecordOptions options = NumberedOptions({folder.Write("whole", whole)});
  options.skip_damaged = true;
  const std::vector<std::string> expected = Examples(options);
  ASSERT_EQ(expected.size(), 12u);
  PhiloxStream random(PhiloxKey(1, "damage"));
  for (int i = 0; i < 200; ++i) {
    std::string content = whole;
    const uint32_t at = random.Below(static_cast<uint32_t>(whole.size()));
    content[at] = static_cast<char>(content[at] ^ (1 << random.Below(8)));
    options.files = {folder.Write("a", content)};
    const std::vector<std::string> got = Examples(options);
    const auto line = static_cast<size_t>(std::count(whole.begin(), whole.begin() + at, '\n'));
    // If the changed byte is the line break, two lines are affected.
    const size_t after = line + (whole[at] == '\n' ? 2 : 1);
    ASSERT_GE(got.size(), line) << content;
    EXPECT_TRUE(std::equal(got.begin(), got.begin() + static_cast<int64_t>(line), expected.begin()))
        << content;
    const bool ended = got.size() < expected.size() - (after - line);  // stopped with an error
    if (ended) continue;
    EXPECT_TRUE(std::equal(expected.rbegin(),
                           expected.rend() - static_cast<int64_t>(std::min(after, expected.size())),
                           got.rbegin()))
        << content;
  }
}

TEST(JsonLinesDamage, OfAnEmptyFileIsFound) {
  const Folder folder;
  const std::string path = folder.Write("a", "");
  EXPECT_EQ(Message(ReadAll(NumberedOptions({path})).second),
            path +
                ": line 1: the file is empty; expected a JSON object; replace the file, or set "
                "on_damaged: skip to leave out what is damaged");
  EXPECT_EQ(Message(ReadAll(NumberedOptions({folder.Write("b", "\n \n")})).second),
            folder.path() + "/b: expected at least one intact record, found none");
}

TEST(JsonLinesDamage, OfTheLastLineIsFoundIfItDoesNotEnd) {
  const Folder folder;
  const std::string torn = NumberedLines(0, 3) + NumberedLine(3).substr(0, 20);
  RecordOptions options = NumberedOptions({folder.Write("a", torn)});
  // The last line is checked when the file is opened, and all other lines only when they are read.
  const Status error = OpenJsonLines(options).status();
  EXPECT_TRUE(Message(error).starts_with(folder.path() + "/a: line 4: expected a JSON object"))
      << error;
  options.skip_damaged = true;
  EXPECT_EQ(ReadAll(options).first, Numbers(3));
}

TEST(JsonLinesDamage, OfALineThatIsTooLongIsFound) {
  const Folder folder;
  const std::string path = folder.Write("a", "");
  {
    std::ofstream file(path, std::ios::binary);
    file << NumberedLine(0) << "\n{" << std::string(64 << 20, ' ') << "}\n" << NumberedLine(1);
  }
  RecordOptions options = NumberedOptions({path});
  const Status error = ReadAll(options).second;
  EXPECT_TRUE(Message(error).starts_with(
      path + ": line 2: expected a line of at most 67108864 bytes, got 67108866"))
      << error;
  options.skip_damaged = true;
  EXPECT_EQ(ReadAll(options).first, Numbers(2));
}

// Opens a file of ten lines, replaces its content, and returns the error of reading the lines.
Status ErrorAfterChange(const Folder& folder, const std::string& content, bool skip) {
  RecordOptions options = NumberedOptions({folder.Write("a", NumberedLines(0, 10))});
  options.skip_damaged = skip;
  const auto source = OpenJsonLines(options);
  EXPECT_TRUE(source.ok()) << source.status();
  const auto before = std::filesystem::last_write_time(options.files[0]);
  folder.Write("a", content);
  std::filesystem::last_write_time(options.files[0], before + std::chrono::seconds(1));
  PipelineOptions reading = OptionsFor(**source);
  reading.shuffle = false;
  return Drain(*Made(*source, reading)).second;
}

TEST(JsonLinesDamage, AfterOpeningIsAnError) {
  const Folder folder;
  const std::string swapped = NumberedLines(1, 1) + NumberedLines(0, 1) + NumberedLines(2, 8);
  ASSERT_EQ(swapped.size(), NumberedLines(0, 10).size());
  for (const bool skip : {false, true}) {
    for (const std::string& content :
         {swapped, NumberedLines(0, 9), std::string(swapped.size(), 'x')}) {
      const Status error = ErrorAfterChange(folder, content, skip);
      EXPECT_EQ(error.code(), StatusCode::kFailedPrecondition) << error;
      EXPECT_TRUE(Message(error).starts_with(folder.path() +
                                             "/a: the file has changed since this task opened it"))
          << error;
    }
  }
}

TEST(JsonLines, FingerprintsTellLinesOfEqualSizesApart) {
  const Folder folder;
  const auto fingerprint = [&](const std::string& content) {
    const auto source = OpenJsonLines(NumberedOptions({folder.Write("a", content)}));
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? (*source)->fingerprint() : 0;
  };
  const std::string a = NumberedLine(1), b = NumberedLine(2);
  const uint64_t in_order = fingerprint(StrCat(a, "\n", b, "\n"));
  EXPECT_EQ(fingerprint(StrCat(a, "\n\n", b)), in_order);
  EXPECT_NE(fingerprint(StrCat(b, "\n", a, "\n")), in_order);
}

TEST(JsonLines, MayGrowWhileTheyAreRead) {
  const Folder folder;
  EXPECT_TRUE(ErrorAfterChange(folder, NumberedLines(0, 20), false).ok());
}

// Checks that a change is detected if the rewritten file is larger, but its lines end elsewhere.
TEST(JsonLinesDamage, IsFoundIfLinesEndElsewhere) {
  const Folder folder;
  for (const auto& [content, error] : std::vector<std::pair<std::string, std::string>>{
           {NumberedLines(0, 1) + " " + NumberedLines(1, 9) + "\n",
            "/a: line 2: expected its end within "},
           {" " + NumberedLines(0, 10), "/a: line 1: expected its end within "}}) {
    const Status changed = ErrorAfterChange(folder, content, true);
    EXPECT_TRUE(Message(changed).starts_with(folder.path() + error)) << changed;
  }
}

}  // namespace
}  // namespace tfjob::data
