#include "operator/kube/client/frame_splitter.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tfjob::kube {
namespace {

using Frames = std::vector<std::string>;

// Contains two frames, an empty frame, and the beginning of a fourth frame.
const std::string kBytes("\0\0\0\3abc\0\0\0\1d\0\0\0\0\0\0\0\2e", 21);

TEST(FrameSplitter, GivesTheSameFramesHoweverTheyArePieced) {
  for (size_t piece = 1; piece <= kBytes.size(); ++piece) {
    FrameSplitter splitter(3);
    Frames frames;
    for (size_t at = 0; at < kBytes.size(); at += piece) {
      const Status added = splitter.Add(kBytes.substr(at, piece), [&](std::string_view frame) {
        frames.emplace_back(frame);
        return OkStatus();
      });
      ASSERT_TRUE(added.ok()) << added;
    }
    EXPECT_EQ(frames, (Frames{"abc", "d", ""})) << piece;
    EXPECT_TRUE(splitter.within_frame());
  }
}

TEST(FrameSplitter, EndsBetweenFrames) {
  FrameSplitter splitter(3);
  const auto ignore = [](std::string_view) { return OkStatus(); };
  ASSERT_TRUE(splitter.Add(std::string_view("\0\0\0\1", 4), ignore).ok());
  EXPECT_TRUE(splitter.within_frame());
  ASSERT_TRUE(splitter.Add("x", ignore).ok());
  EXPECT_FALSE(splitter.within_frame());
}

// The claimed length is enough to reject the frame: no memory is allocated for it, and the splitter
// does not wait for its bytes.
TEST(FrameSplitter, RefusesFramesThatClaimTooMuch) {
  for (const size_t piece : {1, 4}) {
    FrameSplitter splitter(3);
    const std::string length("\xff\xff\xff\xff", 4);
    Status added;
    for (size_t at = 0; at < length.size() && added.ok(); at += piece) {
      added = splitter.Add(length.substr(at, piece), [](std::string_view) { return OkStatus(); });
    }
    EXPECT_EQ(Message(added), "a frame of 4294967295 bytes; at most 3 are allowed");
  }
}

TEST(FrameSplitter, StopsWhereItsHandlerFails) {
  FrameSplitter splitter(3);
  Frames frames;
  const Status added = splitter.Add(kBytes, [&](std::string_view frame) {
    frames.emplace_back(frame);
    return frame == "d" ? NotFound("d") : OkStatus();
  });
  EXPECT_EQ(added, NotFound("d"));
  EXPECT_EQ(frames, (Frames{"abc", "d"}));
}

}  // namespace
}  // namespace tfjob::kube
