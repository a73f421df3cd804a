#include "runtime/graph/device.h"

#include <gtest/gtest.h>

namespace tfjob::graph {
namespace {

TEST(DeviceSpec, ReadsAndPrintsEveryPart) {
  for (const char* text :
       {"", "/job:ps", "/job:ps/replica:0/task:1/device:CPU:0", "/device:GPU:*", "/task:3"}) {
    auto spec = DeviceSpec::Parse(text);
    ASSERT_TRUE(spec.ok()) << spec.status();
    EXPECT_EQ(spec->ToString(), text);
  }
  EXPECT_EQ(DeviceSpec::Parse("/cpu:0")->ToString(), "/device:CPU:0");
  EXPECT_EQ(DeviceSpec::Parse("/job:ps/gpu:1")->ToString(), "/job:ps/device:GPU:1");
  EXPECT_EQ(DeviceSpec::Parse("/job:*/task:*")->ToString(), "");
}

TEST(DeviceSpec, MergesInnerOverOuter) {
  const DeviceSpec outer = *DeviceSpec::Parse("/job:worker/task:1/cpu:0");
  const DeviceSpec inner = *DeviceSpec::Parse("/job:ps/device:GPU");
  EXPECT_EQ(outer.MergedWith(inner).ToString(), "/job:ps/task:1/device:GPU:0");
  EXPECT_EQ(outer.MergedWith(DeviceSpec()), outer);
}

TEST(DeviceSpec, NamesThePartThatIsWrong) {
  for (const char* text :
       {"job:ps", "/job", "/task:x", "/task:-1", "/device:", "/tpu:0", "/job:ps/"}) {
    EXPECT_EQ(DeviceSpec::Parse(text).status().code(), StatusCode::kInvalidArgument) << text;
  }
  EXPECT_NE(Message(DeviceSpec::Parse("/job:ps/task:x").status()).find("got \"/task:x\""),
            std::string::npos);
}

}  // namespace
}  // namespace tfjob::graph
