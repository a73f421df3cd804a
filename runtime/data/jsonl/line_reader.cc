#include "runtime/data/jsonl/line_reader.h"

#include <algorithm>

namespace tfjob::data {
namespace {

constexpr uint64_t kPart = 64 << 10;  // bytes that are searched at once
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

StatusOr<uint64_t> LineReader::Begin() {
  if (file_.size < kByteOrderMark.size()) return 0;
  ASSIGN_OR_RETURN(const std::string_view start, reader_.View(number_, 0, kByteOrderMark.size()));
  return start == kByteOrderMark ? kByteOrderMark.size() : 0;
}

StatusOr<Line> LineReader::At(uint64_t begin, uint64_t most) {
  const uint64_t last = begin + std::min(most, file_.size - begin);
  for (uint64_t from = begin; from < last;) {
    const uint64_t size = std::min(kPart, last - from);
    ASSIGN_OR_RETURN(const std::string_view part, reader_.View(number_, from, size));
    const size_t found = part.find('\n');
    if (found != std::string_view::npos)
      return Line{.begin = begin, .end = from + found, .next = from + found + 1};
    from += size;
  }
  return Line{.begin = begin, .end = last, .next = last};
}

StatusOr<bool> LineReader::IsBlank(const Line& line) {
  for (uint64_t from = line.begin; from < line.end; from += kPart) {
    ASSIGN_OR_RETURN(const std::string_view part,
                     reader_.View(number_, from, std::min(kPart, line.end - from)));
    if (part.find_first_not_of(" \t\r") != std::string_view::npos) return false;
  }
  return true;
}

StatusOr<int64_t> LineReader::NumberOf(uint64_t begin) {
  int64_t number = 1;
  for (uint64_t from = 0; from < begin; from += kPart) {
    ASSIGN_OR_RETURN(const std::string_view part,
                     reader_.View(number_, from, std::min(kPart, begin - from)));
    number += std::count(part.begin(), part.end(), '\n');
  }
  return number;
}

std::string LinePlace(const RecordFile& file, int64_t number) {
  return StrCat(file.path, ": line ", number);
}

}  // namespace tfjob::data
