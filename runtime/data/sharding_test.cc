// Tests how workers share the examples of an epoch: by data, by file or not at all, even while the
// number of workers changes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <set>

#include "runtime/data/pipeline.h"
#include "runtime/data/table_source.h"

namespace tfjob::data {
namespace {

constexpr int64_t kExamples = 103;
const std::vector<int64_t> kStarts = {0, 20, 51, 51, 60, 77};  // of six files, one of them empty

// Has the numbers 0, 1, … as examples, divided into files.
class Files : public Source {
 public:
  explicit Files(std::vector<int64_t> starts = kStarts) : starts_(std::move(starts)) {
    auto dataset = std::make_shared<Dataset>();
    Tensor ids(DType::kInt64, {kExamples});
    std::iota(ids.data<int64_t>().begin(), ids.data<int64_t>().end(), 0);
    dataset->arrays.push_back({"id", "ids", std::move(ids)});
    table_ = TableSource(std::move(dataset));
  }
  int64_t size() const override { return table_->size(); }
  const std::vector<Field>& fields() const override { return table_->fields(); }
  bool in_memory() const override { return false; }
  std::vector<int64_t> file_starts() const override { return starts_; }
  std::string Describe() const override { return "files"; }
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override {
    return table_->Open(columns);
  }

 private:
  const std::vector<int64_t> starts_;
  std::shared_ptr<const Source> table_;
};

PipelineOptions Options(Sharding sharding, bool together, int64_t worker, int64_t workers) {
  PipelineOptions options{.batch_size = 5,
                          .seed = 4,
                          .worker = worker,
                          .workers = workers,
                          .sharding = sharding,
                          .prefetch = 0,
                          .columns = {{.name = "id", .array = "id", .dtype = DType::kInt64}}};
  if (together) options.global_batch = 10;
  return options;
}

std::unique_ptr<Pipeline> Make(const PipelineOptions& options) {
  auto pipeline = Pipeline::Create(std::make_shared<const Files>(), options);
  EXPECT_TRUE(pipeline.ok()) << pipeline.status();
  return *std::move(pipeline);
}

std::vector<int64_t> IdsOf(const Batch* batch) {
  const auto ids = batch->tensors[0].value.data<int64_t>();
  return {ids.begin(), ids.end()};
}

// Returns the ids of `batches` further batches.
std::vector<int64_t> Next(Pipeline& pipeline, int64_t batches) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < batches; ++i) {
    const std::vector<int64_t> next = IdsOf(pipeline.Next());
    ids.insert(ids.end(), next.begin(), next.end());
  }
  return ids;
}

