#include "runtime/data/jsonl/jsonl.h"

#include <algorithm>
#include <string>

#include "runtime/base/json_view.h"
#include "runtime/data/jsonl/line_reader.h"
#include "runtime/data/jsonl/object_parser.h"

namespace tfjob::data {
namespace {

constexpr uint64_t kMostLine = 64 << 20;  // parsing takes ten times this amount of memory
// Counting lines beyond this offset would take too long for an error message.
constexpr uint64_t kMostCounted = uint64_t{4} << 30;

// Returns DataLoss if a line is too long.
Status CheckLength(const Line& line) {
  if (line.size() <= kMostLine) return OkStatus();
  return DataLoss("expected a line of at most ", kMostLine, " bytes, got ", line.size());
}

class Lines : public RecordFormat {
 public:
  Status Scan(const RecordFiles& files, size_t file, RecordFileReader& reader, bool check,
              const Visitor& visitor) const override {
    const RecordFile& of = files.files()[file];
    if (of.size == 0) {
      return visitor.on_damage(
          DataLoss(LinePlace(of, 1), ": the file is empty; expected a JSON object"));
    }
    LineReader lines(files, file, reader);
    JsonDocument document;
    ASSIGN_OR_RETURN(uint64_t offset, lines.Begin());
    for (int64_t number = 1; offset < of.size; ++number) {
      ASSIGN_OR_RETURN(const Line line, lines.At(offset, of.size));
      offset = line.next;
      ASSIGN_OR_RETURN(const bool blank, lines.IsBlank(line));
      if (blank) continue;
      const Status visited = Visit(lines, line, check ? &document : nullptr, visitor);
      if (!absl::IsDataLoss(visited)) {
        RETURN_IF_ERROR(visited);
      } else {
        RETURN_IF_ERROR(visitor.on_damage(Annotate(visited, LinePlace(of, number))));
      }
    }
    return OkStatus();
  }

  StatusOr<std::string_view> Read(const RecordFiles& files, RecordFileReader& reader,
                                  const RecordPlace& place) const override {
    LineReader lines(files, place.file, reader);
    ASSIGN_OR_RETURN(const Line line, lines.At(place.offset, place.most_bytes));
    const Status length = CheckLength(line);
    if (!length.ok()) return Annotate(length, Place(files, reader, place));
    return lines.Read(line);
  }

  std::string Place(const RecordFiles& files, RecordFileReader& reader,
                    const RecordPlace& place) const override {
    const RecordFile& file = files.files()[place.file];
    if (place.offset <= kMostCounted) {
      const StatusOr<int64_t> number = LineReader(files, place.file, reader).NumberOf(place.offset);
      if (number.ok()) return LinePlace(file, *number);
    }
    return StrCat(file.path, ": line at byte ", place.offset);
  }

  std::unique_ptr<RecordParser> MakeParser(const std::vector<ExampleFeature>&) const override {
    return std::make_unique<ObjectParser>();
  }

 private:
  // Visits a line, which is checked if `document` is not null. Returns DataLoss if the line is
  // damaged.
  static Status Visit(LineReader& lines, const Line& line, JsonDocument* document,
                      const Visitor& visitor) {
    RETURN_IF_ERROR(CheckLength(line));
    if (document == nullptr) return visitor.on_record(line.begin, {});
    ASSIGN_OR_RETURN(const std::string_view text, lines.Read(line));
    RETURN_IF_ERROR(ParseObject(text, *document).status());
    return visitor.on_record(line.begin, text);
  }
};

}  // namespace

std::unique_ptr<const RecordFormat> JsonLinesFormat() {
  return std::make_unique<const Lines>();
}

StatusOr<std::shared_ptr<const Source>> OpenJsonLines(const RecordOptions& options) {
  return OpenRecords(JsonLinesFormat(), options);
}

}  // namespace tfjob::data
