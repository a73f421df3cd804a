#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

#include "runtime/data/operators/bucket_by_length.h"
#include "runtime/data/operators/cache.h"
#include "runtime/data/operators/join.h"
#include "runtime/data/operators/scale.h"
#include "runtime/data/operators/select.h"
#include "runtime/data/operators/test_sources.h"
#include "runtime/data/operators/zip.h"

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

using testing::InOrder;
using testing::Numbers;
using testing::OnDisk;
using testing::Read;
using testing::ReadAll;

using List = std::vector<int64_t>;

SourcePtr Made(StatusOr<SourcePtr> source) {
  EXPECT_TRUE(source.ok()) << source.status();
  return source.ok() ? *std::move(source) : nullptr;
}

List Sorted(List list) {
  std::ranges::sort(list);
  return list;
}

// Returns a source that mixes, concatenates, interleaves and selects other sources; only some of
// them are in memory.
SourcePtr Everything() {
  const SourcePtr mixed = Made(Mix({Numbers(0, 20), std::make_shared<OnDisk>(Numbers(100, 30))},
                                   {.weights = {1, 2}, .stop = Mixture::Stop::kAll, .seed = 3}));
  const SourcePtr interleaved =
      Made(Interleave({Numbers(200, 9), std::make_shared<OnDisk>(Numbers(300, 4))},
                      {.cycle_length = 2, .block_length = 3}));
  return Made(Concatenate({mixed, interleaved, Made(Select(Numbers(400, 10), {2, 5, 2}))}));
}

TEST(Select, ReadsARangeOfTheExamples) {
  EXPECT_EQ(ReadAll(Made(Select(Numbers(10, 9), {.skip = 2, .take = 3, .repeat = 2}))),
            (List{12, 13, 14, 12, 13, 14}));
  const SourcePtr all = Numbers(0, 3);
  EXPECT_EQ(Made(Select(all, {})), all);
}

TEST(Concatenate, ReadsBatchesAcrossTheEndOfASource) {
  const SourcePtr disk = std::make_shared<OnDisk>(Numbers(10, 6));
  EXPECT_EQ(ReadAll(Made(Concatenate({Numbers(0, 3), disk, Numbers(20, 2)}))),
            (List{0, 1, 2, 10, 11, 12, 13, 14, 15, 20, 21}));
}

TEST(Join, RefusesSourcesWhoseExamplesDiffer) {
  EXPECT_EQ(Message(Concatenate({Numbers(0, 3), Numbers(0, 3, "y", "other.npy")}).status()),
            "other.npy: expected the same values in an example as in numbers.npy (x, x2), got y, "
            "y2");
  Tensor x(DType::kInt64, {2, 3}), x2(DType::kFloat32, {2, 2});
  const SourcePtr wide = TableSource(std::make_shared<const Dataset>(
      Dataset{.arrays = {{"x", "wide.npy", x}, {"x2", "wide.npy", x2}}}));
  EXPECT_EQ(Message(Mix({Numbers(0, 3), wide}, {.weights = {1, 1}}).status()),
            "wide.npy: expected x of the shape [], as in numbers.npy, got [3]");
}

TEST(Join, GivesFieldsOfDifferentTypesAWideOne) {
  Tensor bytes(DType::kUInt8, {2}), x2(DType::kFloat64, {2, 2});
  const SourcePtr narrow = TableSource(std::make_shared<const Dataset>(
      Dataset{.arrays = {{"x", "narrow.npy", bytes}, {"x2", "narrow.npy", x2}}}));
  const SourcePtr joined = Made(Concatenate({Numbers(5, 1), narrow}));
  EXPECT_EQ(joined->Find("x")->dtype, DType::kInt64);
  EXPECT_EQ(joined->Find("x2")->dtype, DType::kFloat64);
  PipelineOptions options = InOrder(*joined);
  options.columns[1].dtype = DType::kFloat32;
  EXPECT_EQ(Read(joined, options).first, (List{5, 0, 0}));
}

