#include "operator/local/run/log_follower.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>

#include "operator/api/tfjob.h"
#include "runtime/base/file.h"

namespace tfjob::local {

namespace {

// Calls `take` for each log in `folder`, with the names of the pod and the log, and the log's path.
void ForEachLog(const std::string& folder,
                const std::function<void(const std::string& pod, const std::string& log,
                                         const std::string& path)>& take) {
  const auto pods = ListDirectory(folder);
  if (!pods.ok()) return;
  for (const std::string& pod : *pods) {
    const auto logs = ListDirectory(StrCat(folder, "/", pod));
    if (!logs.ok()) continue;
    for (const std::string& log : *logs) take(pod, log, StrCat(folder, "/", pod, "/", log));
  }
}

}  // namespace

LogSizes SizesOfLogs(const std::string& folder) {
  LogSizes sizes;
  ForEachLog(folder, [&](const std::string&, const std::string&, const std::string& path) {
    struct stat file{};
    if (stat(path.c_str(), &file) == 0) sizes[path] = file.st_size;
  });
  return sizes;
}

std::string ReadLog(const std::string& path, const LogSizes& earlier) {
  std::string text = ReadFile(path).value_or("");
  const auto found = earlier.find(path);
  if (found != earlier.end()) text.erase(0, static_cast<size_t>(found->second));
  return text;
}

LogFollower::LogFollower(std::string folder, const LogSizes& earlier,
                         std::function<void(std::string_view)> print)
    : folder_(std::move(folder)), print_(std::move(print)) {
  for (const auto& [path, size] : earlier) tails_[path].offset = size;
}

void LogFollower::Poll(bool last) {
  ForEachLog(folder_, [&](const std::string& pod, const std::string& log, const std::string& path) {
    const std::string container = log.substr(0, log.rfind('.'));
    const bool usual = container == api::kContainerName;
    Read(path, usual ? pod : StrCat(pod, "/", container), last);
  });
}

void LogFollower::Read(const std::string& path, const std::string& prefix, bool last) {
  Tail& tail = tails_[path];
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  std::array<char, 1 << 16> buffer;
  for (ssize_t count = 0; (count = pread(fd, buffer.data(), buffer.size(), tail.offset)) > 0;) {
    tail.offset += count;
    tail.rest.append(buffer.data(), static_cast<size_t>(count));
    for (size_t end = 0; (end = tail.rest.find('\n')) != std::string::npos;) {
      print_(StrCat(prefix, " | ", tail.rest.substr(0, end)));
      tail.rest.erase(0, end + 1);
    }
  }
  close(fd);
  if (last && !tail.rest.empty()) print_(StrCat(prefix, " | ", std::exchange(tail.rest, "")));
}

std::vector<std::string> LastLines(std::string_view log, size_t count) {
  std::vector<std::string> lines;
  while (log.ends_with('\n')) log.remove_suffix(1);
  while (!log.empty() && lines.size() < count) {
    const size_t end = log.rfind('\n');
    lines.emplace_back(log.substr(end == std::string_view::npos ? 0 : end + 1));
    log = log.substr(0, end == std::string_view::npos ? 0 : end);
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

std::string LastMetric(std::string_view log, std::string_view metric, std::string_view word) {
  constexpr std::string_view kNumber = "0123456789.eE+-";
  while (!log.empty()) {
    const size_t begin = log.rfind('\n') == std::string_view::npos ? 0 : log.rfind('\n') + 1;
    const std::string_view line = log.substr(begin);
    log = log.substr(0, begin == 0 ? 0 : begin - 1);
    const size_t at = line.rfind(metric);
    if (at == std::string_view::npos || line.find(word) == std::string_view::npos) continue;
    std::string_view value = line.substr(at + metric.size());
    value.remove_prefix(std::min(value.find_first_not_of("=: "), value.size()));
    value = value.substr(0, value.find_first_not_of(kNumber));
    if (!value.empty()) return std::string(value);
  }
  return "";
}

}  // namespace tfjob::local
