#include "runtime/io/hdf5_file.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/io/hdf5_program.h"

namespace tfjob::io {
namespace {

constexpr size_t kMaxMessage = 4096;

struct Pipe {
  int ends[2] = {-1, -1};
  ~Pipe() {
    for (int end : ends) {
      if (end >= 0) close(end);
    }
  }
  Status Open() {
    if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
    return OkStatus();
  }
  void CloseWriteEnd() { close(std::exchange(ends[1], -1)); }
};

// The resource limits of the program.
struct Limits {
  uint64_t megabytes;
  uint64_t seconds;
  uint64_t output_megabytes;
};

// Returns the limits for a file of this many bytes. The output may be 16 times as large as the file
// (see hdf5/read.h), and also contains a header.
Limits LimitsFor(uint64_t bytes) {
  const uint64_t megabytes = (bytes >> 20) + 1;
  return {.megabytes = 1024 + 6 * megabytes,
          .seconds = 60 + megabytes / 8,
          .output_megabytes = 128 + 16 * megabytes};
}

StatusOr<pid_t> Spawn(const std::string& verb, const Limits& limits, int input, int output,
                      int errors) {
  const std::string program = Hdf5Program();
  const std::string megabytes = StrCat(limits.megabytes), seconds = StrCat(limits.seconds),
                    output_megabytes = StrCat(limits.output_megabytes);
  const char* const arguments[] = {program.c_str(),          verb.c_str(),
                                   megabytes.c_str(),        seconds.c_str(),
                                   output_megabytes.c_str(), nullptr};
  // Disable plugins, which the library would load from a folder, and file locks, which some network
  // file systems do not support.
  const char* const environment[] = {"HDF5_PLUGIN_PRELOAD=::", "HDF5_USE_FILE_LOCKING=FALSE",
                                     nullptr};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, 0);
  posix_spawn_file_actions_adddup2(&actions, output, 1);
  posix_spawn_file_actions_adddup2(&actions, errors, 2);
  pid_t pid = -1;
  const int failed =
      posix_spawn(&pid, program.c_str(), &actions, nullptr, const_cast<char* const*>(arguments),
                  const_cast<char* const*>(environment));
  posix_spawn_file_actions_destroy(&actions);
  if (failed == 0) return pid;
  return FailedPrecondition("HDF5 files need the program tfjob-hdf5, which cannot be run: ",
                            Message(ErrnoStatus(failed, program)),
                            "; install it beside this program, or set TFJOB_HDF5 to its path");
}

// Returns the text that the process writes to its standard error until the process closes it or
// `most` has passed.
std::string Collect(int errors, Duration most) {
  std::string message;
  const auto end = RealClock().Monotonic() + most;
  while (true) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(end - RealClock().Monotonic());
    if (left.count() <= 0) return message;
    pollfd ready = {.fd = errors, .events = POLLIN, .revents = 0};
    if (poll(&ready, 1, static_cast<int>(left.count())) <= 0) continue;
    std::array<char, 512> buffer;
    const ssize_t got = read(errors, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return message;
    if (message.size() < kMaxMessage) message.append(buffer.data(), static_cast<size_t>(got));
  }
}

// Waits until the process exits. If `options` is WNOHANG and the process is still running, returns
// 0 at once.
StatusOr<pid_t> Wait(pid_t pid, int& status, int options) {
  for (;;) {
    const pid_t ended = waitpid(pid, &status, options);
    if (ended >= 0) return ended;
    if (errno == EINTR) continue;
    return FailedPrecondition("the exit status of the program tfjob-hdf5 is unknown: ",
                              Message(ErrnoStatus(errno, "waitpid")),
                              "; do not ignore SIGCHLD in this process, and do not wait for "
                              "processes that it has not started itself");
  }
}

// Returns the exit status of a process that has closed its standard error or exceeded its time.
// Kills the process unless it exits within a short time: the genuine program keeps its standard
// error open until it exits, so a process that has closed it and keeps running has been subverted.
StatusOr<int> End(pid_t pid) {
  constexpr int kPauses = 100;
  int status = 0;
  for (int i = 0; i < kPauses; ++i) {
    ASSIGN_OR_RETURN(const pid_t ended, Wait(pid, status, WNOHANG));
    if (ended == pid) return status;
    poll(nullptr, 0, 1);
  }
  kill(pid, SIGKILL);
  RETURN_IF_ERROR(Wait(pid, status, 0).status());
  return status;
}

// Runs the program with the two files. If the program fails, the error names the file `name`.
Status Run(const std::string& verb, const std::string& name, uint64_t bytes, int input,
           int output) {
  Pipe errors;
  RETURN_IF_ERROR(errors.Open());
  const Limits limits = LimitsFor(bytes);
  ASSIGN_OR_RETURN(const pid_t pid, Spawn(verb, limits, input, output, errors.ends[1]));
  errors.CloseWriteEnd();
  const std::string message = Collect(errors.ends[0], std::chrono::seconds(limits.seconds + 60));
  const StatusOr<int> ended = End(pid);
  if (!ended.ok()) return Annotate(ended.status(), name);
  const int status = *ended;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return OkStatus();
  if (WIFEXITED(status) && WEXITSTATUS(status) == 1) return DataLoss(name, ": ", message);
  const std::string how = WIFSIGNALED(status) ? StrCat("by signal ", WTERMSIG(status))
                                              : StrCat("with code ", WEXITSTATUS(status));
  return DataLoss(name, ": the HDF5 library ended ", how,
                  verb == "read" ? ": the file is damaged, or needs more than " : "; it may use ",
                  limits.megabytes, " MiB, ", limits.seconds, " s and ", limits.output_megabytes,
                  " MiB for the result");
}

}  // namespace

