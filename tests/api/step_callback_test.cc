// Tests callbacks that act every few steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "tests/api/programs.h"

namespace {

tj::FitOptions With(const tj::Callback& callback, int64_t epochs) {
  tj::FitOptions options = Quietly(epochs);
  options.callbacks = {callback};
  return options;
}

std::vector<std::string> FilesIn(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::string ErrorOf(const tj::Callback& callback) {
  tj::CompiledModel model = Compiled();
  const auto history = model.Fit(Points(32), With(callback, 1));
  EXPECT_EQ(model.step(), 0);
  return history.status().message();
}

TEST(ModelCheckpoint, SavesEveryFewSteps) {
  const std::string folder = Temp("every_few");
  tj::CompiledModel model = Compiled();
  // An epoch has 4 steps. The steps are counted over all epochs: 3, 6, 9 and 12.
  const tj::ModelCheckpoint checkpoint = {.path = folder + "/{epoch:02d}-{batch}.safetensors",
                                          .save_freq = 3};
  const auto history = model.Fit(Points(128), With(checkpoint, 3));
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(FilesIn(folder), (std::vector<std::string>{"01-3.safetensors", "02-2.safetensors",
                                                       "03-1.safetensors", "03-4.safetensors"}));
  tj::CompiledModel last = Compiled(), earlier = Compiled();
  ASSERT_TRUE(last.LoadWeights(folder + "/03-4.safetensors").ok());
  EXPECT_EQ(WeightsOf(last), WeightsOf(model));
  ASSERT_TRUE(earlier.LoadWeights(folder + "/03-1.safetensors").ok());
  EXPECT_NE(WeightsOf(earlier), WeightsOf(model));
}

TEST(ModelCheckpoint, ComparesTheMetricEveryFewSteps) {
  const std::string folder = Temp("best_step");
  tj::CompiledModel model = Compiled();
  const tj::ModelCheckpoint checkpoint = {.path = folder + "/{batch}.safetensors",
                                          .monitor = "loss",
                                          .save_best_only = true,
                                          .initial_value_threshold = -1,
                                          .save_freq = 1};
  ASSERT_TRUE(model.Fit(Points(128), With(checkpoint, 1)).ok());
  EXPECT_FALSE(std::filesystem::exists(folder)) << "no loss is below -1";
  const tj::ModelCheckpoint validated = {.path = folder + "/{val_loss:.2f}.keras", .save_freq = 1};
  const auto failed = Compiled().Fit(Points(128), With(validated, 1));
  EXPECT_EQ(failed.status().message(), "path: {val_loss:.2f}: there is no metric val_loss");
}

TEST(ModelCheckpoint, ChecksTheFrequency) {
  EXPECT_EQ(ErrorOf(tj::ModelCheckpoint{.path = "a.keras", .save_freq = -1}),
            "ModelCheckpoint: save_freq: expected at least 0, got -1");
  EXPECT_EQ(
      ErrorOf(tj::ModelCheckpoint{.path = "a.keras", .save_best_only = true, .save_freq = 2}),
      "ModelCheckpoint: monitor: a validation takes place at the end of an epoch, so save_freq "
      "with save_best_only needs a metric of the training, such as loss; got val_loss");
  tj::CompiledModel model = Compiled();
  const auto history = model.Fit(Points(32), With(tj::ModelCheckpoint{.path = "{batch}.keras"}, 1));
  EXPECT_EQ(history.status().message(), "path: {batch}: there is no metric batch");
}

std::string EventsIn(const std::string& folder) {
  std::string events;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream file(entry.path(), std::ios::binary);
    events.append(std::istreambuf_iterator<char>(file), {});
  }
  return events;
}

int64_t CountOf(const std::string& text, const std::string& part) {
  int64_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(TensorBoard, WritesMetricsEveryFewSteps) {
  const std::string folder = Temp("step_board");
  const tj::TensorBoard board = {.log_dir = folder, .update_freq = 3};
  ASSERT_TRUE(Compiled().Fit(Points(128), With(board, 2)).ok());
  const std::string events = EventsIn(folder + "/train");
  EXPECT_EQ(CountOf(events, "batch_loss"), 2) << "after the steps 3 and 6 of 8";
  EXPECT_EQ(CountOf(events, "batch_accuracy"), 2);
  EXPECT_EQ(CountOf(events, "epoch_loss"), 2);
  EXPECT_EQ(ErrorOf(tj::TensorBoard{.log_dir = folder, .update_freq = -2}),
            "TensorBoard: update_freq: expected at least 0, got -2");
}

TEST(GetLayer, ReturnsALayerWithItsSettingsAndValues) {
  tj::CompiledModel model = Compiled();
  ASSERT_TRUE(model.Fit(Points(64), Quietly(1)).ok());
  const std::string path = Temp("whole.keras");
  ASSERT_TRUE(model.Save(path).ok());
  const tj::Model loaded = tj::Model::Load(path).value();
  const auto layer = loaded.GetLayer("dense");
  ASSERT_TRUE(layer.ok()) << layer.status();
  const tj::Model other =
      tj::Sequential({tj::Input{.shape = {2}}, *layer, tj::Dense{.units = 2, .name = "logits"}});
  ASSERT_TRUE(other.status().ok()) << other.status();
  const auto weights = WeightsOf(Compiled(other)), expected = WeightsOf(model);
  EXPECT_EQ(weights[0], expected[0]);
  EXPECT_EQ(weights[1], expected[1]);
  EXPECT_NE(weights[2], expected[2]);
  const auto missing = Classifier().GetLayer("densest");
  EXPECT_EQ(missing.status().code(), tj::StatusCode::kNotFound);
  EXPECT_EQ(missing.status().message(),
            "model sequential has no layer densest; expected one of input_layer, dense, logits");
  EXPECT_FALSE(tj::Model().GetLayer("dense").ok());
}

}  // namespace
