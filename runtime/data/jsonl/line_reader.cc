#include "runtime/data/jsonl/line_reader.h"

#include <algorithm>
#include <span>

#include "runtime/io/crc32c.h"

namespace tfjob::data {
namespace {

constexpr uint64_t kPart = 64 << 10;        // bytes searched at once
constexpr uint64_t kFirstPart = 256 << 10;  // first read of ReadAt; enough for most lines
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
// The largest offset for which an error message contains the line number. Beyond this offset,
// counting the lines would take too long.
constexpr uint64_t kMostCounted = uint64_t{4} << 30;

}  // namespace

StatusOr<uint64_t> LineReader::Begin() {
  if (file_.size < kByteOrderMark.size()) return 0;
  ASSIGN_OR_RETURN(const std::string_view start, reader_.View(number_, 0, kByteOrderMark.size()));
  return start == kByteOrderMark ? kByteOrderMark.size() : 0;
}

StatusOr<Line> LineReader::At(uint64_t begin, uint64_t most) {
  const uint64_t last = begin + std::min(most, file_.size - begin);
  uint32_t checksum = 0;
  bool blank = true;
  for (uint64_t from = begin; from < last;) {
    const uint64_t size = std::min(kPart, last - from);
    ASSIGN_OR_RETURN(const std::string_view part, reader_.View(number_, from, size));
    const size_t found = part.find('\n');
    checksum = io::ExtendCrc32c(checksum, std::as_bytes(std::span(part.substr(0, found))));
    blank = blank && part.substr(0, found).find_first_not_of(" \t\r") == std::string_view::npos;
    if (found != std::string_view::npos) {
      return Line{.begin = begin,
                  .end = from + found,
                  .next = from + found + 1,
                  .checksum = checksum,
                  .blank = blank,
                  .complete = true};
    }
    from += size;
  }
  return Line{.begin = begin, .end = last, .next = last, .checksum = checksum, .blank = blank};
}

StatusOr<std::string_view> LineReader::ReadAt(uint64_t begin, uint64_t most) {
  // Also read the byte before the line, to check that a line starts here.
  const uint64_t before = begin > 0 ? 1 : 0;
  const uint64_t size = std::min(most, file_.size - begin);
  const uint64_t first = std::min(size, kFirstPart);
  ASSIGN_OR_RETURN(std::string_view text, reader_.View(number_, begin - before, before + first));
  size_t end = text.find('\n', before);
  if (end == std::string_view::npos && first < size) {
    ASSIGN_OR_RETURN(text, reader_.View(number_, begin - before, before + size));
    end = text.find('\n', before);
  }
  const bool after_mark = begin == kByteOrderMark.size() && text[0] == kByteOrderMark.back();
  if (before > 0 && text[0] != '\n' && !after_mark)
    return DataLoss("expected the end of another line before it");
  return text.substr(before, end == std::string_view::npos ? end : end - before);
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

std::string LinePlaceOf(const RecordFiles& files, RecordFileReader& reader,
                        const RecordPlace& place) {
  const RecordFile& file = files.files()[place.file];
  if (place.offset <= kMostCounted) {
    const StatusOr<int64_t> number = LineReader(files, place.file, reader).NumberOf(place.offset);
    if (number.ok()) return LinePlace(file, *number);
  }
  return StrCat(file.path, ": line at byte ", place.offset,
                file.unpacked ? " of its unpacked content" : "");
}

}  // namespace tfjob::data