TEST(Zip, PutsTheFieldsOfExamplesSideBySide) {
  const SourcePtr zipped = Made(Zip({Numbers(0, 5), Numbers(50, 3, "y")}));
  EXPECT_EQ(ReadAll(zipped, "x"), (List{0, 1, 2}));
  EXPECT_EQ(ReadAll(zipped, "y"), (List{50, 51, 52}));
  EXPECT_EQ(ReadAll(Made(Concatenate({zipped, zipped})), "y"), (List{50, 51, 52, 50, 51, 52}));
  EXPECT_EQ(Message(Zip({Numbers(0, 3), Numbers(0, 3, "x", "b.npy")}).status()),
            "zip: expected x from one dataset only, but both numbers.npy and b.npy provide it");
}

TEST(Scale, MultipliesTheFieldsItNames) {
  const SourcePtr source = Numbers(1, 2);
  const SourcePtr scaled = Scale(source, {"x2"}, 0.5f);
  const auto pipeline = Pipeline::Create(scaled, InOrder(*scaled));
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const Batch* batch = (*pipeline)->Next();
  EXPECT_EQ(batch->Find("x2")->data<float>()[2], 2);
  EXPECT_EQ(batch->Find("x")->data<int64_t>()[1], 2);
  EXPECT_EQ(Scale(source, {"x2"}, 1), source);
}

TEST(Cache, CountsTheOtherCachesOfTheProcess) {
  const SourcePtr disk = std::make_shared<const OnDisk>(Numbers(0, 10));
  StatusOr<SourcePtr> first = Cache(disk, {.most_bytes = 319});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(Message(Cache(disk, {.most_bytes = 319}).status()),
            "cache: 10 examples of 16 bytes and the 160 bytes of other caches need more memory "
            "than the 319 bytes that all caches may take; take fewer examples, or do not cache all "
            "datasets");
  EXPECT_TRUE(Cache(disk, {.most_bytes = 320}).ok());
  *first = nullptr;
  EXPECT_TRUE(Cache(disk, {.most_bytes = 319}).ok());
}

// Returns two examples whose x2 is 1 and 2, and two whose x2 is 7, stored as float64.
SourcePtr ScaledAndFloat64() {
  Tensor x(DType::kInt64, {2}), x2(DType::kFloat64, {2, 2});
  for (double& value : x2.data<double>()) value = 7;
  const SourcePtr wide = TableSource(std::make_shared<const Dataset>(
      Dataset{.arrays = {{"x", "wide.npy", x}, {"x2", "wide.npy", x2}}}));
  return Made(Concatenate({Scale(Numbers(1, 2), {"x2"}, 0.5f), wide}));
}

TEST(Scale, IsAppliedToFieldsThatOtherSourcesMakeFloat64) {
  const SourcePtr source = ScaledAndFloat64();
  ASSERT_EQ(source->Find("x2")->dtype, DType::kFloat64);
  const SourcePtr cached = Made(Cache(std::make_shared<const OnDisk>(source)));
  for (const SourcePtr& read : {source, cached}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (const int64_t batch_size : {2, 3, 4}) {
        PipelineOptions options = InOrder(*read, batch_size);
        options.columns = {{.name = "x2", .array = "x2", .dtype = dtype, .shape = {2}}};
        const auto pipeline = Pipeline::Create(read, options);
        ASSERT_TRUE(pipeline.ok()) << pipeline.status();
        std::vector<double> values;
        while (const Batch* batch = (*pipeline)->Next()) {
          const Tensor& tensor = batch->tensors[0].value;
          if (dtype == DType::kFloat32) {
            for (const float value : tensor.data<float>()) values.push_back(value);
          } else {
            for (const double value : tensor.data<double>()) values.push_back(value);
          }
        }
        EXPECT_EQ(values, (std::vector<double>{1, 1, 2, 2, 7, 7, 7, 7}));
      }
    }
  }
}

TEST(Cache, ReadsEveryExampleOnce) {
  const auto disk = std::make_shared<const OnDisk>(Numbers(0, 300));
  const SourcePtr cached = Made(Cache(disk));
  EXPECT_TRUE(cached->in_memory());
  EXPECT_EQ(disk->reads(), 300);
  EXPECT_EQ(ReadAll(cached), ReadAll(Numbers(0, 300)));
  EXPECT_EQ(disk->reads(), 300);
  EXPECT_EQ(cached->fingerprint(), disk->fingerprint());
}

