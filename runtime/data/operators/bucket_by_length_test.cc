// Tests the creation of batches of examples with similar lengths.
#include "runtime/data/operators/bucket_by_length.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "runtime/data/bucket_batches.h"
#include "runtime/data/operators/cache.h"
#include "runtime/data/operators/join.h"
#include "runtime/data/operators/scale.h"
#include "runtime/data/pipeline.h"
#include "runtime/data/table_source.h"

namespace tfjob::data {
namespace {

constexpr int64_t kPlaces = 8;

// Returns examples with these lengths. Example i has the value 1 + i at every position before its
// end, and the label i.
SourcePtr Sequences(const std::vector<int64_t>& lengths) {
  const auto count = static_cast<int64_t>(lengths.size());
  Tensor tokens(DType::kInt64, {count, kPlaces}), labels(DType::kInt64, {count});
  for (size_t i = 0; i < lengths.size(); ++i) {
    for (int64_t place = 0; place < lengths[i]; ++place)
      tokens.data<int64_t>()[i * kPlaces + static_cast<size_t>(place)] =
          static_cast<int64_t>(i) + 1;
    labels.data<int64_t>()[i] = static_cast<int64_t>(i);
  }
  return TableSource(std::make_shared<const Dataset>(
      Dataset{.arrays = {{"tokens", "a.npz", tokens}, {"labels", "a.npz", labels}}}));
}

// Returns lengths from 0 to 8, in an irregular order.
std::vector<int64_t> Lengths(int64_t count) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < count; ++i) lengths.push_back(i * i * 7 % 9);
  return lengths;
}

SourcePtr Bucketed(SourcePtr source, std::vector<int64_t> boundaries) {
  StatusOr<SourcePtr> made = BucketByLength(
      std::move(source), {.fields = {"tokens"}, .boundaries = std::move(boundaries)});
  EXPECT_TRUE(made.ok()) << made.status();
  return *std::move(made);
}

PipelineOptions Options() {
  return {.epochs = 1,
          .seed = 3,
          .bucket_batches = {4, 3, 2},
          .prefetch = 0,
          .columns = {{.name = "tokens",
                       .array = "tokens",
                       .dtype = DType::kInt64,
                       .shape = {kPlaces},
                       .by_length = true},
                      {.name = "labels", .array = "labels", .dtype = DType::kInt64}}};
}

std::unique_ptr<Pipeline> Make(const SourcePtr& source, const PipelineOptions& options) {
  StatusOr<std::unique_ptr<Pipeline>> pipeline = Pipeline::Create(source, options);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  return std::move(pipeline).value();
}

struct Seen {
  int64_t length = 0;  // the length of the batch
  std::vector<int64_t> labels;
  bool operator==(const Seen&) const = default;
};

// Checks that each token of a batch belongs to the example in the same row, and returns the batch.
Seen Look(const Batch& batch, const std::vector<int64_t>& lengths) {
  const Tensor& tokens = *batch.Find("tokens");
  Seen seen{.length = tokens.shape().dim(1)};
  for (const int64_t label : batch.Find("labels")->data<int64_t>()) {
    const auto row = seen.labels.size();
    const int64_t own = lengths[static_cast<size_t>(label)];
    EXPECT_LE(own, seen.length);
    for (int64_t place = 0; place < seen.length; ++place) {
      EXPECT_EQ(
          tokens
              .data<int64_t>()[row * static_cast<size_t>(seen.length) + static_cast<size_t>(place)],
          place < own ? label + 1 : 0);
    }
    seen.labels.push_back(label);
  }
  return seen;
}

std::vector<Seen> Drain(Pipeline& pipeline, const std::vector<int64_t>& lengths) {
  std::vector<Seen> seen;
  while (const Batch* batch = pipeline.Next()) seen.push_back(Look(*batch, lengths));
  EXPECT_TRUE(pipeline.status().ok()) << pipeline.status();
  return seen;
}

std::vector<int64_t> LabelsOf(const std::vector<Seen>& batches) {
  std::vector<int64_t> all;
  for (const Seen& batch : batches) all.insert(all.end(), batch.labels.begin(), batch.labels.end());
  return all;
}

std::vector<int64_t> Sorted(std::vector<int64_t> values) {
  std::ranges::sort(values);
  return values;
}

std::vector<int64_t> Numbers(int64_t count) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < count; ++i) numbers.push_back(i);
  return numbers;
}

