// Defines training whose weights record which examples the committed steps have used, for tests.
//
// In example i, only feature i is not 0, and the label is so large that the weights hardly affect
// the gradient: each time example i is used, weight i grows by about 1. The weights are part of the
// state, so they count a use exactly if the update that used the example has been committed, and a
// rollback removes the uses in the updates that it undoes.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/io/bundle_reader.h"
#include "runtime/io/checkpoint_directory.h"

namespace tfjob::train {

inline constexpr int kLedgerExamples = 60;
// The files' numbers of examples. Divided into two groups, both have 30 examples.
inline const std::vector<int> kLedgerFiles = {7, 23, 11, 19};
inline constexpr double kLedgerLabel = 1 << 24;

// Returns the group of each example if two tasks share the files.
inline std::vector<int> LedgerGroups() {
  std::vector<int> groups;
  for (size_t file = 0; file < kLedgerFiles.size(); ++file)
    groups.insert(groups.end(), static_cast<size_t>(kLedgerFiles[file]), file < 2 ? 0 : 1);
  return groups;
}

inline void WriteLedgerData(const std::string& folder) {
  int example = 0;
  for (size_t file = 0; file < kLedgerFiles.size(); ++file) {
    std::string lines;
    for (int i = 0; i < kLedgerFiles[file]; ++i, ++example) {
      lines += "{\"x\": [";
      for (int k = 0; k < kLedgerExamples; ++k)
        lines += StrCat(k == 0 ? "" : ",", k == example ? 1 : 0);
      lines += StrCat("], \"y\": ", static_cast<int64_t>(kLedgerLabel), "}\n");
    }
    ASSERT_EQ(WriteFileAtomically(StrCat(folder, "/part-", file, ".jsonl"), lines), OkStatus());
  }
}

// Returns a training file. Every step uses `examples` examples of all tasks together. `more`
// contains further keys. The checkpoints are in the folder `model`.
inline std::string LedgerTrainingFile(const std::string& folder, int examples,
                                      const std::string& data, const std::string& more) {
  return StrCat(R"(
model:
  layers:
  - InputLayer: {batch_shape: [null, 60]}
  - Dense: {units: 1, use_bias: false, kernel_initializer: zeros}
loss: mean_squared_error
optimizer: {name: sgd, learning_rate: )",
                examples / 2.0 / kLedgerLabel, "}\ndata:\n  train: {format: jsonl, files: [",
                folder, "/part-*.jsonl], inputs: x, targets: \"y\", ",
                "features: {x: {dtype: float32, shape: [60]}, y: {dtype: float32, shape: []}}}\n  ",
                data, "\nthreads: 1\nseed: 5\nsave_summary_steps: 0\nmodel_dir: ", folder,
                "/model\n", more);
}

// Returns how often the state in a checkpoint has used each example.
inline std::vector<int> LedgerCounts(const std::string& prefix) {
  std::vector<int> counts;
  const auto reader = io::BundleReader::Open(prefix);
  const StatusOr<Tensor> weights =
      reader.ok() ? (*reader)->Read("dense/kernel") : StatusOr<Tensor>(reader.status());
  EXPECT_TRUE(weights.ok()) << weights.status();
  if (!weights.ok()) return counts;
  for (const float weight : weights->data<float>()) {
    // A use changes the distance between the weight and the label by the factor 1 - 1 / label.
    const double uses =
        std::log1p(-static_cast<double>(weight) / kLedgerLabel) / std::log1p(-1 / kLedgerLabel);
    EXPECT_NEAR(uses, std::round(uses), 0.2) << "the weight does not count uses";
    counts.push_back(static_cast<int>(std::lround(uses)));
  }
  return counts;
}

// Returns the prefix of the last checkpoint, or "" if there is none.
inline std::string LedgerCheckpoint(const std::string& folder) {
  const auto latest = io::LatestCheckpoint(folder + "/model");
  return latest.ok() && *latest ? (*latest)->prefix : "";
}

}  // namespace tfjob::train
