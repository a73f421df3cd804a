#include "runtime/data/pipeline.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <limits>
#include <map>
#include <new>

#include "runtime/data/table_source.h"

namespace {
std::atomic<int64_t> allocations = 0;
}

void* operator new(size_t bytes) {
  ++allocations;
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace tfjob::data {
namespace {

// Returns `count` rows. Row i has the pixels i, i and the label i mod 10.
std::shared_ptr<const Dataset> Rows(int64_t count) {
  Tensor pixels(DType::kUInt8, {count, 2});
  Tensor labels(DType::kUInt8, {count});
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    pixels.data<uint8_t>()[2 * i] = static_cast<uint8_t>(i);
    pixels.data<uint8_t>()[2 * i + 1] = static_cast<uint8_t>(i);
    labels.data<uint8_t>()[i] = static_cast<uint8_t>(i % 10);
  }
  return std::make_shared<const Dataset>(Dataset{
      .arrays = {{kFeaturesArray, "images.gz", pixels}, {kLabelsArray, "labels.gz", labels}}});
}

Column Pixels(float scale = 1) {
  return {.name = "pixels", .array = kFeaturesArray, .shape = {2}, .scale = scale};
}

PipelineOptions Options() {
  return {.batch_size = 4,
          .epochs = 1,
          .seed = 1,
          .prefetch = 2,
          .columns = {Pixels(), ClassColumn(kLabelsArray, 10)}};
}

const Tensor& PixelsOf(const Batch* batch) {
  return *batch->Find("pixels");
}
const Tensor& LabelsOf(const Batch* batch) {
  return *batch->Find(kLabelsArray);
}

std::unique_ptr<Pipeline> Make(std::shared_ptr<const Dataset> dataset,
                               const PipelineOptions& options) {
  StatusOr<std::unique_ptr<Pipeline>> pipeline = Pipeline::Create(std::move(dataset), options);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  return std::move(pipeline).value();
}

// Returns the numbers of the rows, in the order in which the pipeline yields them.
std::vector<int> Drain(Pipeline& pipeline) {
  std::vector<int> rows;
  while (const Batch* batch = pipeline.Next()) {
    for (size_t i = 0; i < static_cast<size_t>(batch->size()); ++i) {
      rows.push_back(static_cast<int>(PixelsOf(batch).data<float>()[2 * i]));
      EXPECT_EQ(LabelsOf(batch).data<int64_t>()[i], rows.back() % 10);
    }
  }
  return rows;
}

std::vector<int> Sorted(std::vector<int> rows) {
  std::sort(rows.begin(), rows.end());
  return rows;
}
std::vector<int> Numbers(int count) {
  std::vector<int> numbers;
  for (int i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

TEST(Pipeline, GivesRowsInOrderWithoutShuffling) {
  PipelineOptions options = Options();
  options.shuffle = false;
  options.columns[0].scale = 0.5f;
  auto pipeline = Make(Rows(10), options);
  EXPECT_EQ(pipeline->batches_per_epoch(), 3);
  EXPECT_EQ(pipeline->remainder(), 2);
  const Batch* batch = pipeline->Next();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(PixelsOf(batch).shape(), Shape({4, 2}));
  EXPECT_EQ(PixelsOf(batch).data<float>()[6], 1.5f);
  EXPECT_EQ(LabelsOf(batch).shape(), Shape({4}));
  pipeline->Next();
  batch = pipeline->Next();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(PixelsOf(batch).shape(), Shape({2, 2}));
  EXPECT_EQ(LabelsOf(batch).data<int64_t>()[1], 9);
  EXPECT_EQ(pipeline->Next(), nullptr);
  EXPECT_EQ(pipeline->Next(), nullptr);
}

TEST(Pipeline, ShufflesEveryEpochAnewAndTheSameForASeed) {
  PipelineOptions options = Options();
  options.epochs = 2;
  const std::vector<int> rows = Drain(*Make(Rows(100), options));
  ASSERT_EQ(rows.size(), 200u);
  const std::vector<int> first(rows.begin(), rows.begin() + 100),
      second(rows.begin() + 100, rows.end());
  EXPECT_EQ(Sorted(first), Numbers(100));
  EXPECT_EQ(Sorted(second), Numbers(100));
  EXPECT_NE(first, Numbers(100));
  EXPECT_NE(first, second);
  EXPECT_EQ(Drain(*Make(Rows(100), options)), rows);
  options.prefetch = 0;
  EXPECT_EQ(Drain(*Make(Rows(100), options)), rows) << "prefetching must not change the order";
  options.seed = 2;
  EXPECT_NE(Drain(*Make(Rows(100), options)), rows);
}

TEST(Pipeline, WorkersSeeEveryExampleOnceAnEpochTogether) {
  for (int64_t workers : {1, 2, 3, 7}) {
    std::vector<int> all;
    for (int64_t worker = 0; worker < workers; ++worker) {
      PipelineOptions options = Options();
      options.worker = worker;
      options.workers = workers;
      const std::vector<int> rows = Drain(*Make(Rows(100), options));
      all.insert(all.end(), rows.begin(), rows.end());
    }
    EXPECT_EQ(Sorted(all), Numbers(100)) << workers;
  }
}

TEST(Pipeline, DropsTheRemainderWhenAsked) {
  PipelineOptions options = Options();
  options.drop_remainder = true;
  auto pipeline = Make(Rows(10), options);
  EXPECT_EQ(pipeline->batches_per_epoch(), 2);
  EXPECT_EQ(pipeline->remainder(), 0);
  EXPECT_EQ(Drain(*pipeline).size(), 8u);
}

TEST(Pipeline, GoesOnAtASavedPosition) {
  for (int64_t prefetch : {0, 3}) {
    PipelineOptions options = Options();
    options.epochs = 3;
    options.prefetch = prefetch;
    const std::vector<int> whole = Drain(*Make(Rows(10), options));
    auto pipeline = Make(Rows(10), options);
    for (int i = 0; i < 5; ++i) pipeline->Next();
    EXPECT_EQ(pipeline->position(), (Position{1, 2}));
    options.start = pipeline->position();
    const std::vector<int> rest = Drain(*Make(Rows(10), options));
    EXPECT_EQ(rest, std::vector<int>(whole.begin() + 18, whole.end()));
    Drain(*pipeline);
    EXPECT_EQ(pipeline->position(), (Position{3, 0}));
  }
}

TEST(Pipeline, StopsWhileTheThreadIsBusyOrFull) {
  PipelineOptions options = Options();
  options.epochs = 0;
  for (int i = 0; i < 50; ++i) {
    auto pipeline = Make(Rows(100), options);
    for (int j = 0; j < i; ++j) ASSERT_NE(pipeline->Next(), nullptr);
  }
}

TEST(Pipeline, GivesOneHotRowsAndValues) {
  PipelineOptions options = Options();
  options.shuffle = false;
  options.columns[1] = OneHotColumn(kLabelsArray, 10);
  auto pipeline = Make(Rows(10), options);
  pipeline->Next();
  const Batch* batch = pipeline->Next();
  EXPECT_EQ(LabelsOf(batch).shape(), Shape({4, 10}));
  for (size_t i = 0; i < 40; ++i)
    EXPECT_EQ(LabelsOf(batch).data<float>()[i], i % 11 == 4 ? 1.0f : 0.0f) << i;
  options.columns[1] = FloatColumn(*Rows(10), kLabelsArray);
  pipeline = Make(Rows(10), options);
  EXPECT_EQ(LabelsOf(pipeline->Next()).data<float>()[3], 3.0f);
}

std::string Error(std::shared_ptr<const Dataset> dataset, const PipelineOptions& options) {
  const StatusOr<std::unique_ptr<Pipeline>> pipeline =
      Pipeline::Create(std::move(dataset), options);
  return pipeline.ok() ? "accepted" : std::string(Message(pipeline.status()));
}

TEST(Pipeline, NamesLabelsOutOfRange) {
  PipelineOptions options = Options();
  options.columns[1].classes = 7;
  EXPECT_EQ(Error(Rows(10), options),
            "labels.gz: row 7: label 7 is out of range; expected an integer from 0 to 6, since the "
            "model has 7 outputs");
  const Tensor features = Tensor::Of<float>({2, 1}, {1, 2});
  Tensor labels = Tensor::Of<double>({2}, {1, 1.5});
  const auto table = std::make_shared<const Dataset>(
      Dataset{.arrays = {{kFeaturesArray, "t.csv", features}, {kLabelsArray, "t.csv", labels}},
              .row_name = "line",
              .first_row = 2});
  options.columns = {FloatColumn(*table, kFeaturesArray), ClassColumn(kLabelsArray, 10)};
  EXPECT_EQ(Error(table, options).substr(0, 45), "t.csv: line 3: label 1.5 is out of range; exp");
  labels.data<double>()[0] = -1;
  EXPECT_EQ(Error(table, options).substr(0, 42), "t.csv: line 2: label -1 is out of range; e");
  options.columns[1] = FloatColumn(*table, kLabelsArray);
  EXPECT_EQ(Error(table, options), "accepted");
}

TEST(Pipeline, KeepsTheIgnoredClass) {
  PipelineOptions options = Options();
  options.columns[1].classes = 7;
  options.columns[1].ignored_class = 9;
  EXPECT_EQ(Error(Rows(10), options).substr(0, 48),
            "labels.gz: row 7: label 7 is out of range; expec");
  const Tensor features = Tensor::Of<float>({3, 1}, {1, 2, 3});
  const Tensor labels = Tensor::Of<double>({3}, {1, -1, 0});
  const auto table = std::make_shared<const Dataset>(
      Dataset{.arrays = {{kFeaturesArray, "t.csv", features}, {kLabelsArray, "t.csv", labels}}});
  options.batch_size = 3;
  options.shuffle = false;
  options.columns = {FloatColumn(*table, kFeaturesArray), ClassColumn(kLabelsArray, 2)};
  options.columns[1].ignored_class = -1;
  const auto pipeline = Make(table, options);
  const auto numbers = LabelsOf(pipeline->Next()).data<int64_t>();
  EXPECT_EQ(std::vector<int64_t>(numbers.begin(), numbers.end()), (std::vector<int64_t>{1, -1, 0}));
}

TEST(Pipeline, RefusesSharesWithoutBatches) {
  PipelineOptions options = Options();
  options.workers = 11;
  options.worker = 10;
  EXPECT_EQ(Error(Rows(10), options),
            "labels.gz: 10 rows are not enough for 11 workers: worker 10 would have none");
  options = Options();
  options.drop_remainder = true;
  options.batch_size = 11;
  EXPECT_NE(Error(Rows(10), options).find("do not fill one batch of 11"), std::string::npos);
  options = Options();
  options.start = {.epoch = 0, .batch = 3};
  EXPECT_NE(Error(Rows(10), options).find("has 3 batches per epoch"), std::string::npos);
}

TEST(Pipeline, KeepsTheMemoryOfItsBatches) {
  PipelineOptions options = Options();
  options.epochs = 0;
  auto pipeline = Make(Rows(10), options);
  std::map<const std::byte*, int> buffers;
  for (int i = 0; i < 300; ++i) ++buffers[PixelsOf(pipeline->Next()).bytes().data()];
  EXPECT_LE(buffers.size(), 6u) << "two tensors per slot, prefetch + 1 slots";
}

TEST(Pipeline, AllocatesNothingAfterItsStart) {
  for (int64_t prefetch : {0, 3}) {
    PipelineOptions options = Options();
    options.epochs = 0;
    options.prefetch = prefetch;
    auto pipeline = Make(Rows(50), options);
    for (int i = 0; i < 30; ++i) pipeline->Next();
    const int64_t before = allocations;
    for (int i = 0; i < 200; ++i) pipeline->Next();
    EXPECT_EQ(allocations, before) << prefetch;
  }
}

TEST(Pipeline, SeeksToAnyPositionWithAndWithoutPrefetching) {
  for (const int64_t prefetch : {0, 3}) {
    PipelineOptions options = Options();
    options.epochs = 3;
    options.prefetch = prefetch;
    auto whole = Make(Rows(10), options);
    std::vector<std::vector<int>> batches;
    while (const Batch* batch = whole->Next()) {
      EXPECT_EQ(whole->drawn(), static_cast<int64_t>(batches.size()) + 1);
      std::vector<int>& rows = batches.emplace_back();
      for (size_t i = 0; i < static_cast<size_t>(batch->size()); ++i)
        rows.push_back(static_cast<int>(PixelsOf(batch).data<float>()[2 * i]));
    }
    ASSERT_EQ(batches.size(), 9u);
    auto pipeline = Make(Rows(10), options);
    for (const int64_t drawn : {0, 7, 2, 2, 5, 0, 9, 8}) {
      pipeline->Seek(drawn);
      EXPECT_EQ(pipeline->drawn(), drawn);
      const Batch* batch = pipeline->Next();
      if (drawn == 9) {
        EXPECT_EQ(batch, nullptr);
        continue;
      }
      ASSERT_NE(batch, nullptr);
      const std::vector<int>& rows = batches[static_cast<size_t>(drawn)];
      ASSERT_EQ(batch->size(), static_cast<int64_t>(rows.size()));
      EXPECT_EQ(PixelsOf(batch).data<float>()[0], static_cast<float>(rows[0]));
    }
    pipeline->Seek(std::numeric_limits<int64_t>::max());
    EXPECT_EQ(pipeline->Next(), nullptr);
  }
}

TEST(Pipeline, AStepOfAllWorkersHasTheExamplesOfOneLargerBatch) {
  for (const bool shuffle : {false, true}) {
    PipelineOptions options = Options();
    options.shuffle = shuffle;
    options.batch_size = 12;
    auto alone = Make(Rows(48), options);
    options.batch_size = 4;
    options.workers = 3;
    std::vector<std::unique_ptr<Pipeline>> workers;
    for (options.worker = 0; options.worker < 3; ++options.worker)
      workers.push_back(Make(Rows(48), options));
    while (const Batch* all = alone->Next()) {
      std::vector<int> expected, got;
      for (size_t i = 0; i < 12; ++i)
        expected.push_back(static_cast<int>(PixelsOf(all).data<float>()[2 * i]));
      for (auto& worker : workers) {
        const Batch* batch = worker->Next();
        ASSERT_NE(batch, nullptr);
        for (size_t i = 0; i < 4; ++i)
          got.push_back(static_cast<int>(PixelsOf(batch).data<float>()[2 * i]));
      }
      EXPECT_EQ(Sorted(got), Sorted(expected));
    }
  }
}

TEST(Pipeline, PartsOfAGlobalBatchAreThoseOfOneWorkerInOrder) {
  for (const bool shuffle : {false, true}) {
    for (const int64_t workers : {1, 2, 3, 5}) {
      PipelineOptions options = Options();  // two epochs of 7, 7, 7 and 2 rows
      options.shuffle = shuffle;
      options.epochs = 2;
      options.batch_size = 7;
      auto alone = Make(Rows(23), options);
      options.batch_size = 1;  // ignored
      options.global_batch = 7;
      options.workers = workers;
      std::vector<std::unique_ptr<Pipeline>> pipelines;
      for (options.worker = 0; options.worker < workers; ++options.worker)
        pipelines.push_back(Make(Rows(23), options));
      while (const Batch* all = alone->Next()) {
        std::vector<float> got;
        for (size_t w = 0; w < pipelines.size(); ++w) {
          const Batch* batch = pipelines[w]->Next();
          ASSERT_NE(batch, nullptr);
          EXPECT_EQ(batch->position, all->position);
          EXPECT_EQ(batch->size(), PartOf(all->size(), static_cast<int64_t>(w), workers).size);
          const auto pixels = PixelsOf(batch).data<float>();
          got.insert(got.end(), pixels.begin(), pixels.end());
        }
        const auto expected = PixelsOf(all).data<float>();
        EXPECT_EQ(got, std::vector<float>(expected.begin(), expected.end()));
      }
      for (auto& pipeline : pipelines) EXPECT_EQ(pipeline->Next(), nullptr);
    }
  }
}

TEST(Pipeline, APartOfAGlobalBatchMayBeEmpty) {
  PipelineOptions options = Options();
  options.shuffle = false;
  options.global_batch = 4;
  options.worker = 2;
  options.workers = 3;
  auto pipeline = Make(Rows(6), options);
  EXPECT_EQ(pipeline->batches_per_epoch(), 2);
  EXPECT_EQ(pipeline->remainder(), 0);
  EXPECT_EQ(pipeline->Next()->size(), 1);
  EXPECT_EQ(pipeline->Next()->size(), 0);
  EXPECT_EQ(pipeline->Next(), nullptr);
  pipeline = Make(Rows(2), options);  // only the first two workers have examples
  EXPECT_EQ(pipeline->Next()->size(), 0);
}

TEST(Pipeline, GoesOnWithAnotherPartOfTheGlobalBatches) {
  for (const int64_t prefetch : {0, 3}) {
    PipelineOptions options = Options();
    options.epochs = 0;
    options.global_batch = 6;
    options.prefetch = prefetch;
    options.workers = 3;
    auto changing = Make(Rows(20), options);
    options.worker = 1;
    options.workers = 2;
    auto expected = Make(Rows(20), options);
    for (int i = 0; i < 2; ++i) changing->Next();
    changing->TakePart(1, 2);
    expected->Seek(2);
    for (int i = 0; i < 10; ++i) {
      const Batch *a = changing->Next(), *b = expected->Next();
      EXPECT_EQ(a->position, b->position);
      ASSERT_EQ(a->size(), b->size());
      EXPECT_TRUE(std::ranges::equal(PixelsOf(a).data<float>(), PixelsOf(b).data<float>()));
    }
  }
}

TEST(Pipeline, ContinuesWithTheGlobalBatchOfItsPosition) {
  PipelineOptions options = Options();
  options.epochs = 0;
  options.global_batch = 6;
  options.worker = 1;
  options.workers = 2;
  auto first = Make(Rows(20), options), second = Make(Rows(20), options);
  for (int i = 0; i < 6; ++i) first->Next();
  second->Seek(6);
  for (int i = 0; i < 10; ++i) {
    const Batch *a = first->Next(), *b = second->Next();
    EXPECT_EQ(a->position, b->position);
    const auto x = PixelsOf(a).data<float>(), y = PixelsOf(b).data<float>();
    EXPECT_TRUE(std::ranges::equal(x, y));
  }
}

TEST(Pipeline, PartsDifferByOneAtMost) {
  EXPECT_EQ(PartOf(7, 0, 3), (Part{0, 3}));
  EXPECT_EQ(PartOf(7, 1, 3), (Part{3, 2}));
  EXPECT_EQ(PartOf(7, 2, 3), (Part{5, 2}));
  EXPECT_EQ(PartOf(1, 1, 3), (Part{1, 0}));
  EXPECT_EQ(PartOf(0, 0, 3), (Part{0, 0}));
}

std::string Described(int64_t rows, const PipelineOptions& options) {
  const StatusOr<std::string> text = Pipeline::Describe(TableSource(Rows(rows)), options);
  return text.ok() ? *text : text.status().ToString();
}

TEST(Pipeline, DescribesItself) {
  PipelineOptions options = Options();
  options.columns = {Pixels(0.5), ClassColumn(kLabelsArray, 10), OneHotColumn(kLabelsArray, 10)};
  options.columns[2].name = "rows";
  EXPECT_EQ(Described(10, options),
            "order: shuffled for every epoch, seed 1; a list of 40 bytes\n"
            "share: all examples\n"
            "batches: 3 per epoch, of 4 examples; the last of 2; epochs: 1\n"
            "tensors of a batch:\n"
            "  pixels: float32 [4,2], from features, multiplied by 0.5\n"
            "  labels: int64 [4], numbers of 10 classes\n"
            "  rows: float32 [4,10], from labels, one-hot rows of 10 classes\n"
            "buffers: 3 of 336 bytes; 2 batches are prepared ahead\n");
  options.columns = {ClassColumn(kLabelsArray, 10)};
  options.epochs = 0;
  options.prefetch = 0;
  options.shuffle = false;
  options.drop_remainder = true;
  options.worker = 1;
  options.workers = 2;
  EXPECT_EQ(Described(11, options),
            "order: that of the files, in every epoch\n"
            "share: examples 1, 3, … of the order; 5 per epoch\n"
            "batches: 1 per epoch, of 4 examples; 1 example left out\n"
            "tensors of a batch:\n"
            "  labels: int64 [4], numbers of 10 classes\n"
            "buffers: 1 of 32 bytes; each batch is prepared when it is needed\n");
  options.global_batch = 6;
  options.drop_remainder = false;
  EXPECT_EQ(Described(11, options),
            "order: that of the files, in every epoch\n"
            "share: part 1 of 2 of every batch of 6\n"
            "batches: 2 per epoch, of 3 examples; the last of 2\n"
            "tensors of a batch:\n"
            "  labels: int64 [3], numbers of 10 classes\n"
            "buffers: 1 of 40 bytes; each batch is prepared when it is needed\n");
  options.worker = 2;
  options.workers = 20;
  options.global_batch = 0;
  EXPECT_EQ(Described(2, options).substr(0, 16), "INVALID_ARGUMENT");
}

}  // namespace
}  // namespace tfjob::data
