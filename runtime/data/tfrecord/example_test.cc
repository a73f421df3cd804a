#include "runtime/data/tfrecord/example.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "runtime/data/tfrecord/test_example.h"

namespace tfjob::data {
namespace {

using testing::BytesFeature;
using testing::ExampleOf;
using testing::FloatFeature;
using testing::Int64Feature;
using testing::SequenceExampleOf;

// Returns the names and kinds of the features, and the names of the feature lists, in the form
// "name=kind,name=kind;steps of name", or the error.
std::string Names(std::string_view example) {
  std::string names;
  const auto on_feature = [&](const Feature& feature) {
    names += StrCat(names.empty() ? "" : ",", feature.name, "=", Name(feature.kind));
    return OkStatus();
  };
  const auto on_steps = [&](const FeatureSteps& steps) {
    names += StrCat(";steps of ", steps.name);
    return OkStatus();
  };
  const Status status = VisitExample(example, {on_feature, on_steps});
  return status.ok() ? names : std::string(Message(status));
}

std::string ListOf(const std::string& example) {
  std::string list;
  const auto on_feature = [&](const Feature& feature) {
    list = feature.list;
    return OkStatus();
  };
  const auto on_steps = [](const FeatureSteps&) { return Internal("no steps expected"); };
  EXPECT_EQ(VisitExample(example, {on_feature, on_steps}), OkStatus());
  return list;
}

TEST(Example, VisitsFeaturesOfEachKind) {
  EXPECT_EQ(Names(ExampleOf({{"a", BytesFeature({"x"})},
                             {"b", FloatFeature({1})},
                             {"c", Int64Feature({2})},
                             {"without a list", ""}})),
            "a=a bytes_list,b=a float_list,c=an int64_list");
  EXPECT_EQ(Names(""), "") << "an example without features";
  EXPECT_EQ(Names(testing::WireField(7, "new") + ExampleOf({{"a", FloatFeature({})}})),
            "a=a float_list")
      << "unknown fields are skipped, as protobuf does";
}

TEST(Example, ReadsLists) {
  std::array<int64_t, 4> integers{};
  const std::vector<int64_t> values = {0, -1, std::numeric_limits<int64_t>::min(),
                                       std::numeric_limits<int64_t>::max()};
  EXPECT_EQ(*ReadInt64List(ListOf(ExampleOf({{"a", Int64Feature(values)}})), integers), 4u);
  EXPECT_EQ(std::vector<int64_t>(integers.begin(), integers.end()), values);

  std::array<float, 2> floats{};
  EXPECT_EQ(*ReadFloatList(ListOf(ExampleOf({{"a", FloatFeature({1.5f, -2, 3})}})), floats), 3u)
      << "counts also what there is no room for";
  EXPECT_EQ(floats, (std::array{1.5f, -2.0f}));

  std::array<std::string_view, 2> texts;
  const std::string list = ListOf(ExampleOf({{"a", BytesFeature({"one", ""})}}));
  EXPECT_EQ(*ReadBytesList(list, texts), 2u);
  EXPECT_EQ(texts[0], "one");
  EXPECT_EQ(texts[1], "");
}

TEST(Example, ReadsListsThatAreNotPacked) {
  std::array<int64_t, 3> integers{};
  EXPECT_EQ(*ReadInt64List("\x08\x05\x0A\x02\x06\x07", integers), 3u);
  EXPECT_EQ(integers, (std::array<int64_t, 3>{5, 6, 7}));
  std::array<float, 1> floats{};
  EXPECT_EQ(*ReadFloatList(std::string_view("\x0D\0\0\x80\x3F", 5), floats), 1u);
  EXPECT_EQ(floats[0], 1.0f);
}

TEST(Example, RefusesMalformedLists) {
  EXPECT_FALSE(ReadInt64List("\x0A\x02\x06", {}).ok()) << "shorter than it says";
  EXPECT_FALSE(ReadInt64List("\x0A\x01\x86", {}).ok()) << "a number that does not end";
  EXPECT_FALSE(ReadInt64List("\x10\x01", {}).ok()) << "field 2";
  EXPECT_FALSE(ReadInt64List("\x0A\x0B\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01", {}).ok())
      << "more than 64 bits";
  EXPECT_FALSE(ReadFloatList(std::string_view("\x0A\x03\0\0\0", 5), {}).ok()) << "3 bytes";
  EXPECT_FALSE(ReadFloatList(std::string_view("\x0D\0\0\0", 4), {}).ok()) << "3 bytes";
  EXPECT_FALSE(ReadBytesList("\x0A\xFF\xFF\xFF\xFF\x0F", {}).ok()) << "a huge length";
  EXPECT_FALSE(ReadBytesList("\x08\x01", {}).ok()) << "a number";
  EXPECT_EQ(Message(ReadFloatList("\x0A\x01z", {}).status()),
            "malformed data in a float_list, near its byte 3 of 3");
}

TEST(Example, RefusesWhatIsAmbiguous) {
  EXPECT_EQ(Names(ExampleOf({{"a", FloatFeature({1}) + Int64Feature({2})}})),
            "feature a: expected one list of values, got 2");
}

// Returns the kinds of the steps of the only feature list, or the error.
std::string Steps(const std::string& example) {
  std::string kinds;
  const auto on_feature = [](const Feature&) { return OkStatus(); };
  const auto on_step = [&](const Feature& feature) {
    EXPECT_EQ(feature.name, "s");
    kinds += StrCat(kinds.empty() ? "" : " ", feature.has_list ? Name(feature.kind) : "none");
    return OkStatus();
  };
  const auto on_steps = [&](const FeatureSteps& steps) { return VisitSteps(steps, on_step); };
  const Status status = VisitExample(example, {on_feature, on_steps});
  return status.ok() ? kinds : std::string(Message(status));
}

TEST(Example, VisitsTheStepsOfSequences) {
  const std::string sequence =
      SequenceExampleOf({{"label", Int64Feature({3})}},
                        {{"s", {FloatFeature({1, 2}), Int64Feature({5})}}, {"empty", {}}});
  EXPECT_EQ(Names(sequence), "label=an int64_list;steps of s;steps of empty");
  EXPECT_EQ(Steps(SequenceExampleOf({}, {{"s", {FloatFeature({1, 2}), Int64Feature({5})}}})),
            "a float_list an int64_list");
  EXPECT_EQ(Steps(SequenceExampleOf({}, {{"s", {}}})), "");
  const std::string gap = SequenceExampleOf({}, {{"s", {FloatFeature({1}), ""}}});
  EXPECT_EQ(Steps(gap), "a float_list none");
  EXPECT_TRUE(CheckExample(gap).ok());
  EXPECT_EQ(Steps(SequenceExampleOf({}, {{"s", {FloatFeature({1}) + Int64Feature({2})}}})),
            "feature s: step 0: expected one list of values, got 2");
  EXPECT_FALSE(CheckExample(testing::WireField(2, "lists")).ok());
  EXPECT_FALSE(CheckExample(SequenceExampleOf({}, {{"s", {testing::WireField(2, "?")}}})).ok());
  for (size_t size = 1; size < sequence.size(); ++size) {
    // If a SequenceExample is truncated before its feature lists, the remaining bytes are an
    // Example.
    const bool example = sequence.substr(0, size) == ExampleOf({{"label", Int64Feature({3})}});
    EXPECT_EQ(CheckExample(std::string_view(sequence).substr(0, size)).ok(), example) << size;
  }
}

// Entries and features that consist of exactly the usual fields are read in another way.
TEST(Example, UnusualEncodingsMeanTheSame) {
  using testing::WireField;
  for (const size_t count : {1, 40}) {  // with lengths of one byte, and of two
    const std::string list = FloatFeature(std::vector<float>(count, 1.5f));
    const auto example_of = [](const std::string& entry) {
      return WireField(1, WireField(1, entry));
    };
    const std::string name = WireField(1, "a");
    const std::string usual = example_of(name + WireField(2, list));
    const std::string unusual[] = {
        example_of(WireField(2, list) + name),
        example_of(name + WireField(2, list) + WireField(3, "new")),
        example_of(name + WireField(2, list + WireField(4, "new"))),
        example_of(name + WireField(2, WireField(4, "new") + list)),
        example_of(name + WireField(2, Int64Feature({7})) + WireField(2, list)),
        example_of(name + name + WireField(2, list)),
    };
    EXPECT_EQ(Names(usual), "a=a float_list");
    for (const std::string& example : unusual) {
      EXPECT_EQ(Names(example), "a=a float_list");
      EXPECT_EQ(ListOf(example), ListOf(usual));
    }
    EXPECT_EQ(Names(example_of(name + WireField(2, list) + "\x08")),
              "protobuf: a number does not end");
    const std::string twice = list + list;
    EXPECT_EQ(Names(example_of(name + WireField(2, twice))),
              "feature a: expected one list of values, got 2");
  }
}

TEST(Example, EveryPrefixIsReadOrRefused) {
  const std::string example = ExampleOf(
      {{"a", BytesFeature({"xyz"})}, {"b", FloatFeature({1, 2})}, {"c", Int64Feature({300, -1})}});
  ASSERT_TRUE(CheckExample(example).ok());
  for (size_t size = 1; size < example.size(); ++size)
    EXPECT_FALSE(CheckExample(std::string_view(example).substr(0, size)).ok()) << size;
}

}  // namespace
}  // namespace tfjob::data