TEST(Cache, RefusesMoreThanItMayTake) {
  const SourcePtr disk = std::make_shared<const OnDisk>(Numbers(0, 10));
  EXPECT_TRUE(Cache(disk, {.most_bytes = 160}).ok());
  EXPECT_EQ(Message(Cache(disk, {.most_bytes = 159}).status()),
            "cache: 10 examples of 16 bytes need more memory than the 159 bytes that the cache may "
            "take; take fewer examples, or do not cache them");
}

// Shuffles so many examples that a list of their order would need 24 GB.
TEST(Operators, ShuffleManyRepeatsWithoutAList) {
  const SourcePtr source = Made(Select(Numbers(0, 60'000), {.repeat = 100'000}));
  PipelineOptions options = InOrder(*source, 100);
  options.shuffle = true;
  const auto pipeline = Pipeline::Create(source, options);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const Batch* batch = (*pipeline)->Next();
  ASSERT_NE(batch, nullptr);
  List numbers(batch->Find("x")->data<int64_t>().begin(), batch->Find("x")->data<int64_t>().end());
  EXPECT_NE(numbers, Sorted(numbers));
}

TEST(Operators, RefuseMoreExamplesThanTheyCanNumber) {
  const SourcePtr large = Made(Select(Numbers(0, 1), {.repeat = int64_t{1} << 47}));
  const SourcePtr both = Made(Concatenate({large, large}));
  EXPECT_EQ(both->size(), int64_t{1} << 48);
  EXPECT_EQ(Message(Concatenate({both, Numbers(0, 1)}).status()),
            "expected at most 281474976710656 examples in all datasets");
}

TEST(Zip, RefusesColumnsThatNoDatasetProvides) {
  const SourcePtr zipped = Made(Zip({Numbers(0, 5), Numbers(50, 3, "y")}));
  EXPECT_EQ(Message(zipped->Open({{.name = "z", .array = "z"}}).status()),
            "numbers.npy: none of the zipped datasets provides z");
}

TEST(Order, AWindowAsLargeAsTheDatasetShufflesAllOfIt) {
  const SourcePtr source = Numbers(0, 30);
  PipelineOptions options = InOrder(*source);
  options.shuffle = true;
  const List all = Read(source, options).first;
  for (const int64_t window : {30, 31, 1000}) {
    options.shuffle_buffer = window;
    EXPECT_EQ(Read(source, options).first, all) << window;
  }
  options.shuffle_buffer = 29;
  EXPECT_NE(Read(source, options).first, all);
}

// Checks that the workers together read every example of an epoch, in shares that differ by at most
// one.
TEST(Operators, WorkersDivideEveryEpoch) {
  const SourcePtr source = Everything();
  const List expected = Sorted(ReadAll(source));
  for (const int64_t workers : {1, 2, 3, 7}) {
    for (const bool shuffle : {false, true}) {
      List all;
      for (int64_t worker = 0; worker < workers; ++worker) {
        PipelineOptions options = InOrder(*source, 5);
        options.worker = worker;
        options.workers = workers;
        options.shuffle = shuffle;
        const auto [numbers, status] = Read(source, options);
        EXPECT_TRUE(status.ok()) << status;
        all.insert(all.end(), numbers.begin(), numbers.end());
      }
      EXPECT_EQ(Sorted(all), expected) << workers << " workers, shuffle " << shuffle;
    }
  }
}

TEST(Operators, ContinueFromEveryPosition) {
  const SourcePtr source = Everything();
  PipelineOptions options = InOrder(*source, 7);
  options.shuffle = true;
  options.epochs = 2;
  const List all = Read(source, options).first;
  const int64_t batches = (source->size() + 6) / 7;
  for (int64_t drawn = 0; drawn < 2 * batches; ++drawn) {
    options.start = {drawn / batches, drawn % batches};
    const List rest = Read(source, options).first;
    ASSERT_LE(rest.size(), all.size());
    EXPECT_TRUE(std::equal(rest.rbegin(), rest.rend(), all.rbegin())) << "after " << drawn;
    EXPECT_EQ(all.size() - rest.size(),
              static_cast<size_t>((drawn / batches) * source->size() + (drawn % batches) * 7));
  }
}

