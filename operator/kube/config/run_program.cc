#include "operator/kube/config/run_program.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"

namespace tfjob::kube {
namespace {

constexpr size_t kErrorsKept = 1024;

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { Close(); }

  int get() const { return fd_; }
  void Close() {
    if (fd_ >= 0) close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

// Represents a pipe for the child's output. The read end, which this process keeps, is
// non-blocking.
struct Pipe {
  Descriptor read;
  Descriptor write;

  Status Open() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return ErrnoStatus(errno, "pipe");
    read = Descriptor(ends[0]);
    write = Descriptor(ends[1]);
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    return OkStatus();
  }
  // Appends the available data to `text`. Closes the read end at the end of the stream.
  void Drain(std::string& text) {
    char buffer[4096];
    while (read.get() >= 0) {
      const ssize_t count = ::read(read.get(), buffer, sizeof(buffer));
      if (count > 0) {
        text.append(buffer, static_cast<size_t>(count));
      } else if (count == 0 || (errno != EAGAIN && errno != EINTR)) {
        read.Close();
      } else if (errno == EAGAIN) {
        return;
      }
    }
  }
};

std::vector<char*> Pointers(const std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (const std::string& text : texts) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

class Program {
 public:
  explicit Program(const ProgramOptions& options) : options_(options) {}
  ~Program() { Kill(); }

  Status Start() {
    RETURN_IF_ERROR(output_.Open());
    RETURN_IF_ERROR(errors_.Open());
    RETURN_IF_ERROR(Spawn());
    output_.write.Close();
    errors_.write.Close();
    exited_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
    if (exited_.get() < 0) {
      return ErrnoStatus(
          errno, "pidfd_open, which needs Linux 5.3 or newer, and a container that permits it");
    }
    return OkStatus();
  }

  StatusOr<std::string> Finish() {
    const auto deadline = std::chrono::steady_clock::now() + options_.timeout;
    while (!Reap()) {
      const auto left =
          std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) {
        return DeadlineExceeded("it did not end within ", FormatDuration(options_.timeout), Said());
      }
      pollfd watched[] = {{exited_.get(), POLLIN, 0},
                          {output_.read.get(), POLLIN, 0},
                          {errors_.read.get(), POLLIN, 0}};
      poll(watched, 3, static_cast<int>(std::min<int64_t>(left.count(), 1 << 30)));
      Drain();
      if (output_text_.size() > options_.max_output) {
        return FailedPrecondition("it wrote more than ", options_.max_output, " bytes");
      }
    }
    // Read only the output written before the program's exit: other processes that the program
    // started may keep the pipes open.
    Drain();
    return Result();
  }

 private:
  Status Spawn() {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    if (!options_.interactive) {
      posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
      posix_spawn_file_actions_adddup2(&actions, errors_.write.get(), 2);
    }
    posix_spawn_file_actions_adddup2(&actions, output_.write.get(), 1);
    posix_spawn_file_actions_addclosefrom_np(&actions, 3);

    // A program in its own process group can be killed together with its children, but cannot read
    // from the terminal.
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    if (!options_.interactive) flags |= POSIX_SPAWN_SETPGROUP;
    posix_spawnattr_setflags(&attributes, flags);
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes, &signals);
    sigaddset(&signals, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &signals);

    const int error =
        posix_spawnp(&pid_, options_.arguments[0].c_str(), &actions, &attributes,
                     Pointers(options_.arguments).data(), Pointers(options_.environment).data());
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error == 0) return OkStatus();
    pid_ = -1;
    const char* reason = strerrordesc_np(error);
    if (error == ENOENT) return NotFound("no such program: ", reason);
    return FailedPrecondition("it cannot be started: ", reason);
  }

  // If the program has exited, stores its exit status and returns true.
  bool Reap() {
    if (pid_ < 0) return true;
    if (waitpid(pid_, &status_, WNOHANG) != pid_) return false;
    pid_ = -1;
    return true;
  }

  void Drain() {
    output_.Drain(output_text_);
    errors_.Drain(errors_text_);
    if (errors_text_.size() > kErrorsKept) {
      errors_text_.erase(0, errors_text_.size() - kErrorsKept);
    }
  }

  // Returns the end of the program's standard error as a suffix for error messages.
  std::string Said() const {
    const std::string text(absl::StripAsciiWhitespace(errors_text_));
    return text.empty() ? "" : StrCat(": ", text);
  }

  StatusOr<std::string> Result() {
    if (WIFSIGNALED(status_)) {
      return FailedPrecondition("it was killed by signal ", WTERMSIG(status_), Said());
    }
    if (WEXITSTATUS(status_) != 0) {
      return FailedPrecondition("it exited with code ", WEXITSTATUS(status_), Said());
    }
    return std::move(output_text_);
  }

  void Kill() {
    if (pid_ < 0) return;
    kill(options_.interactive ? pid_ : -pid_, SIGKILL);
    while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
  }

  const ProgramOptions& options_;
  Pipe output_;
  Pipe errors_;
  Descriptor exited_;
  pid_t pid_ = -1;
  int status_ = 0;
  std::string output_text_;
  std::string errors_text_;
};

}  // namespace

StatusOr<std::string> RunProgram(const ProgramOptions& options) {
  if (options.arguments.empty() || options.arguments[0].empty()) {
    return InvalidArgument("no program to run");
  }
  Program program(options);
  RETURN_IF_ERROR(program.Start());
  return program.Finish();
}

}  // namespace tfjob::kube
