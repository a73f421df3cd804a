// Tests datasets of text and of terms, and CSV columns that are selected by name.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "tests/api/programs.h"

namespace {

std::string WriteText(const std::string& name, const std::string& content) {
  const std::string path = Temp(name);
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

// Returns the error of evaluating a small model on the data.
std::string TextError(const tj::Dataset& data) {
  return Compiled().Evaluate(data).status().message();
}

tj::CompiledModel NextByte() {
  const tj::Model model =
      tj::Sequential({tj::Input{.shape = {6}, .dtype = "int64"},
                      tj::Embedding{.input_dim = 259, .output_dim = 8}, tj::Dense{.units = 259}});
  return tj::Session(tj::Strategy::OneDevice(), {.threads = 1})
      .Compile(model, {.optimizer = tj::Adam{.learning_rate = 0.05},
                       .loss = tj::SparseCategoricalCrossentropy{.from_logits = true}})
      .value();
}

double LossOf(tj::CompiledModel& model, const tj::Dataset& data) {
  const auto evaluated = model.Evaluate(data).value().values();
  EXPECT_EQ(evaluated.at(0).first, "loss");
  return evaluated.at(0).second;
}

TEST(Text, TeachesTheNextToken) {
  const tj::data::Text text{.files = {WriteText("next.txt", "abcabc\nbcabca\ncabcab\n")},
                            .tokenize = {.name = "byte", .max_length = 6}};
  tj::CompiledModel model = NextByte();
  const double before = LossOf(model, text);
  ASSERT_TRUE(model.Fit(text, Quietly(60)).ok());
  const double after = LossOf(model, text);
  EXPECT_LT(after, before / 2);
}

TEST(Text, ItsKeysAreChecked) {
  std::string error = TextError(tj::data::Text{.files = {"x.txt"}});
  EXPECT_NE(error.find("data.eval.tokenize.max_length: expected a length from 1 to"),
            std::string::npos)
      << error;
  error = TextError(tj::data::Text{
      .files = {"x.txt"}, .tokenize = {.name = "bpe", .vocabulary = "v.json", .max_length = 4}});
  EXPECT_NE(error.find("data.eval.tokenize.merges: expected a file"), std::string::npos) << error;
}

TEST(Csv, ColumnsByNameTrainLikeTheSameArrays) {
  const tj::data::Arrays points = Points(64);
  std::string rows = "class,x1,note,x0\n";
  for (size_t i = 0; i < 64; ++i) {
    char numbers[64];
    std::snprintf(numbers, sizeof(numbers), "%.9g,\"a, b\",%.9g\n",
                  static_cast<double>(points.x.float32()[2 * i + 1]),
                  static_cast<double>(points.x.float32()[2 * i]));
    rows += std::string(points.y.int64()[i] == 1 ? "above," : "below,") + numbers;
  }
  tj::CompiledModel arrays = Compiled(), named = Compiled();
  ASSERT_TRUE(arrays.Fit(points, Quietly(2)).ok());
  const auto fitted = named.Fit(
      tj::data::Csv{
          .file = WriteText("named.csv", rows),
          .features = {{"point", {.columns = {"x0", "x1"}}},
                       {"class",
                        {.dtype = "string", .terms = {"below", "above"}, .num_oov_indices = 0}}},
          .inputs = {{"", "point"}},
          .targets = {{"", "class"}}},
      Quietly(2));
  ASSERT_TRUE(fitted.ok()) << fitted.status();
  EXPECT_EQ(WeightsOf(named), WeightsOf(arrays));
}

TEST(Csv, AFeatureHasOneVocabulary) {
  const std::string error = TextError(tj::data::Csv{
      .file = "x.csv",
      .features = {{"x", {.dtype = "string", .terms = {"a"}, .vocabulary = "v.txt"}}}});
  EXPECT_NE(error.find("feature x: expected either terms or a vocabulary, got both"),
            std::string::npos)
      << error;
}

}  // namespace