std::vector<int64_t> All() {
  std::vector<int64_t> all(kExamples);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<int64_t> Sorted(std::vector<int64_t> ids) {
  std::ranges::sort(ids);
  return ids;
}

class EverySharding : public testing::TestWithParam<std::tuple<Sharding, bool>> {
 protected:
  Sharding sharding() const { return std::get<0>(GetParam()); }
  bool together() const { return std::get<1>(GetParam()); }
};

TEST_P(EverySharding, UsesEveryExampleOncePerEpoch) {
  for (const int64_t workers : {1, 2, 3, 5}) {
    std::vector<std::unique_ptr<Pipeline>> pipelines;
    for (int64_t w = 0; w < workers; ++w)
      pipelines.push_back(Make(Options(sharding(), together(), w, workers)));
    for (int64_t epoch = 0; epoch < 3; ++epoch) {
      std::vector<int64_t> ids;
      for (const auto& pipeline : pipelines) {
        const std::vector<int64_t> own = Next(*pipeline, pipeline->batches_per_epoch());
        if (sharding() == Sharding::kOff) {
          EXPECT_EQ(Sorted(own), All()) << workers;
        }
        ids.insert(ids.end(), own.begin(), own.end());
      }
      if (sharding() != Sharding::kOff) {
        EXPECT_EQ(Sorted(ids), All()) << workers;
      }
    }
  }
}

TEST_P(EverySharding, ContinuesAtEveryPosition) {
  const PipelineOptions options = Options(sharding(), together(), 1, 3);
  const auto whole = Make(options);
  const int64_t batches = 2 * whole->batches_per_epoch();
  std::vector<std::vector<int64_t>> expected;
  for (int64_t i = 0; i < batches; ++i) expected.push_back(IdsOf(whole->Next()));
  const auto moved = Make(options);
  for (int64_t drawn = batches - 1; drawn >= 0; --drawn) {
    moved->Seek(drawn);
    EXPECT_EQ(IdsOf(moved->Next()), expected[static_cast<size_t>(drawn)]) << drawn;
  }
}

INSTANTIATE_TEST_SUITE_P(All, EverySharding,
                         testing::Combine(testing::Values(Sharding::kData, Sharding::kFile,
                                                          Sharding::kOff),
                                          testing::Bool()));

// In the middle of an epoch, a third worker joins two others, and leaves again in the next epoch.
TEST(Sharding, EveryExampleIsUsedOncePerEpochWhenWorkersJoinAndLeave) {
  for (const Sharding sharding : {Sharding::kData, Sharding::kFile}) {
    std::vector<std::unique_ptr<Pipeline>> pipelines;
    for (int64_t w = 0; w < 3; ++w) {
      PipelineOptions options = Options(sharding, /*together=*/true, w, 3);
      options.file_groups = 3;
      pipelines.push_back(Make(options));
    }
    const int64_t per_epoch = pipelines[0]->batches_per_epoch();
    std::vector<int64_t> ids;
    for (int64_t drawn = 0; drawn < 3 * per_epoch; ++drawn) {
      const bool third = drawn >= per_epoch / 2 && drawn < 2 * per_epoch - 3;
      const int64_t workers = third ? 3 : 2;
      for (int64_t w = 0; w < workers; ++w) {
        Pipeline& pipeline = *pipelines[static_cast<size_t>(w)];
        pipeline.TakePart(w, workers);
        pipeline.Seek(drawn);
        const std::vector<int64_t> part = IdsOf(pipeline.Next());
        ids.insert(ids.end(), part.begin(), part.end());
      }
      if ((drawn + 1) % per_epoch != 0) continue;
      EXPECT_EQ(Sorted(ids), All()) << drawn;
      ids.clear();
    }
  }
}

TEST(Sharding, ByFileEachWorkerReadsFilesOfItsOwn) {
  for (const bool together : {false, true}) {
    std::map<size_t, std::set<int64_t>> readers;  // the workers that have read each file
    for (int64_t w = 0; w < 2; ++w) {
      const auto pipeline = Make(Options(Sharding::kFile, together, w, 2));
      // The smaller group has 48 examples, which suffice for 9 batches.
      for (const int64_t id : Next(*pipeline, 9)) {
        const auto file = std::ranges::upper_bound(kStarts, id) - kStarts.begin();
        readers[static_cast<size_t>(file)].insert(w);
      }
    }
    EXPECT_EQ(readers.size(), 5u);
    for (const auto& [file, workers] : readers) EXPECT_EQ(workers.size(), 1u) << file;
  }
}

TEST(Sharding, WithoutShardingEachWorkerHasAnOrderOfItsOwn) {
  const auto first = Make(Options(Sharding::kOff, false, 0, 2));
  const auto second = Make(Options(Sharding::kOff, false, 1, 2));
  const auto alone = Make(Options(Sharding::kData, false, 0, 1));
  const std::vector<int64_t> ids = Next(*first, 21);
  EXPECT_EQ(ids, Next(*alone, 21)) << "the first worker has the order of a single worker";
  EXPECT_NE(ids, Next(*second, 21));
}

std::string ErrorOf(std::vector<int64_t> starts, const PipelineOptions& options) {
  const auto pipeline = Pipeline::Create(std::make_shared<const Files>(std::move(starts)), options);
  return pipeline.ok() ? "accepted" : std::string(Message(pipeline.status()));
}

TEST(Sharding, ByFileNeedsAsManyFilesAsWorkers) {
  using testing::HasSubstr;
  EXPECT_EQ(ErrorOf(kStarts, Options(Sharding::kFile, false, 0, 5)), "accepted");
  EXPECT_THAT(ErrorOf(kStarts, Options(Sharding::kFile, false, 0, 6)),
              HasSubstr("ids: 5 files with examples are not enough for 6 tasks that read whole "
                        "files; write the examples to more files, or set data.shard: data"));
  EXPECT_THAT(ErrorOf({0}, Options(Sharding::kFile, true, 0, 2)),
              HasSubstr("ids: 1 file with examples is not enough for 2 tasks"));
  EXPECT_THAT(ErrorOf({0, kExamples}, Options(Sharding::kFile, true, 0, 2)), HasSubstr("1 file"));
  EXPECT_THAT(ErrorOf({}, Options(Sharding::kFile, true, 0, 2)),
              HasSubstr("ids: the order of these examples is not that of whole files"));
}

TEST(Sharding, IsDescribed) {
  using testing::HasSubstr;
  const auto source = std::make_shared<const Files>();
  const auto text = [&](Sharding sharding, bool together) {
    return *Pipeline::Describe(source, Options(sharding, together, 1, 2));
  };
  EXPECT_THAT(text(Sharding::kData, true), HasSubstr("share: part 1 of 2 of every batch of 10\n"));
  EXPECT_THAT(text(Sharding::kFile, true), HasSubstr("share: whole files, counted from 0: "));
  EXPECT_THAT(text(Sharding::kOff, true),
              HasSubstr("share: all examples, in an order of this task\nbatches: 21 per epoch, of "
                        "5 examples; the last of 3\n"));
}

}  // namespace
}  // namespace tfjob::data
