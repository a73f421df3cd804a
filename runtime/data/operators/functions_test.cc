#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <numeric>

#include "runtime/data/operators/cache.h"
#include "runtime/data/operators/computed.h"
#include "runtime/data/operators/filter.h"
#include "runtime/data/operators/map.h"
#include "runtime/data/operators/select.h"
#include "runtime/data/operators/stream.h"
#include "runtime/data/operators/test_sources.h"

namespace tfjob::data {
namespace {

using testing::InOrder;
using testing::Numbers;
using testing::Read;
using testing::ReadAll;

using List = std::vector<int64_t>;

List From(int64_t first, int64_t count) {
  List list(static_cast<size_t>(count));
  std::iota(list.begin(), list.end(), first);
  return list;
}

SourcePtr Valid(StatusOr<SourcePtr> source) {
  EXPECT_TRUE(source.ok()) << source.status();
  return source.ok() ? *std::move(source) : nullptr;
}

// Returns an example that Read (test_sources.h) can check.
Example Number(int64_t number) {
  const auto twice = static_cast<float>(2 * number);
  return {{"x", Tensor::Scalar<int64_t>(number)}, {"x2", Tensor::Of<float>({2}, {twice, twice})}};
}

StatusOr<Example> AddTen(const Example& example) {
  EXPECT_EQ(example[1].value.shape(), Shape{2});
  return Number(example[0].value.data<int64_t>()[0] + 10);
}

TEST(Map, AppliesTheFunctionToEveryExample) {
  for (const int threads : {1, 3}) {
    const SourcePtr mapped = Valid(Map(Numbers(0, 11), AddTen, threads));
    EXPECT_EQ(ReadAll(mapped), From(10, 11));
    PipelineOptions options = InOrder(*mapped);
    options.shuffle = true;
    List shuffled = Read(mapped, options).first;
    std::ranges::sort(shuffled);
    EXPECT_EQ(shuffled, From(10, 11));
  }
}

TEST(Map, MayChangeTheFields) {
  const auto one_value = [](const Example& example) -> StatusOr<Example> {
    return Example{{"sum", Tensor::Of<double>(
                               {1}, {static_cast<double>(example[0].value.data<int64_t>()[0])})}};
  };
  const SourcePtr mapped = Valid(Map(Numbers(4, 2), one_value, 1));
  ASSERT_EQ(mapped->fields().size(), 1u);
  EXPECT_EQ(mapped->fields()[0].name, "sum");
  EXPECT_EQ(mapped->fields()[0].dtype, DType::kFloat64);
  EXPECT_EQ(mapped->fields()[0].shape, Shape{1});
}

TEST(Map, NamesTheExampleThatFails) {
  const auto fails = [](const Example& example) -> StatusOr<Example> {
    if (example[0].value.data<int64_t>()[0] == 6) return InvalidArgument("no sixes");
    return example;
  };
  const SourcePtr mapped = Valid(Map(Numbers(0, 9), fails, 2));
  const auto [numbers, status] = Read(mapped, InOrder(*mapped));
  EXPECT_EQ(numbers, From(0, 4));
  EXPECT_EQ(Message(status), "numbers.npy: example 6: no sixes");
  EXPECT_EQ(Message(Map(Numbers(6, 1), fails, 1).status()), "numbers.npy: example 0: no sixes");
}

TEST(Map, RefusesExamplesThatDifferFromTheFirst) {
  const auto grows = [](const Example& example) -> StatusOr<Example> {
    const int64_t number = example[0].value.data<int64_t>()[0];
    return Example{{"x", Tensor(DType::kInt64, {number})}};
  };
  const SourcePtr mapped = Valid(Map(Numbers(1, 3), grows, 1));
  EXPECT_EQ(Message(Read(mapped, InOrder(*mapped)).second),
            "numbers.npy: example 1: expected x as int64 [1], as in example 0, got int64 [2]");
  const auto renames = [](const Example& example) -> StatusOr<Example> {
    const int64_t number = example[0].value.data<int64_t>()[0];
    return Example{{number == 1 ? "x" : "y", Tensor(DType::kInt64, {})}};
  };
  const SourcePtr renamed = Valid(Map(Numbers(1, 3), renames, 1));
  EXPECT_EQ(Message(Read(renamed, InOrder(*renamed)).second),
            "numbers.npy: example 1: expected the values x, as in example 0, got y");
  const auto none = [](const Example&) -> StatusOr<Example> { return Example(); };
  EXPECT_FALSE(Map(Numbers(1, 3), none, 1).ok());
}

TEST(Filter, KeepsWhatTheFunctionAccepts) {
  const auto even = [](const Example& example) -> StatusOr<bool> {
    return example[0].value.data<int64_t>()[0] % 2 == 0;
  };
  for (const int threads : {1, 3}) {
    const SourcePtr kept = Valid(Filter(Numbers(0, 601), even, threads));
    EXPECT_EQ(kept->size(), 301);
    const List numbers = ReadAll(kept);
    for (size_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], static_cast<int64_t>(2 * i));
  }
}

TEST(Filter, RefusesToKeepNothing) {
  const auto none = [](const Example&) -> StatusOr<bool> { return false; };
  EXPECT_EQ(Message(Filter(Numbers(0, 5), none, 1).status()),
            "numbers.npy: the filter keeps none of the 5 examples");
  const auto fails = [](const Example& example) -> StatusOr<bool> {
    if (example[0].value.data<int64_t>()[0] == 3) return InvalidArgument("three");
    return true;
  };
  EXPECT_EQ(Message(Filter(Numbers(0, 5), fails, 2).status()),
            "numbers.npy: filter of example 3: three");
}

TEST(Filter, RefusesMoreExamplesThanItHasBitsFor) {
  const SourcePtr many = Valid(Select(Numbers(0, 1), {.repeat = int64_t{1} << 48}));
  const auto all = [](const Example&) -> StatusOr<bool> { return true; };
  const std::string error(Message(Filter(many, all, 1).status()));
  EXPECT_NE(error.find("a bit for each does not fit into the"), std::string::npos) << error;
}

TEST(ComputeRows, ReadsAnyRow) {
  const auto row = [](int64_t i) -> StatusOr<Example> { return Number(100 - i); };
  const SourcePtr rows = Valid(ComputeRows("mine", 20, 3, row));
  List numbers = ReadAll(rows);
  EXPECT_EQ(numbers[0], 100);
  EXPECT_EQ(numbers[19], 81);
  EXPECT_EQ(Message(ComputeRows("mine", 0, 1, row).status()),
            "mine: expected at least one example, got 0");
  EXPECT_EQ(Message(ComputeRows("mine", INT64_MAX, 1, row).status()),
            "mine: expected at most 281474976710656 examples, got 9223372036854775807");
}

// Returns a function that yields the numbers 0 to `last`, and counts the passes.
StartPass Counting(int64_t last, int& passes) {
  return [last, &passes]() -> StatusOr<NextExample> {
    ++passes;
    return [last, next = int64_t{0}]() mutable -> StatusOr<std::optional<Example>> {
      if (next > last) return std::optional<Example>();
      return Number(next++);
    };
  };
}

TEST(Stream, IsReadInOrder) {
  int passes = 0;
  const SourcePtr stream = Valid(Stream("numbers", 10, Counting(9, passes)));
  EXPECT_EQ(passes, 1) << "example 0 is read to learn the fields";
  EXPECT_EQ(ReadAll(stream), From(0, 10));
  EXPECT_EQ(passes, 2);
}

TEST(Stream, BeginsAPassForEveryEpochAndSkipsTheSharesOfOthers) {
  int passes = 0;
  const SourcePtr stream = Valid(Stream("numbers", 7, Counting(9, passes)));
  PipelineOptions options = InOrder(*stream, 2);
  options.epochs = 2;
  options.worker = 1;
  options.workers = 2;
  EXPECT_EQ(Read(stream, options).first, (List{1, 3, 5, 1, 3, 5}));
  EXPECT_EQ(passes, 3);
}

TEST(Stream, CannotBeShuffledUnlessItIsCached) {
  int passes = 0;
  const SourcePtr stream = Valid(Stream("numbers", 10, Counting(9, passes)));
  PipelineOptions options = InOrder(*stream);
  options.shuffle = true;
  EXPECT_EQ(Message(Read(stream, options).second),
            "numbers: the examples can only be read in their order, so they cannot be shuffled; do "
            "not shuffle them, or cache them");
  List numbers = Read(Valid(Cache(stream)), options).first;
  std::ranges::sort(numbers);
  EXPECT_EQ(numbers, From(0, 10));
}

TEST(Stream, SaysWhenAPassIsTooShort) {
  int passes = 0;
  const SourcePtr stream = Valid(Stream("numbers", 10, Counting(5, passes)));
  const auto [numbers, status] = Read(stream, InOrder(*stream));
  EXPECT_EQ(numbers, From(0, 4));
  EXPECT_EQ(Message(status),
            "numbers: example 6: expected 10 examples in every pass, but this one ended after 6; "
            "state the number of examples that every pass has");
  // The error must not have the code OutOfRange, which is reserved for numbers that are not finite.
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
}

TEST(Stream, BeginsANewPassAfterAPassThatDidNotStart) {
  int passes = 0;
  const StartPass counting = Counting(9, passes);
  const SourcePtr stream = Valid(Stream("numbers", 10, [&]() -> StatusOr<NextExample> {
    if (passes != 2) return counting();
    ++passes;
    return Unavailable("no connection");
  }));
  const auto reader = stream->Open(ColumnsOfFields(*stream));
  ASSERT_TRUE(reader.ok()) << reader.status();
  std::vector<NamedTensor> tensors;
  for (const Field& field : stream->fields()) tensors.push_back({field.name, TensorFor(field, 1)});
  const auto read = [&](int64_t row) { return (*reader)->Read({&row, 1}, tensors); };
  ASSERT_TRUE(read(5).ok());
  EXPECT_FALSE(read(0).ok()) << "this pass does not start";
  ASSERT_TRUE(read(0).ok());
  EXPECT_EQ(tensors[0].value.data<int64_t>()[0], 0);
}

}  // namespace
}  // namespace tfjob::data