TEST(BucketBatches, ABatchIsAsLongAsItsBucket) {
  const std::vector<int64_t> lengths = Lengths(50);
  const SourcePtr source = Bucketed(Sequences(lengths), {2, 5});
  const std::vector<Seen> batches = Drain(*Make(source, Options()), lengths);
  EXPECT_EQ(Sorted(LabelsOf(batches)), Numbers(50));
  const std::map<int64_t, size_t> sizes = {{2, 4}, {5, 3}, {8, 2}};
  std::map<int64_t, int> smaller;
  for (const Seen& batch : batches) {
    ASSERT_TRUE(sizes.contains(batch.length)) << batch.length;
    EXPECT_LE(batch.labels.size(), sizes.at(batch.length));
    if (batch.labels.size() < sizes.at(batch.length)) ++smaller[batch.length];
    for (const int64_t label : batch.labels) {
      const int64_t own = lengths[static_cast<size_t>(label)];
      EXPECT_EQ(batch.length, own <= 2 ? 2 : own <= 5 ? 5 : 8);
    }
  }
  for (const auto& [length, count] : smaller) EXPECT_EQ(count, 1) << length;
}

TEST(BucketBatches, WithoutShufflingFullBatchesComeAsTheyFill) {
  //                                   0  1  2  3  4  5  6
  const std::vector<int64_t> lengths = {1, 8, 2, 7, 1, 8, 1};
  PipelineOptions options = Options();
  options.shuffle = false;
  options.bucket_batches = {2, 2};
  const SourcePtr source = Bucketed(Sequences(lengths), {4});
  EXPECT_EQ(Drain(*Make(source, options), lengths),
            (std::vector<Seen>{{4, {0, 2}}, {8, {1, 3}}, {4, {4, 6}}, {8, {5}}}));
  options.drop_remainder = true;
  EXPECT_EQ(Drain(*Make(source, options), lengths),
            (std::vector<Seen>{{4, {0, 2}}, {8, {1, 3}}, {4, {4, 6}}}));
}

TEST(BucketBatches, EveryEpochHasAnOrderOfItsOwn) {
  const std::vector<int64_t> lengths = Lengths(60);
  const SourcePtr source = Bucketed(Sequences(lengths), {2, 5});
  for (const int64_t most_listed : {0, 1000}) {
    PipelineOptions options = Options();
    options.epochs = 2;
    options.most_listed = most_listed;
    const std::vector<int64_t> all = LabelsOf(Drain(*Make(source, options), lengths));
    ASSERT_EQ(all.size(), 120u);
    const std::vector<int64_t> first(all.begin(), all.begin() + 60),
        second(all.begin() + 60, all.end());
    EXPECT_EQ(Sorted(first), Numbers(60));
    EXPECT_EQ(Sorted(second), Numbers(60));
    EXPECT_NE(first, second);
    options.prefetch = 3;
    EXPECT_EQ(LabelsOf(Drain(*Make(source, options), lengths)), all);
  }
}

// Returns the examples of each batch, as sets, in which the order does not matter.
std::set<std::vector<int64_t>> Grouped(const std::vector<Seen>& batches) {
  std::set<std::vector<int64_t>> groups;
  for (const Seen& batch : batches) groups.insert(Sorted(batch.labels));
  return groups;
}

TEST(BucketBatches, OtherExamplesComeTogetherInEveryEpochAndWithOtherSeeds) {
  const std::vector<int64_t> lengths = Lengths(60);
  const SourcePtr source = Bucketed(Sequences(lengths), {2, 5});
  PipelineOptions options = Options();
  const auto first = Grouped(Drain(*Make(source, options), lengths));
  EXPECT_EQ(Grouped(Drain(*Make(source, options), lengths)), first);
  options.start.epoch = 1;
  options.epochs = 2;
  EXPECT_NE(Grouped(Drain(*Make(source, options), lengths)), first);
  options = Options();
  options.seed = 4;
  EXPECT_NE(Grouped(Drain(*Make(source, options), lengths)), first);
}

TEST(BucketBatches, BatchesOfAllLengthsShareTheirMemory) {
  const std::vector<int64_t> lengths = Lengths(60);
  const SourcePtr source = Bucketed(Sequences(lengths), {2, 5});
  const auto pipeline = Make(source, Options());
  std::set<const std::byte*> addresses;
  while (const Batch* batch = pipeline->Next())
    addresses.insert(batch->Find("tokens")->bytes().data());
  EXPECT_EQ(addresses.size(), 1u);
}

TEST(BucketBatches, WorkersSeeEveryExampleOnceTogether) {
  const std::vector<int64_t> lengths = Lengths(60);
  const SourcePtr source = Bucketed(Sequences(lengths), {2, 5});
  for (const int64_t workers : {1, 2, 3, 5}) {
    for (const int64_t global_batch : {0, 1}) {
      std::vector<int64_t> all;
      for (int64_t worker = 0; worker < workers; ++worker) {
        PipelineOptions options = Options();
        options.worker = worker;
        options.workers = workers;
        options.global_batch = global_batch;
        const auto own = LabelsOf(Drain(*Make(source, options), lengths));
        all.insert(all.end(), own.begin(), own.end());
      }
      EXPECT_EQ(Sorted(all), Numbers(60)) << workers << " " << global_batch;
    }
  }
}

