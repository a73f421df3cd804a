// Creates and reads sources whose examples are numbers, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/pipeline.h"
#include "runtime/data/table_source.h"

namespace tfjob::data::testing {

// Returns the numbers first, first + 1, … as the array `name`, int64, and twice these numbers as
// the array `name`2, float32 [2].
inline std::shared_ptr<const Source> Numbers(int64_t first, int64_t count,
                                             const std::string& name = "x",
                                             const std::string& file = "numbers.npy") {
  Tensor numbers(DType::kInt64, {count});
  Tensor doubles(DType::kFloat32, {count, 2});
  for (int64_t i = 0; i < count; ++i) {
    const auto at = static_cast<size_t>(i);
    numbers.data<int64_t>()[at] = first + i;
    doubles.data<float>()[2 * at] = static_cast<float>(2 * (first + i));
    doubles.data<float>()[2 * at + 1] = static_cast<float>(2 * (first + i));
  }
  auto dataset = std::make_shared<Dataset>();
  dataset->arrays = {{name, file, numbers}, {name + "2", file, doubles}};
  return TableSource(std::move(dataset));
}

// Behaves like another source, but claims not to be in memory, and uses the default
// RowReader::ReadAt.
class OnDisk : public Source {
 public:
  explicit OnDisk(std::shared_ptr<const Source> source) : source_(std::move(source)) {}
  int64_t size() const override { return source_->size(); }
  const std::vector<Field>& fields() const override { return source_->fields(); }
  bool in_memory() const override { return false; }
  std::string Describe() const override { return "on disk"; }
  uint64_t fingerprint() const override { return 7; }
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override {
    ASSIGN_OR_RETURN(std::unique_ptr<RowReader> reader, source_->Open(columns));
    return std::make_unique<Reader>(std::move(reader), reads_);
  }
  // Returns the number of examples that have been read.
  int64_t reads() const { return *reads_; }

 private:
  class Reader : public RowReader {
   public:
    Reader(std::unique_ptr<RowReader> reader, std::shared_ptr<int64_t> reads)
        : reader_(std::move(reader)), reads_(std::move(reads)) {}
    Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) override {
      *reads_ += static_cast<int64_t>(rows.size());
      return reader_->Read(rows, tensors);
    }

   private:
    std::unique_ptr<RowReader> reader_;
    std::shared_ptr<int64_t> reads_;
  };
  std::shared_ptr<const Source> source_;
  std::shared_ptr<int64_t> reads_ = std::make_shared<int64_t>(0);
};

inline PipelineOptions InOrder(const Source& source, int64_t batch_size = 4) {
  PipelineOptions options{
      .batch_size = batch_size, .epochs = 1, .shuffle = false, .prefetch = 0, .columns = {}};
  for (const Field& field : source.fields())
    options.columns.push_back({field.name, field.name, field.dtype, field.shape});
  return options;
}

// Returns the numbers that a pipeline with these options reads, and the status of the pipeline.
// Checks that the values of `name`2 in each example match its number.
inline std::pair<std::vector<int64_t>, Status> Read(std::shared_ptr<const Source> source,
                                                    const PipelineOptions& options,
                                                    const std::string& name = "x") {
  std::vector<int64_t> numbers;
  const auto pipeline = Pipeline::Create(std::move(source), options);
  if (!pipeline.ok()) return {numbers, pipeline.status()};
  while (const Batch* batch = (*pipeline)->Next()) {
    const auto read = batch->Find(name)->data<int64_t>();
    const auto doubles = batch->Find(name + "2")->data<float>();
    for (size_t i = 0; i < read.size(); ++i) {
      numbers.push_back(read[i]);
      EXPECT_EQ(doubles[2 * i], static_cast<float>(2 * read[i]));
      EXPECT_EQ(doubles[2 * i + 1], static_cast<float>(2 * read[i]));
    }
  }
  return {numbers, (*pipeline)->status()};
}

// Returns all numbers of a source, in order.
inline std::vector<int64_t> ReadAll(const std::shared_ptr<const Source>& source,
                                    const std::string& name = "x") {
  const auto [numbers, status] = Read(source, InOrder(*source), name);
  EXPECT_TRUE(status.ok()) << status;
  return numbers;
}

}  // namespace tfjob::data::testing
