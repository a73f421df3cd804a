#include "runtime/data/csv/csv_format.h"

#include <algorithm>
#include <vector>

#include "runtime/data/byte_source.h"
#include "runtime/data/csv/csv_records.h"
#include "runtime/data/jsonl/line_reader.h"
#include "runtime/io/crc32c.h"

namespace tfjob::data {
namespace {

constexpr uint64_t kMostRecord = 64 << 20;
constexpr size_t kPiece = 64 << 10;

bool IsBlank(std::string_view line) {
  return line.empty() || line == "\r";
}

Status TooLong(const CsvLayout& layout) {
  return DataLoss("expected a record of at most ", kMostRecord, " bytes, got more",
                  layout.quotes ? "; is the closing quotation mark of a field missing?" : "");
}

// The place of one record in a file.
struct FoundCsvRecord {
  uint64_t begin = 0, next = 0;  // `next` is the start of the line after the record
  int64_t lines = 0;
  uint32_t checksum = 0;
  bool blank = false;
  bool open = false;  // the file ends within quotation marks
};

// Returns the record that starts at offset `begin`, or a blank line.
StatusOr<FoundCsvRecord> FindRecord(const CsvLayout& layout, LineReader& lines, uint64_t begin,
                                    uint64_t size) {
  FoundCsvRecord record{.begin = begin, .next = begin};
  do {
    ASSIGN_OR_RETURN(const Line line, lines.At(record.next, kMostRecord + 1));
    record.next = line.next;
    if (line.end - begin > kMostRecord) return TooLong(layout);
    ASSIGN_OR_RETURN(const std::string_view text, lines.Read(line));
    if (record.lines++ == 0) {
      record.checksum = line.checksum;
      record.blank = IsBlank(text);
    } else {
      record.checksum = io::ExtendCrc32c(record.checksum, std::as_bytes(std::span("\n", 1)));
      record.checksum = io::ExtendCrc32c(record.checksum, std::as_bytes(std::span(text)));
    }
    record.open = layout.quotes && EndsInQuotes(text, layout.delimiter, record.open);
  } while (record.open && record.next < size);
  return record;
}

}  // namespace

StatusOr<std::string> FirstCsvRecord(const std::string& path, const CsvLayout& layout) {
  ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(path));
  std::string text;
  std::vector<std::byte> piece(kPiece);
  size_t line = 0, searched = 0;  // the start of the current line, and the next byte to search
  bool open = false;
  for (bool more = true; more;) {
    ASSIGN_OR_RETURN(const size_t got, source.Read(piece));
    more = got == piece.size();
    text.append(reinterpret_cast<const char*>(piece.data()), got);
    if (line == 0 && text.starts_with(kByteOrderMark)) line = kByteOrderMark.size();
    while (line < text.size()) {
      const size_t end = std::min(text.find('\n', std::max(line, searched)), text.size());
      searched = end;
      if (end == text.size() && more) break;
      const std::string_view content = std::string_view(text).substr(line, end - line);
      const bool blank = layout.quotes && !open && IsBlank(content);
      open = layout.quotes && EndsInQuotes(content, layout.delimiter, open);
      line = std::min(end + 1, text.size());
      if (open || blank) continue;
      text.resize(line);
      return text;
    }
    if (text.size() > kMostRecord) return Annotate(TooLong(layout), path);
  }
  return text;
}

Status CsvFormat::Scan(const RecordFiles& files, size_t file, RecordFileReader& reader,
                       bool /*check*/, const Visitor& visitor) const {
  const RecordFile& of = files.files()[file];
  LineReader lines(files, file, reader);
  ASSIGN_OR_RETURN(uint64_t offset, lines.Begin());
  bool header = layout_.header;
  int64_t blank = 0;  // the number of the first blank line since the last record, or 0
  for (int64_t number = 1; offset < of.size;) {
    const auto place = [&] { return LinePlace(of, number); };
    const StatusOr<FoundCsvRecord> found = FindRecord(layout_, lines, offset, of.size);
    if (!found.ok()) return Annotate(found.status(), place());
    if (found->open) {
      return DataLoss(place(), ": expected a second quotation mark, but the file ends before it");
    }
    if (found->blank) {
      if (blank == 0) blank = number;
    } else if (!layout_.quotes && blank > 0) {
      return DataLoss(LinePlace(of, blank), ": expected a row, got a blank line");
    } else if (header) {
      header = false;
    } else {
      RETURN_IF_ERROR(visitor.on_record(
          {.offset = found->begin, .checksum = found->checksum, .content = {}, .place = place}));
    }
    offset = found->next;
    number += found->lines;
  }
  return OkStatus();
}

StatusOr<std::string_view> CsvFormat::Read(const RecordFiles& /*files*/, RecordFileReader& reader,
                                           const RecordPlace& place) const {
  // Blank lines may follow the record.
  return reader.View(place.file, place.offset,
                     static_cast<size_t>(std::min(place.most_bytes, kMostRecord + 1)));
}

std::string CsvFormat::Place(const RecordFiles& files, RecordFileReader& reader,
                             const RecordPlace& place) const {
  return LinePlaceOf(files, reader, place);
}

}  // namespace tfjob::data