bool LooksLikeHdf5(std::string_view beginning) {
  return beginning.starts_with("\x89HDF\r\n\x1a\n");
}

Hdf5File::Hdf5File(std::string name, std::unique_ptr<SafetensorsReader> tensors, Json attributes)
    : name_(std::move(name)),
      tensors_(std::move(tensors)),
      attributes_(std::make_unique<const Json>(std::move(attributes))) {}

Hdf5File::~Hdf5File() = default;

StatusOr<std::unique_ptr<Hdf5File>> Hdf5File::Open(const std::string& path) {
  ASSIGN_OR_RETURN(RandomAccessFile file, RandomAccessFile::Open(path));
  return Open(std::move(file));
}

StatusOr<std::unique_ptr<Hdf5File>> Hdf5File::Open(RandomAccessFile file) {
  ASSIGN_OR_RETURN(const MemoryFile result, MemoryFile::Create(file.path()));
  RETURN_IF_ERROR(Run("read", file.path(), file.size(), file.descriptor(), result.descriptor()));
  ASSIGN_OR_RETURN(RandomAccessFile reopened, result.Reopened());
  ASSIGN_OR_RETURN(auto tensors, SafetensorsReader::Open(std::move(reopened)));
  const auto text = tensors->metadata().find("attributes");
  if (text == tensors->metadata().end()) return Internal(file.path(), ": no attributes");
  ASSIGN_OR_RETURN(Json attributes, ParseJson(text->second, file.path()));
  return std::unique_ptr<Hdf5File>(
      new Hdf5File(file.path(), std::move(tensors), std::move(attributes)));
}

bool Hdf5File::HasAttribute(const std::string& path, const std::string& attribute) const {
  return JsonField(*attributes_)[path][attribute].present();
}

StatusOr<std::string> Hdf5File::Text(const std::string& path, const std::string& attribute) const {
  const StatusOr<std::string> text = JsonField(*attributes_)[path][attribute].String();
  if (text.ok()) return text;
  return NotFound(name_, ": the group /", path, " has no text ", attribute);
}

StatusOr<std::vector<std::string>> Hdf5File::Texts(const std::string& path,
                                                   const std::string& attribute) const {
  const JsonField group = JsonField(*attributes_)[path];
  std::vector<std::string> texts;
  const auto add = [&](const JsonField& list) -> Status {
    ASSIGN_OR_RETURN(const std::vector<JsonField> elements, list.Elements());
    for (const JsonField& element : elements) {
      ASSIGN_OR_RETURN(texts.emplace_back(), element.String());
    }
    return OkStatus();
  };
  Status status = add(group[attribute]);
  int part = 0;
  for (; status.ok() && group[StrCat(attribute, part)].present(); ++part)
    status = add(group[StrCat(attribute, part)]);
  if (status.ok() && (part > 0 || group[attribute].present())) return texts;
  return NotFound(name_, ": the group /", path, " has no list of texts ", attribute);
}

StatusOr<MemoryFile> MakeHdf5(const std::string& name, const NamedTensors& datasets,
                              const Json& attributes) {
  ASSIGN_OR_RETURN(const std::string header,
                   SafetensorsHeader(datasets, {{"attributes", PrintJson(attributes)}}));
  ASSIGN_OR_RETURN(MemoryFile input, MemoryFile::Create(name));
  RETURN_IF_ERROR(input.Append(header));
  uint64_t bytes = header.size();
  for (const auto& [path, tensor] : datasets) {
    const auto values = tensor.bytes();
    RETURN_IF_ERROR(input.Append({reinterpret_cast<const char*>(values.data()), values.size()}));
    bytes += values.size();
  }
  ASSIGN_OR_RETURN(MemoryFile output, MemoryFile::Create(name));
  RETURN_IF_ERROR(Run("write", name, bytes, input.descriptor(), output.descriptor()));
  return output;
}

}  // namespace tfjob::io
