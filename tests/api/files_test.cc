// Tests reading and writing files: models, weights, checkpoints and data.
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <utility>

#include "tests/api/programs.h"

namespace {

TEST(Save, AWholeModelContinuesWhereItEnded) {
  const tj::Dataset train = Points(100);
  tj::CompiledModel model = Compiled();
  ASSERT_TRUE(model.Fit(train, Quietly(2)).ok());
  const std::string path = Temp("model.keras");
  ASSERT_TRUE(model.Save(path).ok());

  const tj::Session session(tj::Strategy::OneDevice(), {.threads = 1});
  tj::Result<tj::CompiledModel> loaded = session.Load(path);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->step(), 8);
  EXPECT_EQ(WeightsOf(*loaded), WeightsOf(model));
  EXPECT_EQ(loaded->Evaluate(train).value().values(), model.Evaluate(train).value().values());

  // The file also contains the optimizer's state. Therefore, without shuffling, both models take
  // the same steps.
  tj::FitOptions options = Quietly(1);
  options.shuffle = false;
  ASSERT_TRUE(model.Fit(train, options).ok());
  ASSERT_TRUE(loaded->Fit(train, options).ok());
  EXPECT_EQ(WeightsOf(*loaded), WeightsOf(model));

  // With shuffling, the epoch number determines the order of the examples, so both models continue
  // with epoch 5.
  ASSERT_TRUE(model.Fit(train, Quietly(6, 5)).ok());
  ASSERT_TRUE(loaded->Fit(train, Quietly(6, 5)).ok());
  EXPECT_EQ(WeightsOf(*loaded), WeightsOf(model));

  // If only the model is loaded from the file, without the settings, it has the weights but a new
  // optimizer.
  tj::CompiledModel fresh = Compiled(tj::Model::Load(path).value());
  EXPECT_EQ(fresh.step(), 0);
}

TEST(Save, WeightsOfAllFormatsAreReadAgain) {
  tj::CompiledModel model = Compiled();
  ASSERT_TRUE(model.Fit(Points(64), Quietly(1)).ok());
  for (const char* name : {"w.safetensors", "w.weights.h5", "w.h5", "w.keras"}) {
    const std::string path = Temp(name);
    ASSERT_TRUE(model.Save(path).ok()) << name;
    tj::CompiledModel other = Compiled();
    EXPECT_NE(WeightsOf(other), WeightsOf(model));
    const tj::Status loaded = other.LoadWeights(path);
    ASSERT_TRUE(loaded.ok()) << loaded;
    EXPECT_EQ(WeightsOf(other), WeightsOf(model)) << name;
    EXPECT_EQ(other.step(), 0);
  }
  EXPECT_EQ(model.Save(Temp("w.zip")).code(), tj::StatusCode::kInvalidArgument);
  EXPECT_EQ(model.LoadWeights(Temp("missing.safetensors")).code(), tj::StatusCode::kNotFound);
  EXPECT_NE(tj::Session(tj::Strategy::OneDevice()).Load(Temp("none.keras")).status().message(), "");
}

TEST(Save, AModelWithoutALossIsReadAgain) {
  const tj::Session session(tj::Strategy::OneDevice(), {.threads = 1});
  tj::CompiledModel model = session.Compile(Classifier(), {}).value();
  tj::Function train = session
                           .Function({{.shape = {2}}},
                                     [&](tj::Step& step, const std::vector<tj::Symbol>& in) {
                                       step.Minimize(model, tj::ops::Sum(step.Call(model, in[0])));
                                     })
                           .value();
  train({.x = Points(8).x}).value();
  ASSERT_NE(WeightsOf(model), WeightsOf(Compiled()));
  for (const char* name : {"m.safetensors", "m.h5", "m.keras"}) {
    const std::string path = Temp(name);
    const tj::Status saved = model.Save(path);
    ASSERT_TRUE(saved.ok()) << name << ": " << saved;
    tj::CompiledModel other = Compiled();
    const tj::Status loaded = other.LoadWeights(path);
    ASSERT_TRUE(loaded.ok()) << name << ": " << loaded;
    EXPECT_EQ(WeightsOf(other), WeightsOf(model)) << name;
  }
  const tj::Result<tj::Model> whole = tj::Model::Load(testing::TempDir() + "/m.keras");
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(WeightsOf(Compiled(*whole)), WeightsOf(model));
}

