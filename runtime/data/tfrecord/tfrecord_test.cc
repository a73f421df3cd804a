#include "runtime/data/tfrecord/tfrecord.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "runtime/data/table_source.h"
#include "runtime/data/tfrecord/test_records.h"

namespace tfjob::data {
namespace {

using testing::BytesFeature;
using testing::Compressed;
using testing::Drain;
using testing::ExampleOf;
using testing::FloatFeature;
using testing::Folder;
using testing::Int64Feature;
using testing::NumberedOptions;
using testing::NumberedRecords;
using testing::OptionsFor;
using testing::ReadAll;
using testing::SequenceExampleOf;

std::vector<int64_t> Numbers(int64_t count) {
  std::vector<int64_t> numbers(static_cast<size_t>(count));
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

std::shared_ptr<const Source> Opened(const RecordOptions& options) {
  const auto source = OpenTfRecords(options);
  EXPECT_TRUE(source.ok()) << source.status();
  return source.ok() ? *source : nullptr;
}

std::unique_ptr<Pipeline> Made(std::shared_ptr<const Source> source,
                               const PipelineOptions& options) {
  auto pipeline = Pipeline::Create(std::move(source), options);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  return *std::move(pipeline);
}

// Returns the examples of NumberedRecords as a table in memory.
std::shared_ptr<const Source> NumberedTable(int64_t count) {
  Tensor pixels(DType::kFloat32, {count, 2}), labels(DType::kInt64, {count});
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    pixels.data<float>()[2 * i] = static_cast<float>(i);
    pixels.data<float>()[2 * i + 1] = -static_cast<float>(i);
    labels.data<int64_t>()[i] = static_cast<int64_t>(i) % 10;
  }
  return TableSource(std::make_shared<const Dataset>(
      Dataset{.arrays = {{"features", "memory", pixels}, {"labels", "memory", labels}}}));
}

// Writes a file with one record, and returns the first batch from this file, or the error.
StatusOr<Batch> OneBatch(const std::string& example, std::vector<ExampleFeature> features) {
  const Folder folder;
  std::string content;
  io::AppendRecord(example, content);
  RecordOptions options{.files = {folder.Write("one", content)}, .features = std::move(features)};
  for (const ExampleFeature& feature : options.features)
    options.fields.push_back({feature.name, feature.name});
  ASSIGN_OR_RETURN(const auto source, OpenTfRecords(options));
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

TEST(TfRecord, ReadsEachKindOfFeature) {
  const auto batch =
      OneBatch(ExampleOf({{"bytes", BytesFeature({std::string("\x07\0\xFF\x01", 4)})},
                          {"doubles", BytesFeature({std::string(8, '\0')})},
                          {"float", FloatFeature({1.5f, -2})},
                          {"int", Int64Feature({-3})},
                          {"not asked for", FloatFeature({9})}}),
               {{.name = "bytes", .dtype = DType::kUInt8, .raw = true, .shape = {2, 2}},
                {.name = "doubles", .dtype = DType::kFloat64, .raw = true, .shape = {1}},
                {.name = "float", .shape = {2}},
                {.name = "int", .dtype = DType::kInt64}});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(batch->Find("bytes")->shape(), Shape({1, 2, 2}));
  EXPECT_EQ(Values<uint8_t>(*batch, "bytes"), (std::vector<uint8_t>{7, 0, 255, 1}));
  EXPECT_EQ(Values<double>(*batch, "doubles"), (std::vector<double>{0}));
  EXPECT_EQ(Values<float>(*batch, "float"), (std::vector<float>{1.5f, -2}));
  EXPECT_EQ(Values<int64_t>(*batch, "int"), (std::vector<int64_t>{-3}));
  EXPECT_EQ(batch->Find("int")->shape(), Shape({1}));
}

TEST(TfRecord, FillsInWhatExamplesLack) {
  const ExampleFeature tokens{
      .name = "tokens", .dtype = DType::kInt64, .shape = {4}, .variable = true, .fill = -1};
  const ExampleFeature scores{.name = "scores", .shape = {2}, .fill = 0.5};
  const ExampleFeature zeros{.name = "zeros", .shape = {2}, .variable = true};
  const auto batch = OneBatch(ExampleOf({{"tokens", Int64Feature({7, 8})}, {"zeros", ""}}),
                              {tokens, scores, zeros});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(Values<int64_t>(*batch, "tokens"), (std::vector<int64_t>{7, 8, -1, -1}));
  EXPECT_EQ(Values<float>(*batch, "scores"), (std::vector<float>{0.5f, 0.5f}));
  EXPECT_EQ(Values<float>(*batch, "zeros"), (std::vector<float>{0, 0}));
}

// Reads the example. Returns the error message, without the name of the file at the front.
std::string Refusal(const std::string& example, const ExampleFeature& feature) {
  const std::string message(Message(OneBatch(example, {feature}).status()));
  const size_t place = message.find("/one: ");
  return place == std::string::npos ? message : message.substr(place + 6);
}

TEST(TfRecord, SaysWhichFeatureDoesNotFit) {
  const ExampleFeature two{.name = "x", .shape = {2}};
  EXPECT_EQ(Refusal(ExampleOf({{"y", FloatFeature({1})}}), two),
            "record at byte 0: feature x: expected 2 values in a float_list, but the example does "
            "not have this feature");
  EXPECT_EQ(Refusal(ExampleOf({{"x", FloatFeature({1, 2, 3})}}), two),
            "record at byte 0: feature x: expected 2 values in a float_list, got 3");
  EXPECT_EQ(Refusal(ExampleOf({{"x", Int64Feature({1})}}), two),
            "record at byte 0: feature x: expected 2 values in a float_list, got an int64_list");
  EXPECT_EQ(Refusal(ExampleOf({{"x", FloatFeature({1, 2})}, {"x", FloatFeature({1, 2})}}), two),
            "record at byte 0: feature x: the example has it twice");
  EXPECT_EQ(Refusal(ExampleOf({{"x", Int64Feature({1, 2, 3})}}),
                    {.name = "x", .dtype = DType::kInt64, .shape = {2}, .variable = true}),
            "record at byte 0: feature x: expected at most 2 values in an int64_list, got 3");
  const ExampleFeature raw{.name = "x", .dtype = DType::kInt32, .raw = true, .shape = {2}};
  EXPECT_EQ(Refusal(ExampleOf({{"x", BytesFeature({"abc"})}}), raw),
            "record at byte 0: feature x: expected a string of 8 bytes, for int32 of shape [2], "
            "got 3 bytes");
  EXPECT_EQ(Refusal(ExampleOf({{"x", BytesFeature({"a", "b"})}}), raw),
            "record at byte 0: feature x: expected one string in a bytes_list, got 2");
}

// Returns a sequence of at most 3 steps with 2 values each.
ExampleFeature Steps(const char* name, DType dtype) {
  return {.name = name, .dtype = dtype, .shape = {3, 2}, .variable = true, .sequence = true};
}

ExampleFeature RawSteps(const char* name) {
  ExampleFeature feature = Steps(name, DType::kUInt8);
  feature.raw = true;
  return feature;
}

TEST(TfRecord, ReadsSequences) {
  const std::vector<ExampleFeature> features = {{.name = "label", .dtype = DType::kInt64},
                                                Steps("f", DType::kFloat32),
                                                Steps("i", DType::kInt64),
                                                RawSteps("b"),
                                                Steps("none", DType::kFloat32)};
  const auto expect = [](const StatusOr<Batch>& batch) {
    ASSERT_TRUE(batch.ok()) << batch.status();
    EXPECT_EQ(Values<int64_t>(*batch, "label"), std::vector<int64_t>{7});
    EXPECT_EQ(batch->Find("f")->shape(), Shape({1, 3, 2}));
    EXPECT_EQ(Values<float>(*batch, "f"), (std::vector<float>{1, 2, 3, 4, 0, 0}));
    EXPECT_EQ(Values<int64_t>(*batch, "i"), (std::vector<int64_t>{5, 6, 7, 8, 9, 10}));
    EXPECT_EQ(Values<uint8_t>(*batch, "b"), (std::vector<uint8_t>{'a', 'b', 'c', 'd', 0, 0}));
    EXPECT_EQ(Values<float>(*batch, "none"), (std::vector<float>{0, 0, 0, 0, 0, 0}));
  };
  expect(OneBatch(
      SequenceExampleOf({{"label", Int64Feature({7})}},
                        {{"f", {FloatFeature({1, 2}), FloatFeature({3, 4})}},
                         {"i", {Int64Feature({5, 6}), Int64Feature({7, 8}), Int64Feature({9, 10})}},
                         {"b", {BytesFeature({"ab"}), BytesFeature({"cd"})}},
                         {"none", {}},
                         {"not asked for", {FloatFeature({9})}}}),
      features));
  // In an Example, the steps of a sequence follow each other in one list.
  expect(OneBatch(ExampleOf({{"label", Int64Feature({7})},
                             {"f", FloatFeature({1, 2, 3, 4})},
                             {"i", Int64Feature({5, 6, 7, 8, 9, 10})},
                             {"b", BytesFeature({"ab", "cd"})}}),
                  features));
}

TEST(TfRecord, PadsSequencesWithTheFill) {
  ExampleFeature filled = Steps("x", DType::kInt64);
  filled.fill = -1;
  const auto batch = OneBatch(
      SequenceExampleOf({}, {{"x", {Int64Feature({5, 6}), Int64Feature({7, 8})}}}), {filled});
  ASSERT_TRUE(batch.ok()) << batch.status();
  EXPECT_EQ(Values<int64_t>(*batch, "x"), (std::vector<int64_t>{5, 6, 7, 8, -1, -1}));
}

// Checks that a step without a list is not damage, and is an error only if the sequence is read.
TEST(TfRecord, IgnoresStepsWithoutAListInSequencesThatAreNotRead) {
  const Folder folder;
  std::string content;
  io::AppendRecord(
      SequenceExampleOf({{"label", Int64Feature({3})}, {"pixels", FloatFeature({3, -3})}},
                        {{"s", {Int64Feature({1}), ""}}}),
      content);
  for (const bool skip : {false, true}) {
    RecordOptions options = NumberedOptions({folder.Write("a", content)});
    options.skip_damaged = skip;
    const auto got = ReadAll(options);
    EXPECT_EQ(got.first, std::vector<int64_t>{3}) << skip << got.second;
    options.features.push_back(
        {.name = "s", .dtype = DType::kInt64, .shape = {4, 1}, .variable = true, .sequence = true});
    options.fields.push_back({"s", "s"});
    const Status error = ReadAll(options).second;
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument) << error;
    EXPECT_NE(Message(error).find("feature s: step 1: expected a list of values, got none"),
              std::string_view::npos)
        << error;
  }
}

TEST(TfRecord, SaysWhichSequenceDoesNotFit) {
  const auto steps = [](const std::vector<std::string>& of_x) {
    return SequenceExampleOf({}, {{"x", of_x}});
  };
  const ExampleFeature x = Steps("x", DType::kFloat32);
  const std::string two = FloatFeature({1, 2}), place = "record at byte 0: feature x: ";
  EXPECT_EQ(Refusal(steps({two, two, two, two}), x),
            place + "expected at most 3 steps of 2 values in a float_list, got 4");
  EXPECT_EQ(Refusal(steps({two, FloatFeature({1})}), x),
            place + "step 1: expected 2 values in a float_list, got 1");
  EXPECT_EQ(Refusal(steps({Int64Feature({1, 2})}), x),
            place + "step 0: expected 2 values in a float_list, got an int64_list");
  EXPECT_EQ(Refusal(steps({two}), {.name = "x", .shape = {2}}),
            place +
                "expected 2 values in a float_list, got a list of steps; set shape (of one "
                "step) and max_length");
  EXPECT_EQ(Refusal(ExampleOf({{"x", FloatFeature({1, 2, 3})}}), x),
            place + "expected at most 3 steps of 2 values in a float_list, got 3 values");
  EXPECT_EQ(Refusal(SequenceExampleOf({{"x", two}}, {{"x", {two}}}), x),
            place + "the example has it twice");
  EXPECT_EQ(Refusal(steps({BytesFeature({"abc"})}), RawSteps("x")),
            place + "step 0: expected a string of 2 bytes, for uint8 of shape [2], got 3 bytes");
  EXPECT_EQ(Refusal(steps({BytesFeature({"ab", "cd"})}), RawSteps("x")),
            place + "step 0: expected one string in a bytes_list, got 2");
  EXPECT_EQ(Refusal(ExampleOf({{"x", BytesFeature({"ab", "cd", "ef", "gh"})}}), RawSteps("x")),
            place + "expected at most 3 steps of one string in a bytes_list, got 4");
}

TEST(TfRecord, NamesTheRecordOfAWrongLabel) {
  const Folder folder;
  std::vector<uint64_t> offsets;
  const auto source =
      Opened(NumberedOptions({folder.Write("a.tfrecord", NumberedRecords(0, 20, &offsets))}));
  PipelineOptions options = OptionsFor(*source);
  options.shuffle = false;
  options.columns[1].classes = 7;
  const auto pipeline = Made(source, options);
  EXPECT_NE(pipeline->Next(), nullptr) << "labels 0 to 3";
  EXPECT_EQ(pipeline->Next(), nullptr) << "labels 4 to 7";
  EXPECT_EQ(Message(pipeline->status()),
            StrCat(folder.path(), "/a.tfrecord: record at byte ", offsets[7],
                   ": label 7 is out of range; expected an integer from 0 to 6, since the model "
                   "has 7 outputs"));
  EXPECT_EQ(pipeline->drawn(), 1);
  EXPECT_EQ(pipeline->Next(), nullptr) << "the error stays";
  pipeline->Seek(0);
  EXPECT_NE(pipeline->Next(), nullptr);
  EXPECT_TRUE(pipeline->status().ok());
}

// Checks that each task gets the same batches as from a table in memory, for every division of the
// examples among tasks.
TEST(TfRecord, GivesTheBatchesThatATableGives) {
  const Folder folder;
  folder.Write("part-1", NumberedRecords(40, 63));
  folder.Write("part-0", NumberedRecords(0, 40));
  const auto records = Opened(NumberedOptions({folder.path() + "/part-*"}));
  const auto table = NumberedTable(103);
  ASSERT_EQ(records->size(), 103);
  for (const int64_t global_batch : {0, 12}) {
    for (int64_t worker = 0; worker < 3; ++worker) {
      PipelineOptions options = OptionsFor(*records);
      options.epochs = 2;
      options.worker = worker;
      options.workers = 3;
      options.global_batch = global_batch;
      const auto got = Drain(*Made(records, options));
      EXPECT_TRUE(got.second.ok()) << got.second;
      EXPECT_EQ(got.first, Drain(*Made(table, options)).first) << worker << " " << global_batch;
    }
  }
}

TEST(TfRecord, ContinuesAtEveryPosition) {
  const Folder folder;
  const auto source = Opened(NumberedOptions({folder.Write("a", NumberedRecords(0, 30))}));
  PipelineOptions options = OptionsFor(*source);
  options.epochs = 2;
  const std::vector<int64_t> whole = Drain(*Made(source, options)).first;
  ASSERT_EQ(whole.size(), 60u);
  const auto pipeline = Made(source, options);
  for (int64_t drawn = 15; drawn >= 0; --drawn) {
    pipeline->Seek(drawn);
    const int64_t skipped = drawn / 8 * 30 + drawn % 8 * 4;
    EXPECT_EQ(Drain(*pipeline).first, std::vector<int64_t>(whole.begin() + skipped, whole.end()));
  }
}

TEST(TfRecord, ReadsCompressedFiles) {
  const Folder folder;
  const std::string first = NumberedRecords(0, 50), second = NumberedRecords(50, 50);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"gzip", Compressed(first + second, 31)},
      {"zlib", Compressed(first + second, 15)},
      {"two gzip members", Compressed(first, 31) + Compressed(second, 31)}};
  for (const auto& [name, content] : cases) {
    const auto got = ReadAll(NumberedOptions({folder.Write(name, content)}));
    EXPECT_TRUE(got.second.ok()) << got.second;
    EXPECT_EQ(got.first, Numbers(100)) << name;
  }
  const std::string plain = folder.Write("plain", second);
  const auto mixed =
      ReadAll(NumberedOptions({folder.Write("mixed", Compressed(first, 31)), plain}));
  EXPECT_EQ(mixed.first, Numbers(100)) << mixed.second;
}

