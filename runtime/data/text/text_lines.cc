#include "runtime/data/text/text_lines.h"

#include <filesystem>
#include <system_error>

#include "runtime/base/file.h"
#include "runtime/base/json.h"
#include "runtime/data/text/text_quote.h"

namespace tfjob::text {

StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t most) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    return InvalidArgument(path, ": expected a regular file");
  const uint64_t size = std::filesystem::file_size(path, error);
  if (!error && size > most) {
    return InvalidArgument(path, ": expected a file of at most ", most, " bytes, got ", size);
  }
  return ReadFile(path);
}

Status VisitLines(std::string_view text, const std::string& path,
                  absl::FunctionRef<Status(std::string_view line, int64_t number)> visit) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (int64_t number = 1; !text.empty(); ++number) {
    const size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const Status visited =
        IsUtf8(line) ? visit(line, number) : InvalidArgument("expected UTF-8, got ", Quote(line));
    if (!visited.ok()) return Annotate(visited, StrCat(path, ": line ", number));
  }
  return OkStatus();
}

}  // namespace tfjob::text