TEST(Load, AModelKeepsItsWeightsInOtherModels) {
  tj::CompiledModel model = Compiled();
  ASSERT_TRUE(model.Fit(Points(64), Quietly(1)).ok());
  const auto expected = WeightsOf(model);
  const std::string path = Temp("part.keras");
  ASSERT_TRUE(model.Save(path).ok());
  const tj::Model part = tj::Model::Load(path).value();
  // The file has already been read, so a new file at the same path has no effect.
  tj::CompiledModel trained = model;
  ASSERT_TRUE(trained.Fit(Points(64), Quietly(1)).ok());
  ASSERT_TRUE(trained.Save(path).ok());
  EXPECT_EQ(WeightsOf(Compiled(part)), expected);

  const tj::Symbol x = tj::Input{.shape = {2}};
  const tj::Model functional = tj::Functional(x, tj::Dense{.units = 2}(part(x)));
  const tj::Model chain = tj::Sequential({tj::Input{.shape = {2}}, part, tj::Dense{.units = 2}});
  const tj::Symbol y = tj::Input{.shape = {2}};
  const tj::Model deeper = tj::Functional(y, functional(y));
  for (const tj::Model& whole : {functional, chain, deeper, functional.Frozen({"*"})}) {
    ASSERT_TRUE(whole.status().ok()) << whole.status();
    auto weights = WeightsOf(Compiled(whole));
    weights.resize(expected.size());  // omits the weights of the last layer
    EXPECT_EQ(weights, expected);
  }
  EXPECT_EQ(WeightsOf(Compiled(part.Clone())), WeightsOf(Compiled())) << "initial values";
  const tj::Model wrapped = tj::Sequential({tj::TimeDistributed{.layer = part}});
  EXPECT_EQ(wrapped.status().code(), tj::StatusCode::kUnimplemented);
  EXPECT_NE(wrapped.status().message().find("has weights from a file"), std::string::npos);
}

TEST(SetWeights, ReplacesVariablesByName) {
  tj::CompiledModel model = Compiled(), other = Compiled();
  ASSERT_TRUE(model.Fit(Points(64), Quietly(1)).ok());
  std::map<std::string, tj::Tensor> values;
  for (const auto& [name, value] : model.Weights().value()) values[name] = value;
  EXPECT_TRUE(other.SetWeights(values).ok());
  EXPECT_EQ(WeightsOf(other), WeightsOf(model));
  EXPECT_NE(other.SetWeights({{"dense/kernal", tj::Tensor(tj::DType::kFloat32, {2, 8})}})
                .message()
                .find("no variable dense/kernal"),
            std::string::npos);
  EXPECT_EQ(other.SetWeights({{"dense/kernel", tj::Tensor(tj::DType::kFloat32, {8, 2})}}).message(),
            "variable dense/kernel: expected float32 [2,8], got float32 [8,2]");
  // The file contains only some of the variables.
  const std::string path = Temp("some.safetensors");
  ASSERT_TRUE(model.Save(path).ok());
  tj::CompiledModel partly = Compiled();
  const auto before = WeightsOf(partly);
  ASSERT_TRUE(partly.LoadWeights(path, {.skip = {"logits/*"}}).ok());
  EXPECT_EQ(WeightsOf(partly)[0], WeightsOf(model)[0]);
  EXPECT_EQ(WeightsOf(partly)[2], before[2]);
}

