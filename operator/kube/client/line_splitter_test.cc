#include "operator/kube/client/line_splitter.h"

#include <gtest/gtest.h>

#include <vector>

#include "operator/kube/rest/transport.h"

namespace tfjob::kube {
namespace {

constexpr size_t kLimit = 20;

// Splits a text that is added in pieces of `size` bytes, and returns the lines.
StatusOr<std::vector<std::string>> Split(const std::string& text, size_t size) {
  LineSplitter splitter(kLimit);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size(); at += size) {
    std::string piece = text.substr(at, size);
    piece.reserve(piece.size() + kReadPadding);
    RETURN_IF_ERROR(splitter.Add(piece, [&lines](std::string_view line) {
      lines.emplace_back(line);
      return OkStatus();
    }));
  }
  if (splitter.within_line()) lines.push_back("...");
  return lines;
}

TEST(LineSplitter, GivesTheSameLinesHoweverTheyArePieced) {
  const std::string text = "one\ntwo \xc3\xa9\r\n\n\r\nthree\nhalf";
  const std::vector<std::string> expected = {"one", "two \xc3\xa9", "three", "..."};
  for (size_t size = 1; size <= text.size(); ++size) {
    const auto lines = Split(text, size);
    ASSERT_TRUE(lines.ok()) << lines.status();
    EXPECT_EQ(*lines, expected) << size;
  }
}

TEST(LineSplitter, RefusesLinesThatAreTooLong) {
  const std::string longest(kLimit, 'x');
  for (size_t size = 1; size <= kLimit + 5; ++size) {
    EXPECT_TRUE(Split(longest + "\n", size).ok()) << size;
    EXPECT_FALSE(Split(longest + "xx\n", size).ok()) << size;
    EXPECT_FALSE(Split(longest + "xx", size).ok()) << size;
  }
}

TEST(LineSplitter, StopsWhereItsHandlerFails) {
  LineSplitter splitter(kLimit);
  int lines = 0;
  const std::string text = "one\ntwo\nthree\n";
  const Status status = splitter.Add(text, [&lines](std::string_view) {
    return ++lines == 2 ? InvalidArgument("enough") : OkStatus();
  });
  EXPECT_EQ(Message(status), "enough");
  EXPECT_EQ(lines, 2);
}

}  // namespace
}  // namespace tfjob::kube
