// Trains on datasets that operators create, and checks that the weights are the same as after
// training on arrays of the same examples.
#include <gtest/gtest.h>
#include <tfjob/tfjob.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tj = tfjob;

namespace {

using tj::data::Example;

// Returns the examples x = i / 50, y = x - 1, where i are the given numbers.
tj::Dataset Points(const std::vector<int>& numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  tj::Tensor x(tj::DType::kFloat32, {count, 1}), y(tj::DType::kFloat32, {count, 1});
  for (size_t i = 0; i < numbers.size(); ++i) {
    x.float32()[i] = static_cast<float>(numbers[i]) / 50;
    y.float32()[i] = x.float32()[i] - 1;
  }
  return tj::data::Arrays{.x = x, .y = y};
}

std::vector<int> Range(int begin, int end) {
  std::vector<int> numbers;
  for (int i = begin; i < end; ++i) numbers.push_back(i);
  return numbers;
}

Example Point(int64_t i) {
  Example example = {.x = tj::Tensor(tj::DType::kFloat32, {1}),
                     .y = tj::Tensor(tj::DType::kFloat32, {1})};
  example.x.float32()[0] = static_cast<float>(i) / 50;
  example.y.float32()[0] = example.x.float32()[0] - 1;
  return example;
}

tj::CompiledModel Model() {
  return tj::Session(tj::Strategy::OneDevice(), {.seed = 3, .threads = 1})
      .Compile(tj::Sequential({tj::Input{.shape = {1}}, tj::Dense{.units = 1}}),
               {.optimizer = tj::SGD{.learning_rate = 0.1}, .loss = "mean_squared_error"})
      .value();
}

tj::FitOptions Options(bool shuffle = true) {
  return {.batch_size = 8, .epochs = 2, .shuffle = shuffle, .verbose = tj::Verbose::kSilent};
}

// Trains on these examples, and returns the weights, or an empty list after an error.
std::vector<float> Trained(const tj::Dataset& data, bool shuffle = true) {
  tj::CompiledModel model = Model();
  const auto history = model.Fit(data, Options(shuffle));
  EXPECT_TRUE(history.ok()) << history.status();
  if (!history.ok()) return {};
  std::vector<float> all;
  for (const auto& [name, tensor] : model.Weights().value())
    all.insert(all.end(), tensor.float32().begin(), tensor.float32().end());
  return all;
}

std::string ErrorOf(const tj::Dataset& data, const tj::FitOptions& options = Options()) {
  return Model().Fit(data, options).status().message();
}

TEST(Dataset, PartsTrainAsTheExamplesThatTheyHave) {
  const tj::Dataset all = Points(Range(0, 60));
  EXPECT_EQ(Trained(all.Skip(10).Take(30)), Trained(Points(Range(10, 40))));
  EXPECT_EQ(Trained(all.Take(20).Concatenate(all.Skip(20))), Trained(all));
  EXPECT_EQ(Trained(Points({1, 2, 3, 4}).Repeat(3)),
            Trained(Points({1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4})));
  EXPECT_EQ(Trained(all.Cache()), Trained(all));
}

TEST(Dataset, AMixIsOfAllItsParts) {
  const tj::Dataset mix =
      tj::data::Mix({Points(Range(0, 20)), Points(Range(20, 40))}, {1, 1}, tj::data::Stop::kAll);
  std::atomic<int> high = 0, low = 0;
  const tj::Dataset counted = mix.Filter([&](const Example& example) -> tj::Result<bool> {
    (example.x.float32()[0] < 0.39f ? low : high) += 1;
    return true;
  });
  Trained(counted);
  EXPECT_GE(low, 20);
  EXPECT_GE(high, 20);
  EXPECT_LE(low + high, 42);
}

TEST(Dataset, InterleavesBlocks) {
  const tj::Dataset data =
      tj::data::Interleave({Points({0, 1, 2, 3}), Points({10, 11, 12}), Points({20, 21})}, 2, 2);
  EXPECT_EQ(Trained(data, false), Trained(Points({0, 1, 10, 11, 2, 3, 12, 20, 21}), false));
}

TEST(Dataset, MapAndFilterCallTheFunctions) {
  const auto odd = [](const Example& example) -> tj::Result<bool> {
    return static_cast<int>(example.x.float32()[0] * 50 + 0.5f) % 2 == 1;
  };
  std::vector<int> numbers;
  for (int i = 1; i < 40; i += 2) numbers.push_back(i);
  EXPECT_EQ(Trained(Points(Range(0, 40)).Filter(odd)), Trained(Points(numbers)));

  const auto next = [](const Example& example) -> tj::Result<Example> {
    return Point(static_cast<int>(example.x.float32()[0] * 50 + 0.5f) + 1);
  };
  EXPECT_EQ(Trained(Points(Range(0, 40)).Map(next)), Trained(Points(Range(1, 41))));
  EXPECT_EQ(Trained(Points(Range(0, 40)).Map(next).Cache()), Trained(Points(Range(1, 41))));
}

TEST(Dataset, FunctionsSeeScaledInputs) {
  tj::Tensor x(tj::DType::kUInt8, {16, 1}), y(tj::DType::kFloat32, {16, 1});
  for (size_t i = 0; i < 16; ++i) x.uint8()[i] = static_cast<uint8_t>(10 * i);
  const tj::Dataset bytes = tj::data::Arrays{.x = x, .y = y, .scale = 0.5};
  const auto same = [](const Example& example) -> tj::Result<Example> {
    EXPECT_EQ(example.x.dtype(), tj::DType::kFloat32);
    EXPECT_LE(example.x.float32()[0], 75);
    return example;
  };
  EXPECT_EQ(Trained(bytes.Map(same)), Trained(bytes));
}

TEST(Dataset, FunctionsSeeScaledInputsNextToFloat64) {
  tj::Tensor x(tj::DType::kUInt8, {16, 1}), wide(tj::DType::kFloat64, {16, 1});
  tj::Tensor y(tj::DType::kFloat32, {16, 1});
  for (size_t i = 0; i < 16; ++i) x.uint8()[i] = 128;
  std::atomic<int> scaled = 0;
  const tj::Dataset both = tj::Dataset(tj::data::Arrays{.x = x, .y = y, .scale = 1.0 / 128})
                               .Concatenate(tj::data::Arrays{.x = wide, .y = y});
  Trained(both.Filter([&](const Example& example) -> tj::Result<bool> {
    if (example.x.float64()[0] == 1) ++scaled;
    return true;
  }));
  EXPECT_EQ(scaled, 16);
}

TEST(Dataset, AChainOfManyConcatenationsIsOneDataset) {
  tj::Dataset all = Points({0});
  for (int i = 1; i < 2000; ++i) all = all.Concatenate(Points({i % 40}));
  std::vector<int> numbers;
  for (int i = 0; i < 2000; ++i) numbers.push_back(i % 40);
  EXPECT_EQ(Trained(all), Trained(Points(numbers)));
}

// If the error kept its code OutOfRange, it would end the run in all tasks, and again after every
// restart.
TEST(Dataset, ErrorsOfFunctionsDoNotFailTheRun) {
  const tj::Status error(tj::StatusCode::kOutOfRange, "no such row");
  const tj::Dataset mapped =
      Points(Range(0, 9)).Map([&](const Example&) -> tj::Result<Example> { return error; });
  const tj::Dataset filtered =
      Points(Range(0, 9)).Filter([&](const Example&) -> tj::Result<bool> { return error; });
  const tj::Dataset generated = tj::data::Generator{
      .start = [&]() -> tj::Result<tj::data::Generator::Next> { return error; }, .size = 9};
  for (const tj::Dataset& data : {mapped, filtered, generated}) {
    const tj::Status status = Model().Fit(data, Options(false)).status();
    EXPECT_EQ(status.code(), tj::StatusCode::kInvalidArgument) << status;
    EXPECT_NE(status.message().find("no such row"), std::string::npos) << status;
  }
}

// Writes a folder of images whose contents no test reads.
std::string Folder(const std::string& name, const std::vector<std::string>& classes) {
  const std::string folder = testing::TempDir() + "/dataset_test_" + name;
  for (const std::string& one : classes) {
    std::filesystem::create_directories(folder + "/" + one);
    std::ofstream(folder + "/" + one + "/1.png") << "pixels";
  }
  return folder;
}

TEST(Dataset, FoldersOfImagesHaveTheSameClasses) {
  const tj::Dataset cats = tj::data::Images{.folder = Folder("a", {"cats", "dogs"})};
  const tj::Dataset ants = tj::data::Images{.folder = Folder("b", {"ants", "cats"})};
  const std::string error = ErrorOf(cats.Concatenate(ants));
  EXPECT_NE(error.find("data.train.datasets[1]: expected the same classes"), std::string::npos)
      << error;
  tj::CompiledModel model =
      tj::Session(tj::Strategy::OneDevice(), {.threads = 1})
          .Compile(tj::Sequential({tj::Flatten{}, tj::Dense{.units = 2}}),
                   {.optimizer = tj::SGD{.learning_rate = 0.1},
                    .loss = tj::SparseCategoricalCrossentropy{.from_logits = true}})
          .value();
  tj::FitOptions options = Options();
  options.validation = &ants;
  const std::string compared = model.Fit(cats.Take(1), options).status().message();
  EXPECT_NE(compared.find("data.eval: expected the same classes as in data.train.datasets[0]"),
            std::string::npos)
      << compared;
}

TEST(Dataset, LayersChangeTheInputsBeforeTheModelSeesThem) {
  tj::CompiledModel changed = Model(), plain = Model();
  const tj::Dataset data = Points(Range(0, 24));
  const tj::Layer triple = tj::Rescaling{.scale = 3};
  tj::FitOptions options = Options();
  options.augment = {triple};
  ASSERT_TRUE(changed.Fit(data, options).ok());
  const auto tripled = data.Map([](const Example& example) -> tj::Result<Example> {
    Example result = {.x = tj::Tensor(tj::DType::kFloat32, {1}), .y = example.y};
    result.x.float32()[0] = 3 * example.x.float32()[0];
    return result;
  });
  ASSERT_TRUE(plain.Fit(tripled, Options()).ok());
  const double loss = plain.Evaluate(tripled).value()["loss"];
  EXPECT_EQ(changed.Evaluate(data, {.augment = {triple}}).value()["loss"], loss);
  EXPECT_NE(changed.Evaluate(data).value()["loss"], loss);
}

TEST(Dataset, WrongLayersAreErrorsOfFit) {
  tj::FitOptions options = Options();
  options.augment = {tj::Dense{.units = 1}};
  EXPECT_EQ(ErrorOf(Points({1, 2}), options),
            "data.augment (data.train): expected layers without variables, such as RandomFlip, "
            "got the variable dense/kernel; move its layer to the model");
  options.augment = {tj::Layer()};
  EXPECT_EQ(ErrorOf(Points({1, 2}), options),
            "data.augment[0]: expected a layer, such as RandomFlip{}, got Layer{}");
}

TEST(Dataset, ErrorsOfFunctionsNameTheExample) {
  const auto fails = [](const Example& example) -> tj::Result<Example> {
    if (example.x.float32()[0] > 0.09f)
      return tj::Status(tj::StatusCode::kInvalidArgument, "too large");
    return example;
  };
  const std::string error = ErrorOf(Points(Range(0, 9)).Map(fails), Options(false));
  EXPECT_NE(error.find("example 5: too large"), std::string::npos) << error;
  const auto renames = [](const Example& example) -> tj::Result<Example> {
    return Example{.targets = {{"nothing", example.y}}};
  };
  EXPECT_NE(
      ErrorOf(Points(Range(0, 9)).Map(renames)).find("targets.nothing: the model has no such"),
      std::string::npos);
}

TEST(Dataset, WrongArgumentsAreErrorsOfFit) {
  const tj::Dataset points = Points(Range(0, 9));
  EXPECT_EQ(ErrorOf(points.Skip(9)),
            "data.train: skip: expected fewer than the 9 examples that there are, got 9");
  EXPECT_EQ(ErrorOf(points.Concatenate(points.Skip(9))),
            "data.train: dataset 1: skip: expected fewer than the 9 examples that there are, got "
            "9");
  EXPECT_EQ(ErrorOf(points.Take(0)), "data.train: take: expected at least 1, got 0");
  EXPECT_EQ(ErrorOf(points.Repeat(0)), "data.train: repeat: expected at least 1, got 0");
  EXPECT_EQ(ErrorOf(tj::data::Mix({points}, {1, 2})),
            "data.train: Mix: expected at least one dataset and as many weights, got 1 datasets "
            "and 2 weights");
  EXPECT_EQ(ErrorOf(points.Map(nullptr)), "data.train: Map: expected a function, got none");
  EXPECT_EQ(ErrorOf(tj::data::From(nullptr)), "data.train: From: expected a source, got null");
}

TEST(Dataset, ZipTakesInputsAndLabelsFromDifferentDatasets) {
  const auto alone = [](bool inputs) {
    tj::Tensor values(tj::DType::kFloat32, {40, 1});
    for (int64_t i = 0; i < 40; ++i) {
      const Example point = Point(i);
      values.float32()[static_cast<size_t>(i)] = (inputs ? point.x : point.y).float32()[0];
    }
    return tj::Dataset(inputs ? tj::data::Arrays{.x = values} : tj::data::Arrays{.y = values});
  };
  const tj::Dataset points = Points(Range(0, 40));
  EXPECT_EQ(Trained(tj::data::Zip({alone(true), alone(false)})), Trained(points));
  EXPECT_EQ(Trained(tj::data::Zip({alone(true).Take(30), alone(false)})), Trained(points.Take(30)));
  EXPECT_EQ(Trained(tj::data::Zip({alone(true), alone(false)}).Skip(10).Concatenate(points)),
            Trained(points.Skip(10).Concatenate(points)));
  EXPECT_NE(ErrorOf(tj::data::Zip({points, alone(false)})).find("from one dataset only"),
            std::string::npos);
  EXPECT_EQ(ErrorOf(tj::data::Zip({})), "data.train: Zip: expected at least one dataset, got none");
  const tj::Dataset unnamed = tj::data::Npz{.file = "a.npz"};
  EXPECT_NE(ErrorOf(tj::data::Zip({unnamed, alone(false)})).find("Zip: expected the inputs"),
            std::string::npos);
}

struct Rows : tj::data::Source {
  explicit Rows(std::atomic<int>* reads = nullptr) : reads(reads) {}
  int64_t size() const override { return 40; }
  tj::Result<Example> Row(int64_t i) const override {
    if (reads != nullptr) ++*reads;
    return Point(i);
  }
  std::atomic<int>* reads;
};

TEST(Dataset, ACacheFileIsReadByLaterRuns) {
  const std::string path = ::testing::TempDir() + "/points.cache";
  std::filesystem::remove(path);
  std::atomic<int> reads = 0;
  const tj::Dataset cached = tj::data::From(std::make_shared<Rows>(&reads)).CacheFile(path, "1");
  const std::vector<float> weights = Trained(Points(Range(0, 40)));
  EXPECT_EQ(Trained(cached), weights);
  EXPECT_TRUE(std::filesystem::exists(path));
  const int first = reads;
  EXPECT_GE(first, 40);
  EXPECT_EQ(Trained(cached), weights);
  EXPECT_LE(reads, first + 1) << "only example 0, for the types of the values";
  EXPECT_EQ(ErrorOf(Points({1, 2}).CacheFile("")),
            "data.train: CacheFile: expected a path, got none");
}

tj::data::Generator Counting(int64_t size) {
  return {.start = []() -> tj::Result<tj::data::Generator::Next> {
            return tj::data::Generator::Next(
                [next = int64_t{0}]() mutable -> tj::Result<std::optional<Example>> {
                  if (next == 40) return std::optional<Example>();
                  return std::optional<Example>(Point(next++));
                });
          },
          .size = size};
}

TEST(Dataset, ACacheFileOfFunctionsHasAVersion) {
  const std::string path = ::testing::TempDir() + "/unversioned.cache";
  const auto same = [](const Example& example) -> tj::Result<Example> { return example; };
  for (const tj::Dataset& examples :
       {tj::Dataset(tj::data::From(std::make_shared<Rows>())), Points({1, 2}).Map(same),
        tj::Dataset(Counting(40)), Points({1, 2}).Concatenate(Points({1, 2}).Map(same))}) {
    const std::string error = ErrorOf(examples.CacheFile(path));
    EXPECT_NE(error.find(path + ": expected a version of the cached examples"), std::string::npos)
        << error;
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Source, TrainsAsTheSameArrays) {
  EXPECT_EQ(Trained(tj::data::From(std::make_shared<Rows>())), Trained(Points(Range(0, 40))));
}

TEST(Generator, TrainsAsTheSameArraysInOrder) {
  EXPECT_EQ(Trained(Counting(40), false), Trained(Points(Range(0, 40)), false));
  EXPECT_EQ(Trained(tj::Dataset(Counting(40)).Cache()), Trained(Points(Range(0, 40))));
}

TEST(Generator, IsNeitherShuffledNorResumed) {
  EXPECT_NE(ErrorOf(Counting(40)).find("cannot be shuffled"), std::string::npos);
  tj::FitOptions options = Options(false);
  const std::string folder = testing::TempDir() + "/generator_backup";
  std::filesystem::remove_all(folder);
  options.callbacks = {tj::BackupAndRestore{.backup_dir = folder}};
  EXPECT_EQ(ErrorOf(Counting(40), options),
            "callbacks: BackupAndRestore needs examples that can be read from any position on, and "
            "a Generator has none; give a data::Source, or Cache() the examples");
  EXPECT_EQ(ErrorOf(tj::Dataset(Counting(40)).Cache(), options), "");
}

TEST(Generator, SaysThatAPassIsTooShort) {
  const std::string error = ErrorOf(Counting(41), Options(false));
  EXPECT_NE(error.find("expected 41 examples in every pass, but this one ended after 40"),
            std::string::npos)
      << error;
}

}  // namespace