TEST(Save, CheckpointsHoldTheWholeState) {
  const tj::Dataset train = Points(100);
  tj::CompiledModel model = Compiled();
  ASSERT_TRUE(model.Fit(train, Quietly(2)).ok());
  const std::string folder = Temp("checkpoints");
  ASSERT_TRUE(model.SaveCheckpoint(folder).ok());
  tj::CompiledModel other = Compiled();
  ASSERT_TRUE(other.LoadCheckpoint(folder).ok());
  EXPECT_EQ(other.step(), 8);
  EXPECT_EQ(WeightsOf(other), WeightsOf(model));
  tj::FitOptions options = Quietly(1);
  options.shuffle = false;
  ASSERT_TRUE(model.Fit(train, options).ok());
  ASSERT_TRUE(other.Fit(train, options).ok());
  EXPECT_EQ(WeightsOf(other), WeightsOf(model));
  EXPECT_EQ(other.LoadCheckpoint(Temp("empty")).code(), tj::StatusCode::kNotFound);
}

// Returns the error of evaluating a small model on the data.
std::string ErrorOf(const tj::Dataset& data) {
  return Compiled().Evaluate(data).status().message();
}

TEST(TfRecord, ItsFeaturesAreChecked) {
  const auto error = [](const tj::data::Feature& feature) {
    return ErrorOf(tj::data::TfRecord{.files = {"train.tfrecord"}, .features = {{"x", feature}}});
  };
  for (const auto& [feature, part] : std::vector<std::pair<tj::data::Feature, std::string>>{
           {{.dtype = "float"}, "features.x.dtype: expected one of float32, int64, string"},
           {{.dtype = "string"},
            "features.x: expected one of decode_raw (the type of the elements"},
           {{.shape = {-1}}, "features.x.shape[0]: expected a length from 1 to"},
           {{.shape = {3}, .max_length = 1 << 28},
            "features.x.max_length: expected steps with at most"},
           {{.max_length = -2}, "features.x.max_length: expected a length from 1 to"},
           {{.sequence = true}, "features.x.max_length: expected a length from 1 to"},
           {{.dtype = "int64", .default_value = 0.5},
            "features.x.default_value: expected a number"}})
    EXPECT_NE(error(feature).find("data.eval." + part), std::string::npos) << error(feature);
  const std::string missing = ErrorOf(tj::data::TfRecord{
      .files = {"train.tfrecord"}, .features = {{"x", {.shape = {2}}}, {"y", {.dtype = "int64"}}}});
  EXPECT_NE(missing.find("train.tfrecord"), std::string::npos) << missing;
  EXPECT_NE(ErrorOf(tj::data::TfRecord{}).find("data.eval.files"), std::string::npos);
}

TEST(Datasets, OptionsOfFilesAreChecked) {
  EXPECT_EQ(ErrorOf(tj::data::Csv{.file = "x.csv", .scale = NAN}).find("data.eval.scale: "), 0U);
  EXPECT_NE(ErrorOf(tj::data::Csv{}).find("data.eval.file: expected a CSV file"),
            std::string::npos);
  EXPECT_NE(ErrorOf(tj::data::Idx{.images = "a"}).find("data.eval.labels"), std::string::npos);
  EXPECT_NE(ErrorOf(tj::data::Npz{}).find("data.eval.file"), std::string::npos);
  EXPECT_NE(ErrorOf(tj::data::Npz{.file = "a.npz", .inputs = {{"", "a"}, {"b", "c"}}})
                .find("data.eval.inputs"),
            std::string::npos);
  tj::data::Arrays points = Points(8);
  points.scale = INFINITY;
  EXPECT_EQ(ErrorOf(points), "data.eval: scale: expected a finite number, got inf");
}