TEST(Operators, NeedNoMemoryForABatchOfSourcesInMemory) {
  const SourcePtr mixed =
      Made(Mix({Numbers(0, 40), Made(Select(Numbers(100, 40), {.skip = 3}))}, {.weights = {1, 1}}));
  const SourcePtr source = Made(Concatenate({mixed, Numbers(200, 40)}));
  PipelineOptions options = InOrder(*source, 8);
  options.epochs = 0;
  options.shuffle = true;
  const auto pipeline = Pipeline::Create(source, options);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  for (int i = 0; i < 60; ++i) (*pipeline)->Next();
  const int64_t before = allocations;
  for (int i = 0; i < 30; ++i) (*pipeline)->Next();
  EXPECT_EQ(allocations, before);
}

TEST(Operators, KeepTheMemoryForABatchOfSourcesOnDisk) {
  const auto on_disk = [](int64_t first, int64_t count) {
    return std::make_shared<OnDisk>(Numbers(first, count));
  };
  const SourcePtr sources[] = {
      Made(Mix({on_disk(0, 40), on_disk(100, 17)}, {.weights = {2, 1}})),
      Made(Concatenate({on_disk(0, 40), on_disk(100, 17)})),
      Made(Interleave({on_disk(0, 40), on_disk(100, 17)}, {.block_length = 3}))};
  for (const SourcePtr& source : sources) {
    PipelineOptions options = InOrder(*source, 8);
    options.epochs = 0;
    const auto pipeline = Pipeline::Create(source, options);
    ASSERT_TRUE(pipeline.ok()) << pipeline.status();
    for (int i = 0; i < 60; ++i) (*pipeline)->Next();
    const int64_t before = allocations;
    for (int i = 0; i < 60; ++i) (*pipeline)->Next();
    EXPECT_EQ(allocations, before) << source->Describe();
  }
}

TEST(Operators, NeedNoMemoryForABatchByLength) {
  Tensor tokens(DType::kInt64, {60, 6});
  for (size_t i = 0; i < 60; ++i) {
    for (size_t place = 0; place <= i % 6; ++place) tokens.data<int64_t>()[i * 6 + place] = 1;
  }
  const SourcePtr source = Made(BucketByLength(
      TableSource(std::make_shared<const Dataset>(Dataset{.arrays = {{"x", "x.npy", tokens}}})),
      {.fields = {"x"}, .boundaries = {2, 4}}));
  PipelineOptions options = InOrder(*source, 8);
  options.columns[0].by_length = true;
  options.bucket_batches = {7, 5, 3};
  options.epochs = 0;
  options.shuffle = true;
  const auto pipeline = Pipeline::Create(source, options);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  for (int i = 0; i < 60; ++i) (*pipeline)->Next();
  const int64_t before = allocations;
  for (int i = 0; i < 60; ++i) (*pipeline)->Next();
  EXPECT_EQ(allocations, before);
}

TEST(Operators, DescribeThemselves) {
  const SourcePtr mixed = Made(Mix({Numbers(0, 20), Numbers(0, 10)}, {.weights = {2, 1}}));
  EXPECT_EQ(Made(Select(mixed, {.take = 9}))->Describe(),
            "mixed with the weights 2, 1, until the first ends\n"
            "  20 examples: numbers.npy; 320 bytes in memory\n"
            "  10 examples: numbers.npy; 160 bytes in memory; the examples 0 to 8 of 30");
}

TEST(Operators, HaveOtherFingerprints) {
  const SourcePtr disk = std::make_shared<OnDisk>(Numbers(0, 10));
  const SourcePtr other = std::make_shared<OnDisk>(Numbers(0, 11));
  std::vector<uint64_t> all = {
      disk->fingerprint(),
      Made(Select(disk, {.take = 5}))->fingerprint(),
      Made(Select(disk, {.skip = 5}))->fingerprint(),
      Made(Concatenate({disk, other}))->fingerprint(),
      Made(Concatenate({other, disk}))->fingerprint(),
      Made(Interleave({disk, other}, {}))->fingerprint(),
      Made(Mix({disk, other}, {.weights = {1, 1}}))->fingerprint(),
      Made(Mix({disk, other}, {.weights = {1, 2}}))->fingerprint(),
      Made(Mix({disk, other}, {.weights = {1, 2.0000001}}))->fingerprint(),
      Made(Mix({disk, other}, {.weights = {1, 2}, .seed = 1}))->fingerprint(),
      Scale(disk, {"x2"}, 2)->fingerprint(),
  };
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
}

}  // namespace
}  // namespace tfjob::data
