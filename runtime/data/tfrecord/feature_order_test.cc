#include <gtest/gtest.h>

#include <algorithm>

#include "runtime/data/tfrecord/test_records.h"

namespace tfjob::data {
namespace {

using testing::ExampleOf;
using testing::FloatFeature;
using testing::Folder;
using testing::Int64Feature;
using testing::OptionsFor;

// Returns example i, whose features a, b and c are 10 i, 10 i + 1 and 10 i + 2. The order of the
// features changes, other features are between them, and some examples lack c.
std::string ShuffledExample(int64_t i) {
  std::vector<std::pair<std::string, std::string>> features = {{"a", Int64Feature({10 * i})},
                                                               {"b", Int64Feature({10 * i + 1})},
                                                               {"c", Int64Feature({10 * i + 2})}};
  if (i % 5 == 4) features.pop_back();
  for (int64_t turn = 0; turn < i % 6; ++turn) {
    std::ranges::next_permutation(features,
                                  [](const auto& a, const auto& b) { return a.first < b.first; });
  }
  if (i % 3 != 2) features.insert(features.begin() + i % 4 % 3, {"other", FloatFeature({9})});
  return ExampleOf(features);
}

TEST(TfRecord, FeaturesMayBeInAnyOrder) {
  constexpr int64_t kExamples = 120;
  const Folder folder;
  std::string content;
  for (int64_t i = 0; i < kExamples; ++i) io::AppendRecord(ShuffledExample(i), content);
  RecordOptions options{.files = {folder.Write("shuffled", content)}};
  for (const std::string name : {"c", "a", "b"}) {
    options.features.push_back({.name = name, .dtype = DType::kInt64, .shape = {1}});
    options.fields.push_back({name, name});
  }
  options.features[0].fill = -1;
  const auto source = OpenTfRecords(options);
  ASSERT_TRUE(source.ok()) << source.status();
  PipelineOptions reading = OptionsFor(**source);
  reading.shuffle = false;
  reading.batch_size = kExamples;
  const auto pipeline = Pipeline::Create(*source, reading);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const Batch* batch = (*pipeline)->Next();
  ASSERT_NE(batch, nullptr) << (*pipeline)->status();
  const auto a = batch->Find("a")->data<int64_t>(), b = batch->Find("b")->data<int64_t>(),
             c = batch->Find("c")->data<int64_t>();
  for (int64_t i = 0; i < kExamples; ++i) {
    const auto row = static_cast<size_t>(i);
    EXPECT_EQ(a[row], 10 * i);
    EXPECT_EQ(b[row], 10 * i + 1);
    EXPECT_EQ(c[row], i % 5 == 4 ? -1 : 10 * i + 2);
  }
}

}  // namespace
}  // namespace tfjob::data