TEST(TfRecord, RefusesDamagedCompressedFiles) {
  const Folder folder;
  const std::string whole = Compressed(NumberedRecords(0, 500), 31);
  const std::string path = folder.Write("a.gz", whole.substr(0, whole.size() / 2));
  EXPECT_EQ(Message(OpenTfRecords(NumberedOptions({path})).status()),
            StrCat(path, ": the compressed data is damaged at byte ", whole.size() / 2,
                   ": it ends early; replace the file, or set on_damaged: "
                   "skip to leave out what is damaged"));
  RecordOptions skip = NumberedOptions({path});
  skip.skip_damaged = true;
  const auto got = ReadAll(skip);
  EXPECT_TRUE(got.second.ok()) << got.second;
  EXPECT_GT(got.first.size(), 100u) << "the records before the damage";
  EXPECT_EQ(got.first, Numbers(static_cast<int64_t>(got.first.size())));
  EXPECT_FALSE(ReadAll(NumberedOptions({folder.Write("b", whole + "more")})).second.ok());

  std::string zeros;
  io::AppendRecord(std::string(66 << 20, '\0'), zeros);
  const std::string bomb = folder.Write("bomb", Compressed(zeros, 31));
  EXPECT_EQ(Message(OpenTfRecords(NumberedOptions({bomb})).status()),
            StrCat(bomb,
                   ": it unpacks to more than 67108864 bytes, 100 times its size; if it is "
                   "meant to, unpack the file"));
}

