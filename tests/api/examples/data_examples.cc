// Examples of dataset.h.
#include <gtest/gtest.h>

#include "tests/api/examples/example_files.h"
#include "tests/api/examples/working_folder.h"
#include "tests/api/programs.h"

namespace {

using namespace tfjob;  // NOLINT: the examples of the reference omit the namespace

// Creates files that the examples read by their names alone.
class DataExamples : public testing::Test {
 protected:
  DataExamples() { examples::WriteFiles(folder_.path()); }

  // Returns how many examples a model of these inputs gets.
  static int64_t Count(const Dataset& dataset, const Model& model = Classifier()) {
    const Session session(Strategy::OneDevice(), {.threads = 1});
    Result<CompiledModel> compiled =
        session.Compile(model, {.loss = SparseCategoricalCrossentropy{.from_logits = true}});
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    const auto outputs = compiled->Predict(dataset);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    return outputs.ok() ? outputs->begin()->second.shape()[0] : -1;
  }
  static Model Chain(const Input& input, int64_t units = 2) {
    return Sequential({input, Flatten{}, Dense{.units = units}});
  }

  const WorkingFolder folder_{"data_examples"};
};

TEST_F(DataExamples, Memory) {
  const Tensor points = Points(20).x, classes = Points(20).y;
  // [Dataset, data::Arrays]
  const Dataset train = data::Arrays{.x = points, .y = classes};
  const Dataset named =
      data::Arrays{.inputs = {{"left", points}, {"right", points}}, .targets = {{"same", classes}}};
  // [end]
  EXPECT_EQ(Count(train), 20);
  // [Dataset::Skip, Dataset::Take]
  const Dataset test = train.Take(5), rest = train.Skip(5);
  // [end]
  EXPECT_EQ(Count(test), 5);
  EXPECT_EQ(Count(rest), 15);
  // [Dataset::Repeat, Dataset::Concatenate]
  const Dataset longer = test.Repeat(3).Concatenate(rest);
  // [end]
  EXPECT_EQ(Count(longer), 30);
  // [Dataset::Map, Dataset::Filter, Dataset::Cache, data::Example]
  const Dataset positive = train
                               .Filter([](const data::Example& example) -> Result<bool> {
                                 return example.y.int64()[0] == 1;
                               })
                               .Map([](const data::Example& example) -> Result<data::Example> {
                                 data::Example scaled = {.x = example.x.Clone(), .y = example.y};
                                 for (float& value : scaled.x.float32()) value *= 2;
                                 return scaled;
                               })
                               .Cache();  // the functions are called only when Fit starts
  // [end]
  const int64_t ones = Count(positive);
  EXPECT_TRUE(ones > 0 && ones < 20) << ones;
  // [data::Mix, data::Interleave]
  const Dataset mixed = data::Mix({test, rest}, {0.25, 0.75});  // a quarter from `test`
  const Dataset blocks = data::Interleave({test, rest}, 2, 4);  // four of each in turn
  // [end]
  EXPECT_GT(Count(mixed), 15);
  EXPECT_EQ(Count(blocks), 20);
  const Dataset labels = data::Arrays{.targets = {{"logits", classes}}};
  const Dataset inputs = data::Arrays{.inputs = {{"dense_input", points}}};
  const Symbol x = Input{.shape = {2}, .name = "dense_input"};
  // [data::Zip]
  const Dataset both = data::Zip({inputs, labels});
  // [end]
  EXPECT_EQ(Count(both, Functional(x, Dense{.units = 2, .name = "logits"}(x))), 20);
}

// [data::Source, data::Source::size, data::Source::Row]
// Numbers and their squares.
class Squares : public data::Source {
 public:
  int64_t size() const override { return 1000; }
  Result<data::Example> Row(int64_t i) const override {
    data::Example example = {.x = Tensor(DType::kFloat32, {1}), .y = Tensor(DType::kFloat32, {1})};
    example.x.float32()[0] = static_cast<float>(i);
    example.y.float32()[0] = static_cast<float>(i * i);
    return example;
  }
};
// [end]

TEST_F(DataExamples, Programs) {
  // [data::From]
  const Dataset squares = data::From(std::make_shared<Squares>());
  // [end]
  EXPECT_EQ(Count(squares, Chain({.shape = {1}})), 1000);
  // [Dataset::CacheFile]
  // The version changes whenever the class Squares does.
  const Dataset cached = squares.CacheFile("squares.cache", "version 1");
  // [end]
  EXPECT_EQ(Count(cached, Chain({.shape = {1}})), 1000);
  EXPECT_TRUE(std::filesystem::exists("squares.cache"));
  // [data::Generator]
  const Dataset counted = data::Generator{
      .start = []() -> Result<data::Generator::Next> {
        return data::Generator::Next([i = 0]() mutable -> Result<std::optional<data::Example>> {
          if (i == 100) return std::optional<data::Example>();
          data::Example example = {.x = Tensor(DType::kFloat32, {1}),
                                   .y = Tensor(DType::kInt64, {})};
          example.x.float32()[0] = static_cast<float>(i++);
          return std::optional(example);
        });
      },
      .size = 100};
  // [end]
  EXPECT_EQ(Count(counted, Chain({.shape = {1}})), 100);
}

TEST_F(DataExamples, Numbers) {
  // [data::Idx]
  const Dataset images = data::Idx{.images = "fashion/train-images-idx3-ubyte.gz",
                                   .labels = "fashion/train-labels-idx1-ubyte.gz",
                                   .scale = 1.0 / 255};
  // [end]
  EXPECT_EQ(Count(images, Chain({.shape = {28, 28}}, 10)), 4);
  // [data::FashionMnist, data::TrainAndTest]
  const data::TrainAndTest both = data::FashionMnist("fashion").value();
  const Dataset validation = both.test;
  // [end]
  EXPECT_EQ(Count(both.train, Chain({.shape = {28, 28}}, 10)), 4);
  // [data::Npz]
  const Dataset arrays = data::Npz{.inputs = {{"", "x.npy"}}, .targets = {{"", "y.npy"}}};
  // [end]
  EXPECT_EQ(Count(arrays), 8);
  // [data::Csv]
  const Dataset houses =
      data::Csv{.file = "houses.csv",
                .features = {{"size", {.columns = {"area", "rooms"}}},
                             {"city", {.dtype = "string", .terms = {"Bonn", "Kiel"}}},
                             {"price", {}}},
                .inputs = {{"size", "size"}, {"city", "city"}},
                .targets = {{"", "price"}}};
  // [end]
  const Symbol size = Input{.shape = {2}, .name = "size"};
  const Symbol city = Input{.shape = {}, .dtype = "int64", .name = "city"};
  const Symbol place = Flatten{}(Embedding{.input_dim = 3, .output_dim = 2}(city));
  EXPECT_EQ(
      Count(houses, Functional({size, city}, Dense{.units = 1}(Concatenate{}({size, place})))), 4);
}

TEST_F(DataExamples, Records) {
  // [data::TfRecord, data::Feature]
  const data::Feature point = {.shape = {2}};
  const Dataset records = data::TfRecord{.files = {"*.tfrecord"},
                                         .features = {{"x", point}, {"class", {.dtype = "int64"}}},
                                         .inputs = {{"", "x"}},
                                         .targets = {{"", "class"}}};
  // [end]
  EXPECT_EQ(Count(records), 8);
  // [data::JsonLines]
  const Dataset lines = data::JsonLines{.files = {"points.jsonl"},
                                        .features = {{"x", point}, {"class", {.dtype = "int64"}}},
                                        .inputs = {{"", "x"}},
                                        .targets = {{"", "class"}}};
  // [end]
  EXPECT_EQ(Count(lines), 8);
  // [data::Images]
  const Dataset photos = data::Images{.folder = "photos", .height = 32, .width = 32};
  // [end]
  EXPECT_EQ(Count(photos, Chain({.shape = {32, 32, 3}})), 4);
  const Model model =
      Sequential({Input{.shape = {16}, .dtype = "int64"},
                  Embedding{.input_dim = 300, .output_dim = 4}, Dense{.units = 300}});
  // [data::Text, data::Tokenize]
  const data::Tokenize bytes = {.name = "byte", .max_length = 16, .truncate = true};
  const Dataset stories = data::Text{.files = {"stories.txt"}, .tokenize = bytes};
  // [end]
  EXPECT_EQ(Count(stories, model), 8);
  // [data::Texts]
  const Dataset reviews = data::Texts{
      .folder = "reviews", .tokenize = {.name = "byte", .max_length = 16, .truncate = true}};
  // [end]
  EXPECT_EQ(Count(reviews, model), 4);
}

}  // namespace
