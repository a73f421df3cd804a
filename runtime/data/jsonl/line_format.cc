#include "runtime/data/jsonl/line_format.h"

#include <algorithm>

#include "runtime/data/jsonl/line_reader.h"

namespace tfjob::data {
namespace {

constexpr uint64_t kMostLine = 64 << 20;  // the JSON parser needs up to 15 times as much memory
constexpr uint64_t kMostEnd = 1;          // "\n"

// Returns DataLoss if a line of `size` bytes is too long.
Status CheckLength(uint64_t size) {
  if (size <= kMostLine) return OkStatus();
  return DataLoss("expected a line of at most ", kMostLine, " bytes, got ", size);
}

// Returns the content of the line, or "" if `wanted` is false or the line is too long.
StatusOr<std::string_view> Text(LineReader& lines, const Line& line, bool wanted) {
  if (!wanted || !CheckLength(line.size()).ok()) return std::string_view();
  return lines.Read(line);
}

}  // namespace

Status LineFormat::Scan(const RecordFiles& files, size_t file, RecordFileReader& reader, bool check,
                        const Visitor& visitor) const {
  const RecordFile& of = files.files()[file];
  if (of.size == 0) {
    return visitor.on_damage(
        DataLoss(LinePlace(of, 1), ": the file is empty; expected ", LineName()));
  }
  LineReader lines(files, file, reader);
  const LineCheck check_line = MakeCheck();
  ASSIGN_OR_RETURN(uint64_t offset, lines.Begin());
  for (int64_t number = 1; offset < of.size; ++number) {
    ASSIGN_OR_RETURN(const Line line, lines.At(offset, of.size));
    offset = line.next;
    if (line.blank) continue;
    // The last line is always checked if it has no line end, because it may be incomplete.
    const bool parse = check || (!line.complete && check_line != nullptr);
    ASSIGN_OR_RETURN(const std::string_view text, Text(lines, line, parse));
    Status intact = CheckLength(line.size());
    if (intact.ok() && parse && check_line != nullptr) intact = check_line(text);
    const auto place = [&] { return LinePlace(of, number); };
    if (intact.ok()) {
      RETURN_IF_ERROR(visitor.on_record(
          {.offset = line.begin, .checksum = line.checksum, .content = text, .place = place}));
    } else if (absl::IsDataLoss(intact)) {
      RETURN_IF_ERROR(visitor.on_damage(Annotate(intact, place())));
    } else {
      return Annotate(intact, place());
    }
  }
  return OkStatus();
}

StatusOr<std::string_view> LineFormat::Read(const RecordFiles& files, RecordFileReader& reader,
                                            const RecordPlace& place) const {
  LineReader lines(files, place.file, reader);
  StatusOr<std::string_view> line =
      lines.ReadAt(place.offset, std::min(place.most_bytes, kMostLine + kMostEnd));
  if (line.ok() && line->size() > kMostLine) line = CheckLength(place.most_bytes);
  const bool last = place.offset + place.most_bytes == files.files()[place.file].size;
  if (line.ok() && line->size() == place.most_bytes && !last)
    line = DataLoss("expected its end within ", place.most_bytes, " bytes");
  if (absl::IsDataLoss(line.status())) return Annotate(line.status(), Place(files, reader, place));
  return line;
}

std::string LineFormat::Place(const RecordFiles& files, RecordFileReader& reader,
                              const RecordPlace& place) const {
  return LinePlaceOf(files, reader, place);
}

}  // namespace tfjob::data