TEST(TfRecord, FindsFiles) {
  const Folder folder;
  const std::string a = folder.Write("a.rec", NumberedRecords(0, 1));
  const std::string b = folder.Write("b.rec", NumberedRecords(1, 1));
  EXPECT_EQ(ReadAll(NumberedOptions({folder.path() + "/*.rec"})).first, Numbers(2));
  EXPECT_EQ(ReadAll(NumberedOptions({b, a})).first, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(Message(ReadAll(NumberedOptions({a, folder.path() + "/*"})).second),
            a + ": the file is listed twice, or matches two patterns; expected each file once");
  EXPECT_EQ(Message(ReadAll(NumberedOptions({folder.path() + "/*.tfrecord"})).second),
            folder.path() + "/*.tfrecord: no file matches this pattern");
  EXPECT_EQ(ReadAll(NumberedOptions({folder.path() + "/c.rec"})).second.code(),
            StatusCode::kNotFound);
}

TEST(TfRecord, ReadsMoreFilesThanItKeepsOpen) {
  const Folder folder;
  for (int64_t i = 0; i < 150; ++i)
    folder.Write(StrCat("part-", 1000 + i), NumberedRecords(2 * i, 2));
  const auto source = Opened(NumberedOptions({folder.path() + "/part-*"}));
  std::vector<int64_t> numbers = Drain(*Made(source, OptionsFor(*source))).first;
  EXPECT_NE(numbers, Numbers(300)) << "shuffled";
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(numbers, Numbers(300));
}

TEST(TfRecord, ReadsRecordsThatAreLongerThanItsBuffer) {
  const Folder folder;
  std::string content;
  for (const int64_t size : {200'000, 3, 100'000, 70'000}) {
    std::vector<int64_t> values(static_cast<size_t>(size), 1);
    values.back() = size;
    io::AppendRecord(ExampleOf({{"x", Int64Feature(values)}}), content);
  }
  const RecordOptions options{
      .files = {folder.Write("a", content)},
      .features = {{.name = "x", .dtype = DType::kInt64, .shape = {200'000}, .variable = true}},
      .fields = {{"x", "x"}}};
  const auto source = Opened(options);
  PipelineOptions reading = OptionsFor(*source);
  reading.shuffle = false;
  const auto pipeline = Made(source, reading);
  const Batch* batch = pipeline->Next();
  ASSERT_NE(batch, nullptr) << pipeline->status();
  const auto values = batch->Find("x")->data<int64_t>();
  EXPECT_EQ(values[199'999], 200'000);
  EXPECT_EQ(values[200'002], 3);
  EXPECT_EQ(values[499'999], 100'000);
  EXPECT_EQ(values[669'999], 70'000);
}

TEST(TfRecord, KeepsALongIndexInAFile) {
  const Folder folder;
  RecordOptions options = NumberedOptions({folder.Write("a", NumberedRecords(0, 1000))});
  options.most_indexed_in_memory = 7;
  options.cache_dir = folder.path();
  const auto source = Opened(options);
  EXPECT_EQ(source->size(), 1000);
  std::vector<int64_t> numbers = Drain(*Made(source, OptionsFor(*source))).first;
  std::sort(numbers.begin(), numbers.end());
  EXPECT_EQ(numbers, Numbers(1000));
  options.cache_dir = folder.path() + "/missing";
  EXPECT_EQ(Message(OpenTfRecords(options).status()),
            StrCat("cache_dir (without it, TMPDIR) must be a folder with enough room: create a "
                   "temporary file in ",
                   options.cache_dir, ": No such file or directory"));
}

TEST(TfRecord, TakesEachOfManyExamplesOnceWithoutAList) {
  constexpr int64_t kCount = 3000;
  const Folder folder;
  std::string content;
  for (int64_t i = 0; i < kCount; ++i)
    io::AppendRecord(ExampleOf({{"x", Int64Feature({i})}}), content);
  const auto source = Opened({.files = {folder.Write("a", content)},
                              .features = {{.name = "x", .dtype = DType::kInt64}},
                              .fields = {{"x", "x"}}});
  ASSERT_EQ(source->size(), kCount);
  std::vector<bool> seen(static_cast<size_t>(kCount));
  int64_t in_place = 0, count = 0;
  for (int64_t worker = 0; worker < 2; ++worker) {
    PipelineOptions options = OptionsFor(*source);
    options.batch_size = 64;
    options.most_listed = 1000;
    options.worker = worker;
    options.workers = 2;
    const auto pipeline = Made(source, options);
    while (const Batch* batch = pipeline->Next()) {
      for (const int64_t x : batch->Find("x")->data<int64_t>()) {
        EXPECT_FALSE(seen[static_cast<size_t>(x)]) << x;
        seen[static_cast<size_t>(x)] = true;
        in_place += x == count++ ? 1 : 0;
      }
    }
    EXPECT_TRUE(pipeline->status().ok()) << pipeline->status();
  }
  EXPECT_EQ(count, kCount);
  EXPECT_LT(in_place, 20) << "a random order keeps about one in its place";
}

// Checks that fingerprints differ if tasks have the same number of examples, but different
// examples.
TEST(TfRecord, FingerprintsTellExamplesApart) {
  const Folder folder;
  std::vector<uint64_t> offsets;
  const std::string whole = NumberedRecords(0, 20, &offsets);
  const auto without = [&](size_t record) {
    std::string content = whole;
    ++content[offsets[record] + 20];
    RecordOptions options = NumberedOptions({folder.Write(StrCat("without-", record), content)});
    options.skip_damaged = true;
    return options;
  };
  const auto fingerprint = [](const RecordOptions& options) {
    return Opened(options)->fingerprint();
  };
  EXPECT_EQ(Opened(without(3))->size(), Opened(without(7))->size());
  EXPECT_EQ(fingerprint(without(3)), fingerprint(without(3)));
  EXPECT_NE(fingerprint(without(3)), fingerprint(without(7)));

  RecordOptions options = NumberedOptions({folder.Write("plain", whole)});
  const uint64_t plain = fingerprint(options);
  EXPECT_EQ(fingerprint(NumberedOptions({folder.Write("gz", Compressed(whole, 31))})), plain);
  options.most_indexed_in_memory = 2;
  EXPECT_EQ(fingerprint(options), plain);
  const std::string first = folder.Write("0", whole.substr(0, offsets[10]));
  const std::string second = folder.Write("1", whole.substr(offsets[10]));
  EXPECT_EQ(fingerprint(NumberedOptions({first, second})), plain);
  EXPECT_NE(fingerprint(NumberedOptions({second, first})), plain);
  EXPECT_NE(fingerprint(NumberedOptions({folder.Write("others", NumberedRecords(20, 20))})), plain);

  options = NumberedOptions({folder.path() + "/plain"});
  options.features[1].variable = true;
  const uint64_t variable = fingerprint(options);
  EXPECT_NE(variable, plain);
  options.features[1].fill = 1;
  EXPECT_NE(fingerprint(options), variable);
  options = NumberedOptions({folder.path() + "/plain"});
  std::swap(options.fields[0].feature, options.fields[1].feature);
  EXPECT_NE(fingerprint(options), plain);
  EXPECT_EQ(NumberedTable(20)->fingerprint(), 0u);
}

}  // namespace
}  // namespace tfjob::data
