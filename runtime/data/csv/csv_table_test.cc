// Tests loading columns of CSV files by name: numbers, terms, texts, quotation marks and invalid
// files.
#include "runtime/data/csv/csv_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

#include "absl/strings/escaping.h"
#include "runtime/data/csv/csv_records.h"
#include "runtime/data/operators/fields.h"
#include "runtime/data/text/byte_tokenizer.h"
#include "runtime/data/text/test_files.h"

namespace tfjob::data {
namespace {

using text::testing::TextFolder;
using Ids = std::vector<int64_t>;
using Records = std::vector<std::vector<std::string>>;

StatusOr<Records> RecordsOf(std::string_view text, char delimiter = ',') {
  CsvRecords reader(text, delimiter);
  Records records;
  while (true) {
    ASSIGN_OR_RETURN(const bool more, reader.Next());
    if (!more) return records;
    records.emplace_back(reader.fields().begin(), reader.fields().end());
  }
}

TEST(CsvRecords, AreThoseOfRfc4180) {
  EXPECT_EQ(*RecordsOf("a,b\r\n1, 2 \n"), (Records{{"a", "b"}, {"1", "2"}}));
  EXPECT_EQ(*RecordsOf("\xEF\xBB\xBFx\n\n\ny"), (Records{{"x"}, {"y"}}));
  EXPECT_EQ(*RecordsOf(",\n,,"), (Records{{"", ""}, {"", "", ""}}));
  EXPECT_EQ(*RecordsOf("\"a,b\",\"c\nd\"\n"), (Records{{"a,b", "c\nd"}}));
  EXPECT_EQ(*RecordsOf("\"say \"\"x\"\"\", \"\"\"\" ,\"\"\n"), (Records{{"say \"x\"", "\"", ""}}));
  EXPECT_EQ(*RecordsOf("a\tb\t\"c\td\"\n", '\t'), (Records{{"a", "b", "c\td"}}));
  EXPECT_EQ(*RecordsOf("x y z\n1  \"b c\"\n", ' '), (Records{{"x", "y", "z"}, {"1", "", "b c"}}));
  EXPECT_EQ(RecordsOf(std::string(1 << 20, ' '), ' ')->front().size(), (1u << 20) + 1)
      << "in a time that is proportional to the size";
  EXPECT_EQ(*RecordsOf("a,b\r"), (Records{{"a", "b"}}));
  EXPECT_EQ(*RecordsOf("it\"s,5\n"), (Records{{"it\"s", "5"}}));
}

TEST(CsvRecords, RefuseWrongQuotationMarks) {
  EXPECT_EQ(Message(RecordsOf("a\n\"b,c\n").status()),
            "line 2: expected a second quotation mark, but the file ends before it");
  EXPECT_THAT(std::string(RecordsOf("\"x\ny\"\n\"a\"b\n").status().message()),
              ::testing::HasSubstr("line 3: expected the delimiter after a field in quotation"));
}

CsvFeature Number(const std::string& name, DType dtype, std::optional<double> fill = {}) {
  return {.feature = {.name = name, .dtype = dtype, .fill = fill}, .columns = {name}};
}

CsvFeature Colour(int64_t oov) {
  auto terms = text::Vocabulary::FromTerms({"red", "green"}, oov, "colours");
  return {.feature = {.name = "colour",
                      .dtype = DType::kInt64,
                      .vocabulary = std::make_shared<const text::Vocabulary>(*std::move(terms))},
          .columns = {"colour"}};
}

// Returns the error of a table in memory, after checking that the error on disk names the file,
// too. The errors may differ, because all records are found before the first one is read from the
// disk.
Status ErrorOfBoth(const Status& memory, const Status& disk) {
  EXPECT_THAT(std::string(Message(memory)), ::testing::HasSubstr("t.csv: "));
  EXPECT_THAT(std::string(Message(disk)), ::testing::HasSubstr("t.csv: "));
  return memory;
}

// Returns the values of the only field, "x", for all examples.
StatusOr<Tensor> ValuesOf(const Source& source, Column column) {
  ASSIGN_OR_RETURN(const std::unique_ptr<RowReader> reader, source.Open({column}));
  std::vector<int64_t> rows(static_cast<size_t>(source.size()));
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<int64_t> dims = column.shape.dims();
  dims.insert(dims.begin(), source.size());
  std::vector<NamedTensor> tensors = {{"x", Tensor(column.dtype, Shape(std::move(dims)))}};
  RETURN_IF_ERROR(reader->Read(rows, tensors));
  return tensors[0].value;
}

// Loads one feature, as the field "x", from a file with this content, once in memory and once on
// disk. Checks that both have the same values, or errors.
StatusOr<Tensor> Load(std::string_view content, const CsvFeature& feature) {
  const TextFolder folder;
  CsvTableOptions options{.file = folder.Write("t.csv", content),
                          .features = {feature},
                          .fields = {{"x", feature.feature.name}}};
  const auto load = [&]() -> StatusOr<Tensor> {
    ASSIGN_OR_RETURN(const std::shared_ptr<const Source> source, OpenCsvTable(options));
    EXPECT_EQ(source->in_memory(), options.storage.most_in_memory > 0);
    return ValuesOf(*source, ColumnOf(*source->Find("x")));
  };
  StatusOr<Tensor> memory = load();
  options.storage.most_in_memory = 0;
  const StatusOr<Tensor> disk = load();
  EXPECT_EQ(memory.ok(), disk.ok()) << memory.status() << disk.status();
  if (memory.ok() && disk.ok()) {
    EXPECT_EQ(memory->shape(), disk->shape());
    EXPECT_TRUE(std::ranges::equal(std::as_const(*memory).bytes(), disk->bytes()));
  }
  return memory.ok() ? memory : disk.ok() ? disk : ErrorOfBoth(memory.status(), disk.status());
}

Ids IdsOf(const StatusOr<Tensor>& values) {
  EXPECT_TRUE(values.ok()) << values.status();
  if (!values.ok()) return {};
  const auto ids = values->data<int64_t>();
  return {ids.begin(), ids.end()};
}

std::string ErrorOf(std::string_view content, const CsvFeature& feature) {
  const Status error = Load(content, feature).status();
  EXPECT_TRUE(absl::IsInvalidArgument(error)) << error;
  return std::string(error.message());
}

constexpr char kTable[] = "age,colour,note,height\n31,red,\"a,b\",1.5\n42,blue,,2\n";

TEST(CsvTable, ColumnsHaveNames) {
  EXPECT_EQ(IdsOf(Load(kTable, Number("age", DType::kInt64))), (Ids{31, 42}));
  EXPECT_EQ(IdsOf(Load(kTable, Colour(1))), (Ids{1, 0}));
  const auto floats =
      Load(kTable, {.feature = {.name = "both", .shape = {2}}, .columns = {"height", "age"}});
  ASSERT_TRUE(floats.ok()) << floats.status();
  EXPECT_EQ(floats->shape(), (Shape{2, 2}));
  EXPECT_THAT(floats->data<float>(), ::testing::ElementsAre(1.5, 31, 2, 42));
  const text::SequenceOptions bytes{.tokenizer = std::make_shared<text::ByteTokenizer>()};
  EXPECT_EQ(IdsOf(Load(
                kTable,
                {.feature = {.name = "note", .dtype = DType::kInt64, .shape = {4}, .tokens = bytes},
                 .columns = {"note"}})),
            (Ids{'a' + 3, ',' + 3, 'b' + 3, 0, 0, 0, 0, 0}));
}

TEST(CsvTable, EmptyFieldsHaveADefaultOrAreErrors) {
  EXPECT_EQ(IdsOf(Load("n,m\n1,0\n,0\n", Number("n", DType::kInt64, -1))), (Ids{1, -1}));
  EXPECT_THAT(ErrorOf("n,m\n1,0\n,0\n", Number("n", DType::kInt64)),
              ::testing::HasSubstr("t.csv: line 3: column n: expected a value, got an empty"));
}

TEST(CsvTable, AreOnDiskIfTheTextOrTheValuesAreLarge) {
  const TextFolder folder;
  const CsvFeature feature = Number("n", DType::kInt64);
  CsvTableOptions options{.file = folder.Write("t.csv", "n\n1\n\"2\"\n3\n"),
                          .features = {feature},
                          .fields = {{"x", "n"}},
                          .storage = {.most_in_memory = 24}};
  EXPECT_TRUE((*OpenCsvTable(options))->in_memory());
  options.storage.most_in_memory = 23;
  const auto disk = OpenCsvTable(options);
  ASSERT_TRUE(disk.ok()) << disk.status();
  EXPECT_FALSE((*disk)->in_memory());
  EXPECT_EQ(IdsOf(ValuesOf(**disk, ColumnOf((*disk)->fields()[0]))), (Ids{1, 2, 3}));
}

// The fingerprint must differ: a cache file would otherwise be reused for other columns, and tasks
// would not notice that they read different ones.
TEST(CsvTable, TheColumnsArePartOfTheFingerprint) {
  const TextFolder folder;
  CsvFeature feature = Number("n", DType::kInt64);
  const std::string file = folder.Write("t.csv", "n,m\n1,2\n3,4\n");
  const auto fingerprint = [&](const std::string& column) {
    feature.columns = {column};
    const auto source = OpenCsvTable({.file = file,
                                      .features = {feature},
                                      .fields = {{"x", "n"}},
                                      .storage = {.most_in_memory = 0}});
    EXPECT_TRUE(source.ok()) << source.status();
    return source.ok() ? (*source)->fingerprint() : 0;
  };
  EXPECT_NE(fingerprint("n"), fingerprint("m"));
  EXPECT_EQ(fingerprint("n"), fingerprint("n"));
}

TEST(CsvTable, QuotedFieldsMayHaveLineBreaks) {
  const text::SequenceOptions bytes{.tokenizer = std::make_shared<text::ByteTokenizer>()};
  const CsvFeature note{
      .feature = {.name = "note", .dtype = DType::kInt64, .shape = {5}, .tokens = bytes},
      .columns = {"note"}};
  const auto byte = [](char c) { return text::ByteTokenizer::kFirstByte + c; };
  EXPECT_EQ(IdsOf(Load("\"no\nte\",\"note\"\r\n\n1, \"a\n\"\"b\" \r\n2,c\"d\n3,\"\n\n\"", note)),
            (Ids{byte('a'), byte('\n'), byte('"'), byte('b'), 0,  //
                 byte('c'), byte('"'), byte('d'), 0, 0,           //
                 byte('\n'), byte('\n'), 0, 0, 0}));
}

// Cuts random text into records, whose number and lines must be the same in memory and on disk.
TEST(CsvTable, RecordsOnDiskAreThoseInMemory) {
  std::mt19937 random(7);
  const text::SequenceOptions bytes{.tokenizer = std::make_shared<text::ByteTokenizer>(),
                                    .truncate = true};
  const CsvFeature first{
      .feature = {.name = "n", .dtype = DType::kInt64, .shape = {4}, .tokens = bytes},
      .columns = {"n"}};
  for (int round = 0; round < 500; ++round) {
    std::string text = round % 2 == 0 ? "n\n" : "n,m\n";
    const size_t size = random() % 60;
    for (size_t i = 0; i < size; ++i) text += "\"\"\",,\n\n\r a\t"[random() % 11];
    (void)Load(text, first);
    ASSERT_FALSE(testing::Test::HasFailure()) << "text: " << absl::CEscape(text);
  }
}

TEST(CsvTable, ValuesThatColumnsRefuseAreNamed) {
  const TextFolder folder;
  for (const uint64_t most : {uint64_t{0}, kMostInMemory}) {
    const auto source = OpenCsvTable({.file = folder.Write("t.csv", "n\n0\n\"7\"\n"),
                                      .features = {Number("n", DType::kInt64)},
                                      .fields = {{"x", "n"}},
                                      .storage = {.most_in_memory = most}});
    ASSERT_TRUE(source.ok()) << source.status();
    EXPECT_THAT(std::string(Message(ValuesOf(**source, ClassColumn("x", 2)).status())),
                ::testing::HasSubstr("t.csv: line 3: label 7 is out of range"));
  }
}

TEST(CsvTable, ErrorsOnDiskNameTheLine) {
  const TextFolder folder;
  const auto error = [&](const std::string& content) {
    const auto source = OpenCsvTable({.file = folder.Write("t.csv", content),
                                      .features = {Number("n", DType::kInt64)},
                                      .fields = {{"x", "n"}},
                                      .storage = {.most_in_memory = 0}});
    if (!source.ok()) return std::string(Message(source.status()));
    return std::string(Message(ValuesOf(**source, ColumnOf((*source)->fields()[0])).status()));
  };
  EXPECT_THAT(error("n,m\n1,\"a\n\"\n2,\"b\n"),
              ::testing::HasSubstr("t.csv: line 4: expected a second quotation mark, but the file "
                                   "ends before it; replace the file"));
  EXPECT_THAT(error("n,m\n1,\"a\n\"\n2,\"b\"c\n"),
              ::testing::HasSubstr("t.csv: line 4: expected the delimiter after a field in"));
  EXPECT_THAT(error("n,m\n1,\"a\n\"\n2\n"),
              ::testing::HasSubstr("t.csv: line 4: expected 2 fields, got 1"));
  EXPECT_THAT(error("n,m\n1,\"a\n\"\nx,2\n"),
              ::testing::HasSubstr("t.csv: line 4: column n: expected an integer of 64 bits"));
  EXPECT_THAT(error("n\n"), ::testing::HasSubstr("t.csv: expected at least one intact record"));
}

TEST(CsvTable, IntegersAreExact) {
  EXPECT_EQ(IdsOf(Load("n\n9007199254740993\n-5\n7.0\n", Number("n", DType::kInt64))),
            (Ids{9007199254740993, -5, 7}));
  EXPECT_THAT(
      ErrorOf("n\n0.5\n", Number("n", DType::kInt64)),
      ::testing::HasSubstr("line 2: column n: expected an integer of 64 bits, got \"0.5\""));
  EXPECT_THAT(ErrorOf("n\n1e300\n", Number("n", DType::kFloat32)),
              ::testing::HasSubstr("fits into float32, got \"1e300\""));
}

TEST(CsvTable, WrongFilesAreNamed) {
  EXPECT_THAT(
      ErrorOf(kTable, Colour(0)),
      ::testing::HasSubstr("t.csv: line 3: column colour: expected a term of the vocabulary "
                           "colours, got \"blue\""));
  EXPECT_THAT(ErrorOf(kTable, Number("agee", DType::kInt64)),
              ::testing::HasSubstr("line 1: no column \"agee\"; did you mean \"age\"?"));
  EXPECT_THAT(ErrorOf("n,n\n1,2\n", Number("n", DType::kInt64)),
              ::testing::HasSubstr("line 1: expected one column \"n\", got several"));
  EXPECT_THAT(ErrorOf("n,m\n1\n", Number("n", DType::kInt64)),
              ::testing::HasSubstr("line 2: expected 2 fields, got 1"));
  EXPECT_THAT(ErrorOf("n\n", Number("n", DType::kInt64)),
              ::testing::HasSubstr("t.csv: the file has no records after its header"));
  EXPECT_THAT(ErrorOf("", Number("n", DType::kInt64)),
              ::testing::HasSubstr("t.csv: the file is empty; expected the names of columns"));
}

}  // namespace
}  // namespace tfjob::data
