#include "runtime/tensor/window.h"

#include <gtest/gtest.h>

namespace tfjob {
namespace {

TEST(WindowAxis, CountsWindows) {
  EXPECT_EQ((WindowAxis{.size = 3}).Count(5), 3);
  EXPECT_EQ((WindowAxis{.size = 3, .stride = 2}).Count(6), 2);
  EXPECT_EQ((WindowAxis{.size = 3, .dilation = 2}).Count(5), 1);
  EXPECT_EQ((WindowAxis{.size = 3, .stride = 2, .before = 1, .after = 1}).Count(4), 2);
}

// The expected padding is TensorFlow's: tensorflow.org/api_docs/python/tf/nn#same_padding.
TEST(WindowAxis, PadsLikeTensorFlow) {
  struct Row {
    WindowAxis axis;
    int64_t inputs, before, after, windows;
  };
  for (const Row& row :
       {Row{{.size = 3}, 5, 1, 1, 5}, Row{{.size = 2}, 5, 0, 1, 5},
        Row{{.size = 3, .stride = 2}, 6, 0, 1, 3}, Row{{.size = 3, .stride = 2}, 7, 1, 1, 4},
        Row{{.size = 1, .stride = 3}, 5, 0, 0, 2}, Row{{.size = 3, .dilation = 2}, 5, 2, 2, 5}}) {
    const WindowAxis padded = row.axis.Same(row.inputs);
    EXPECT_EQ(padded.before, row.before) << row.inputs;
    EXPECT_EQ(padded.after, row.after) << row.inputs;
    EXPECT_EQ(padded.Count(row.inputs), row.windows) << row.inputs;
  }
}

TEST(CheckWindow, RefusesWhatDoesNotFit) {
  const auto refusal = [](const WindowAxis& height, const Shape& image) {
    return std::string(Message(CheckWindow({.height = height, .width = {}}, image)));
  };
  EXPECT_EQ(refusal({.size = 3}, {1, 5, 5, 1}), "");
  EXPECT_EQ(refusal({}, {5, 5, 1}), "expected images [images,height,width,channels], got [5,5,1]");
  EXPECT_EQ(refusal({}, {1, 5, 0, 1}),
            "expected images [images,height,width,channels], got [1,5,0,1]");
  EXPECT_EQ(refusal({.size = 4, .dilation = 2}, {1, 5, 5, 1}),
            "expected a height of at least 7 for a window of 7, got 5");
  EXPECT_EQ(refusal({.size = 2, .stride = 0}, {1, 5, 5, 1}),
            "expected a size, a stride and a dilation of 1 to 2147483647 along the height, and no "
            "negative padding, got size 2, stride 0, dilation 1, padding 0 and 0");
  EXPECT_EQ(refusal({.size = 2, .before = 2}, {1, 5, 5, 1}),
            "expected less padding than the 2 elements of a window along the height, got 2 and 0");
  EXPECT_EQ(refusal({.size = int64_t{1} << 40, .dilation = int64_t{1} << 40}, {1, 5, 5, 1}),
            "expected a size, a stride and a dilation of 1 to 2147483647 along the height, and no "
            "negative padding, got size 1099511627776, stride 1, dilation 1099511627776, padding 0 "
            "and 0");
  EXPECT_EQ(refusal({.size = 2, .dilation = 2147483646, .before = 2147483646}, {1, 28, 5, 1}),
            "expected a height of at most 2147483647 with padding, got 28 + 2147483646 + 0");
}

TEST(Window, IsReadBackFromAttributes) {
  const Window window{.height = {3, 2, 1, 0, 1}, .width = {5, 1, 2, 4, 3}};
  Attributes attributes;
  SetWindow(attributes, window);
  EXPECT_EQ(attributes.ToString(), "height=[3,2,1,0,1], width=[5,1,2,4,3]");
  const StatusOr<Window> read = WindowOf(attributes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, window);
  attributes.Set("width", std::vector<int64_t>{1});
  EXPECT_EQ(Message(WindowOf(attributes).status()),
            "expected the attribute width: [size, stride, dilation, before, after]");
}

}  // namespace
}  // namespace tfjob
