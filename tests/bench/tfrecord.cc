// Implements the benchmark case tfrecord: reading TFRecord files of tf.train.Example.
#include "runtime/data/tfrecord/tfrecord.h"

#include <string>
#include <utility>
#include <vector>

#include "runtime/data/tfrecord/test_example.h"
#include "runtime/io/record.h"
#include "tests/bench/records.h"

namespace tfjob::bench {
namespace {

std::string RecordOf(int64_t example, const RecordsOptions& options) {
  std::vector<std::pair<std::string, std::string>> features;
  for (int64_t f = 0; f < options.features; ++f) {
    features.emplace_back(FeatureName(f),
                          f % 2 == 0 ? data::testing::Int64Feature({example * f})
                                     : data::testing::FloatFeature({static_cast<float>(example)}));
  }
  std::string record;
  io::AppendRecord(data::testing::ExampleOf(features), record);
  return record;
}

}  // namespace
}  // namespace tfjob::bench

int main(int argc, char** argv) {
  return tfjob::bench::RecordsMain(
      argc, argv,
      {.name = "tfrecord", .record = tfjob::bench::RecordOf, .open = tfjob::data::OpenTfRecords});
}