TEST(BucketBatches, PartsOfABatchHaveTheSameLength) {
  const std::vector<int64_t> lengths = Lengths(60);
  const SourcePtr source = Bucketed(Sequences(lengths), {2, 5});
  PipelineOptions options = Options();
  options.global_batch = 1;
  const std::vector<Seen> whole = Drain(*Make(source, options), lengths);
  options.workers = 2;
  const std::vector<Seen> first = Drain(*Make(source, options), lengths);
  options.worker = 1;
  auto pipeline = Make(source, options);
  const std::vector<Seen> second = Drain(*pipeline, lengths);
  ASSERT_EQ(first.size(), whole.size());
  ASSERT_EQ(second.size(), whole.size());
  for (size_t i = 0; i < whole.size(); ++i) {
    Seen joined = first[i];
    joined.labels.insert(joined.labels.end(), second[i].labels.begin(), second[i].labels.end());
    EXPECT_EQ(joined, whole[i]) << i;
    EXPECT_EQ(second[i].length, whole[i].length);
  }
  pipeline->TakePart(0, 1);
  pipeline->Seek(0);
  EXPECT_EQ(Drain(*pipeline, lengths), whole);
}

TEST(BucketBatches, GoOnAtEveryPosition) {
  const std::vector<int64_t> lengths = Lengths(40);
  const SourcePtr source = Bucketed(Sequences(lengths), {3});
  for (const int64_t prefetch : {0, 2}) {
    PipelineOptions options = Options();
    options.bucket_batches = {4, 3};
    options.epochs = 2;
    options.prefetch = prefetch;
    auto pipeline = Make(source, options);
    const std::vector<Seen> all = Drain(*pipeline, lengths);
    EXPECT_EQ(static_cast<int64_t>(all.size()), 2 * pipeline->batches_per_epoch());
    for (size_t from = 0; from < all.size(); ++from) {
      pipeline->Seek(static_cast<int64_t>(from));
      EXPECT_EQ(Drain(*pipeline, lengths),
                std::vector<Seen>(all.begin() + static_cast<std::ptrdiff_t>(from), all.end()));
    }
  }
}

TEST(BucketBatches, AreCountedWithoutBeingMade) {
  const std::vector<int64_t> lengths = Lengths(50);
  const SourcePtr source = Bucketed(Sequences(lengths), {2, 5});
  for (const bool drop : {false, true}) {
    PipelineOptions options = Options();
    options.drop_remainder = drop;
    EXPECT_EQ(BucketBatches::Count(*source->buckets(), options.bucket_batches, drop),
              Make(source, options)->batches_per_epoch());
  }
}

TEST(BucketBatches, OtherValuesMayBePadding) {
  Tensor tokens = Tensor::Of<int64_t>({3, 4}, {0, 7, 7, 7, 0, 0, 0, 7, 7, 7, 7, 7});
  const SourcePtr source = TableSource(
      std::make_shared<const Dataset>(Dataset{.arrays = {{"tokens", "a.npz", tokens}}}));
  const auto made =
      BucketByLength(source, {.fields = {"tokens"}, .padding = 7, .boundaries = {1, 2}});
  ASSERT_TRUE(made.ok()) << made.status();
  const Buckets& buckets = *(*made)->buckets();
  EXPECT_EQ(buckets.size(0), 2) << "one value, and none";
  EXPECT_EQ(buckets.size(1), 0);
  EXPECT_EQ(buckets.size(2), 1);
}

