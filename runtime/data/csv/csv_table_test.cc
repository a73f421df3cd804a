// Tests loading columns of CSV files by name: numbers, terms, texts, quotation marks and invalid
// files.
#include "runtime/data/csv/csv_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/data/csv/csv_records.h"
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

// Loads one feature, as the array "x", from a file with this content.
StatusOr<Dataset> Load(std::string_view content, const CsvFeature& feature) {
  const TextFolder folder;
  return LoadCsvTable({.file = folder.Write("t.csv", content),
                       .features = {feature},
                       .fields = {{"x", feature.feature.name}}});
}

Ids IdsOf(const StatusOr<Dataset>& dataset) {
  EXPECT_TRUE(dataset.ok()) << dataset.status();
  if (!dataset.ok()) return {};
  const auto values = dataset->Find("x")->values.data<int64_t>();
  return {values.begin(), values.end()};
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
  const Array& both = *floats->Find("x");
  EXPECT_EQ(both.values.shape(), (Shape{2, 2}));
  EXPECT_THAT(both.values.data<float>(), ::testing::ElementsAre(1.5, 31, 2, 42));
  EXPECT_THAT(floats->place(1), ::testing::HasSubstr("t.csv: line 3"));
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

TEST(CsvTable, ValuesMustFitIntoMemory) {
  const TextFolder folder;
  const CsvFeature feature = Number("n", DType::kInt64);
  CsvTableOptions options{.file = folder.Write("t.csv", "n\n1\n\"2\"\n3\n"),
                          .features = {feature},
                          .fields = {{"x", "n"}},
                          .most_bytes = 24};
  EXPECT_EQ(IdsOf(LoadCsvTable(options)), (Ids{1, 2, 3}));
  options.most_bytes = 23;
  const Status error = LoadCsvTable(options).status();
  EXPECT_TRUE(absl::IsInvalidArgument(error)) << error;
  EXPECT_THAT(Message(error), ::testing::HasSubstr("t.csv: the values of 3 records, of 8 bytes "
                                                   "each, need more than the 23 bytes that"));
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
