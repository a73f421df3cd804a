#include "runtime/base/json_split.h"

#include <algorithm>
#include <string>

namespace tfjob {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

size_t SkipSpace(std::string_view text, size_t at) {
  return std::min(text.find_first_not_of(kSpace, at), text.size());
}

// Returns the position after the string that starts at `at`; npos if the string is not closed.
size_t SkipString(std::string_view text, size_t at) {
  for (++at; at < text.size(); at += text[at] == '\\' ? 2 : 1) {
    if (text[at] == '"') return at + 1;
  }
  return std::string_view::npos;
}

// Returns the position after the container that starts at `at`; npos if the container is not
// closed, its brackets do not match, or it is nested too deeply.
size_t SkipContainer(std::string_view text, size_t at) {
  std::string closers;
  while (at < text.size()) {
    const char c = text[at];
    if (c == '"') {
      at = SkipString(text, at);
      if (at == std::string_view::npos) return at;
      continue;
    }
    if (c == '{' || c == '[') {
      if (closers.size() >= kMaxSplitDepth) return std::string_view::npos;
      closers += c == '{' ? '}' : ']';
    } else if (c == '}' || c == ']') {
      if (closers.back() != c) return std::string_view::npos;
      closers.pop_back();
      if (closers.empty()) return at + 1;
    }
    ++at;
  }
  return std::string_view::npos;
}

// Returns the position after the value that starts at `at`; npos if there is none.
size_t SkipValue(std::string_view text, size_t at) {
  if (at >= text.size()) return std::string_view::npos;
  if (text[at] == '"') return SkipString(text, at);
  if (text[at] == '{' || text[at] == '[') return SkipContainer(text, at);
  const size_t end = std::min(text.find_first_of(",:]}[{\" \t\r\n", at), text.size());
  return end == at ? std::string_view::npos : end;
}

// Reads the parts of one container, one after another.
class Splitter {
 public:
  explicit Splitter(std::string_view text) : text_(text), at_(SkipSpace(text, 0)) {}

  // Consumes the character `c` and the white space after it. Returns false if a different character
  // follows.
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    at_ = SkipSpace(text_, at_ + 1);
    return true;
  }
  // Consumes a value and the white space after it. Returns "" if no value follows.
  std::string_view TakeValue() {
    const size_t end = SkipValue(text_, at_);
    if (end == std::string_view::npos) return {};
    const std::string_view value = text_.substr(at_, end - at_);
    at_ = SkipSpace(text_, end);
    return value;
  }
  bool done() const { return at_ == text_.size(); }
  Status Malformed(std::string_view expected) const {
    return InvalidArgument("not valid JSON: expected ", expected, " at byte ", at_);
  }

 private:
  const std::string_view text_;
  size_t at_;
};

// Calls `take` for each part between `open` and `close`, and checks that the text ends after
// `close`.
template <typename Take>
Status SplitParts(std::string_view text, char open, char close, const Take& take) {
  Splitter splitter(text);
  if (!splitter.Take(open)) return splitter.Malformed(open == '{' ? "an object" : "a list");
  bool closed = splitter.Take(close);
  while (!closed) {
    RETURN_IF_ERROR(take(splitter));
    closed = splitter.Take(close);
    if (!closed && !splitter.Take(',')) return splitter.Malformed("a comma or the end");
  }
  return splitter.done() ? OkStatus() : splitter.Malformed("the end");
}

}  // namespace

StatusOr<std::vector<JsonMember>> SplitJsonObject(std::string_view text) {
  std::vector<JsonMember> members;
  RETURN_IF_ERROR(SplitParts(text, '{', '}', [&](Splitter& splitter) -> Status {
    const std::string_view key = splitter.TakeValue();
    if (key.empty() || key.front() != '"') return splitter.Malformed("a key");
    if (!splitter.Take(':')) return splitter.Malformed("a colon");
    const std::string_view value = splitter.TakeValue();
    if (value.empty()) return splitter.Malformed("a value");
    members.push_back({key.substr(1, key.size() - 2), value});
    return OkStatus();
  }));
  return members;
}

StatusOr<std::vector<std::string_view>> SplitJsonArray(std::string_view text) {
  std::vector<std::string_view> elements;
  RETURN_IF_ERROR(SplitParts(text, '[', ']', [&](Splitter& splitter) -> Status {
    const std::string_view value = splitter.TakeValue();
    if (value.empty()) return splitter.Malformed("a value");
    elements.push_back(value);
    return OkStatus();
  }));
  return elements;
}

std::string_view FindJsonMember(const std::vector<JsonMember>& members, std::string_view key) {
  const auto found = std::find_if(members.begin(), members.end(),
                                  [&](const JsonMember& member) { return member.key == key; });
  return found == members.end() ? std::string_view() : found->value;
}

std::string_view FindJsonMember(std::string_view text, std::string_view key) {
  const StatusOr<std::vector<JsonMember>> members = SplitJsonObject(text);
  return members.ok() ? FindJsonMember(*members, key) : std::string_view();
}

JsonSize MeasureJson(std::string_view text) {
  JsonSize size{0, 1};
  size_t depth = 0;
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      at = std::min(SkipString(text, at), text.size());
      continue;
    }
    if (c == '{' || c == '[') {
      size.depth = std::max(size.depth, ++depth);
      ++size.values;
    } else if (c == ',') {
      ++size.values;
    } else if ((c == '}' || c == ']') && depth > 0) {
      --depth;
    }
    ++at;
  }
  return size;
}

}  // namespace tfjob