TEST(JsonLines, TrainLikeTheSameArrays) {
  const tj::data::Arrays points = Points(64);
  const std::string path = Temp("points.jsonl");
  std::ofstream out(path);
  out.precision(9);
  for (size_t i = 0; i < 64; ++i) {
    out << R"({"point": [)" << points.x.float32()[2 * i] << ", " << points.x.float32()[2 * i + 1]
        << R"(], "class": )" << points.y.int64()[i] << "}\n";
  }
  out.close();
  tj::CompiledModel arrays = Compiled(), lines = Compiled();
  ASSERT_TRUE(arrays.Fit(points, Quietly(2)).ok());
  const auto fitted = lines.Fit(
      tj::data::JsonLines{.files = {path},
                          .features = {{"point", {.shape = {2}}}, {"class", {.dtype = "int64"}}},
                          .inputs = {{"", "point"}},
                          .targets = {{"", "class"}}},
      Quietly(2));
  ASSERT_TRUE(fitted.ok()) << fitted.status();
  EXPECT_EQ(WeightsOf(lines), WeightsOf(arrays));
}

TEST(JsonLines, HaveSequencesOfSingleValues) {
  const std::string path = Temp("steps.jsonl");
  std::ofstream(path) << R"({"x": [1, 2], "y": 1})" << "\n" << R"({"x": [3], "y": 0})" << "\n";
  const auto evaluated = Compiled().Evaluate(tj::data::JsonLines{
      .files = {path},
      .features = {{"x", {.max_length = 2, .sequence = true}}, {"y", {.dtype = "int64"}}}});
  EXPECT_TRUE(evaluated.ok()) << evaluated.status();
}

TEST(Images, OfFoldersAndRecordsAreChecked) {
  EXPECT_NE(ErrorOf(tj::data::Images{}).find("data.eval.folder: expected a folder"),
            std::string::npos);
  EXPECT_NE(ErrorOf(tj::data::Images{.folder = "/x", .resize = "area"}).find("data.eval.resize: "),
            std::string::npos);
  const std::string missing = ErrorOf(tj::data::Images{.folder = Temp("photos"), .channels = 1});
  EXPECT_NE(missing.find(Temp("photos")), std::string::npos) << missing;
  // The features are valid; only the file is missing.
  const std::string error =
      ErrorOf(tj::data::TfRecord{.files = {"images.tfrecord"},
                                 .features = {{"x",
                                               {.dtype = "string",
                                                .shape = {1, 2, 1},
                                                .decode_image = true,
                                                .resize = "nearest",
                                                .crop_to_aspect_ratio = true}},
                                              {"y", {.dtype = "int64"}}}});
  EXPECT_NE(error.find("images.tfrecord"), std::string::npos) << error;
}

TEST(TfRecord, HasSequencesOfStrings) {
  // The features are valid; only the file is missing.
  const std::string error = ErrorOf(tj::data::TfRecord{
      .files = {"steps.tfrecord"},
      .features = {{"x", {.dtype = "string", .shape = {1}, .max_length = 2, .decode_raw = "uint8"}},
                   {"y", {.dtype = "int64"}}}});
  EXPECT_NE(error.find("steps.tfrecord"), std::string::npos) << error;
}

TEST(Csv, TrainsLikeTheSameArrays) {
  const tj::data::Arrays points = Points(64);
  const std::string path = Temp("points.csv");
  std::ofstream out(path);
  out.precision(9);
  out << "class;x0;x1\n";
  for (size_t i = 0; i < 64; ++i) {
    out << points.y.int64()[i] << ';' << points.x.float32()[2 * i] << ';'
        << points.x.float32()[2 * i + 1] << "\n";
  }
  out.close();
  tj::CompiledModel arrays = Compiled(), csv = Compiled();
  ASSERT_TRUE(arrays.Fit(points, Quietly(2)).ok());
  const auto fitted =
      csv.Fit(tj::data::Csv{.file = path, .label_column = "class", .delimiter = ';'}, Quietly(2));
  ASSERT_TRUE(fitted.ok()) << fitted.status();
  EXPECT_EQ(WeightsOf(csv), WeightsOf(arrays));
}

}  // namespace