// Behaves like another source, but with a padding for the first field.
class Padded : public Source {
 public:
  Padded(SourcePtr source, double padding)
      : source_(std::move(source)), fields_(source_->fields()) {
    fields_[0].padding = padding;
  }
  int64_t size() const override { return source_->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  bool in_memory() const override { return false; }
  std::string Describe() const override { return source_->Describe(); }
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override {
    return source_->Open(columns);
  }

 private:
  const SourcePtr source_;
  std::vector<Field> fields_;
};

SourcePtr PaddedBy(double padding) {
  Tensor tokens = Tensor::Of<int64_t>({3, 4}, {0, 7, 7, 7, 0, 0, 7, 7, 7, 7, 7, 0});
  return std::make_shared<const Padded>(TableSource(std::make_shared<const Dataset>(
                                            Dataset{.arrays = {{"tokens", "a.npz", tokens}}})),
                                        padding);
}

// Returns how many examples have the length 1, how many 2, and how many 3 or 4.
std::vector<int64_t> SizesOf(const SourcePtr& source) {
  const auto made = BucketByLength(source, {.fields = {"tokens"}, .boundaries = {1, 2}});
  EXPECT_TRUE(made.ok()) << made.status();
  if (!made.ok()) return {};
  const Buckets& buckets = *(*made)->buckets();
  return {buckets.size(0), buckets.size(1), buckets.size(2)};
}

TEST(BucketBatches, ThePaddingIsThatOfTheData) {
  EXPECT_EQ(SizesOf(PaddedBy(7)), (std::vector<int64_t>{1, 1, 1}));
  EXPECT_EQ(SizesOf(PaddedBy(0)), (std::vector<int64_t>{0, 0, 3}));
}

TEST(BucketBatches, OperatorsKeepThePadding) {
  const std::vector<int64_t> sizes = {1, 1, 1};
  EXPECT_EQ(SizesOf(Scale(PaddedBy(7), {"tokens"}, 0.5f)), sizes);
  EXPECT_EQ(SizesOf(*Cache(PaddedBy(7))), sizes);
  EXPECT_EQ(SizesOf(*Concatenate({PaddedBy(7), PaddedBy(7)})), (std::vector<int64_t>{2, 2, 2}));
}

TEST(BucketBatches, ThePaddingMustBeTheSameInAllData) {
  const SourcePtr joined = *Concatenate({PaddedBy(7), PaddedBy(0)});
  BucketByLengthOptions options{.fields = {"tokens"}, .boundaries = {1, 2}};
  EXPECT_THAT(std::string(Message(BucketByLength(joined, options).status())),
              ::testing::StartsWith("expected one value that pads all examples of tokens (a.npz), "
                                    "but the joined datasets have different ones"));
  options.padding = 7;
  EXPECT_TRUE(BucketByLength(joined, options).ok());
}

TEST(BucketBatches, StepsOfVectorsAreOnePlace) {
  Tensor frames = Tensor::Of<float>({2, 3, 2}, {0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0});
  const SourcePtr source = TableSource(
      std::make_shared<const Dataset>(Dataset{.arrays = {{"frames", "a.npz", frames}}}));
  const auto made = BucketByLength(source, {.fields = {"frames"}, .boundaries = {1}});
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ((*made)->buckets()->Row(0, 0), 0);
  EXPECT_EQ((*made)->buckets()->Row(1, 0), 1);
}

TEST(BucketBatches, WrongBoundariesAndFieldsAreNamed) {
  const auto error = [](const BucketByLengthOptions& options) {
    return std::string(BucketByLength(Sequences({1, 2}), options).status().message());
  };
  EXPECT_EQ(error({.fields = {"tokens"}, .boundaries = {4, 4}}),
            "expected ascending boundaries from 1 to 7, one less than the length "
            "of the examples, got 4");
  EXPECT_THAT(error({.fields = {"tokens"}, .boundaries = {8}}), ::testing::EndsWith("got 8"));
  EXPECT_THAT(error({.fields = {"labels"}, .boundaries = {1}}),
              ::testing::HasSubstr("expected sequences in labels"));
  EXPECT_THAT(error({.fields = {"words"}, .boundaries = {1}}),
              ::testing::EndsWith("the examples have no field words"));
}

TEST(BucketBatches, WorkersWithoutBatchesAreRefused) {
  const SourcePtr source = Bucketed(Sequences({1, 1, 8}), {4});
  PipelineOptions options = Options();
  options.bucket_batches = {2, 2};
  options.worker = 2;
  options.workers = 3;
  EXPECT_THAT(std::string(Pipeline::Create(source, options).status().message()),
              ::testing::HasSubstr("2 batches per epoch are not enough for 3 workers"));
}

TEST(BucketBatches, AreDescribed) {
  const SourcePtr source = Bucketed(Sequences(Lengths(50)), {2, 5});
  const auto text = Pipeline::Describe(source, Options());
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text,
            "order: batches, and the examples of each length, shuffled for every epoch, seed 3\n"
            "share: all examples\n"
            "batches: 17 per epoch, by length; epochs: 1\n"
            "  lengths 1 to 2: 28 examples, in batches of 4\n"
            "  lengths 3 to 5: 11 examples, in batches of 3; the last of 2\n"
            "  lengths 6 to 8: 11 examples, in batches of 2; the last of 1\n"
            "tensors of the longest batch:\n"
            "  tokens: int64 [2,8]\n"
            "  labels: int64 [2]\n"
            "buffers: 1 of 160 bytes; each batch is prepared when it is needed\n");
}

}  // namespace
}  // namespace tfjob::data
