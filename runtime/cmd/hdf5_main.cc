// Implements the program tfjob-hdf5, which converts HDF5 files for the trainer:
//   tfjob-hdf5 read MEMORY SECONDS OUTPUT    HDF5 on descriptor 0 → safetensors on descriptor 1
//   tfjob-hdf5 write MEMORY SECONDS OUTPUT   safetensors on descriptor 0 → HDF5 on descriptor 1
// Both descriptors are files, not pipes. MEMORY limits the memory that the program may allocate,
// and OUTPUT the size of the file on descriptor 1, both in megabytes. SECONDS limits the program's
// time. Errors are written to standard error, with exit code 1.
//
// A damaged file can make Debian's HDF5 library crash, loop or write anywhere in the process's
// memory. This process therefore has no secrets, has limits on its memory and time, and cannot open
// any other file once it has opened the file to convert. The size of the output is limited, too,
// because the output may be a file in memory.
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <string>

#include "runtime/base/file_system.h"
#include "runtime/io/hdf5/read.h"
#include "runtime/io/hdf5/write.h"

namespace tfjob {
namespace {

class Descriptor : public OutputFile {
 public:
  Status Append(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = write(1, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return ErrnoStatus(errno, "write the result");
      bytes.remove_prefix(static_cast<size_t>(written));
    }
    return OkStatus();
  }
  Status Sync() override { return OkStatus(); }
};

void Limit(__rlimit_resource what, rlim_t most) {
  const rlimit limit = {most, most};
  if (setrlimit(what, &limit) != 0) _exit(3);
}

// Limits how much more memory the program may allocate. Memory that the program already has, such
// as that of a sanitizer, does not count.
void LimitMemory(rlim_t megabytes) {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  Limit(RLIMIT_AS, pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + (megabytes << 20));
}

// The limit on open descriptors once the file to convert is open. The undefined behaviour sanitizer
// opens a pipe to test whether memory is readable, so it needs some descriptors.
#if defined(__has_feature)
constexpr rlim_t kMostFiles = __has_feature(undefined_behavior_sanitizer) ? 16 : 0;
#else
constexpr rlim_t kMostFiles = 0;
#endif

void OpenNothingElse() {
  Limit(RLIMIT_NOFILE, kMostFiles);
}

Status Read() {
  Descriptor output;
  return io::ConvertHdf5(0, output, OpenNothingElse);
}

Status Write() {
  OpenNothingElse();
  ASSIGN_OR_RETURN(io::RandomAccessFile input, io::RandomAccessFile::Adopt(0, "the input"));
  ASSIGN_OR_RETURN(const auto tensors, io::SafetensorsReader::Open(std::move(input)));
  Descriptor output;
  return io::WriteHdf5(*tensors, output);
}

int Main(int argc, char** argv) {
  const std::string verb = argc == 5 ? argv[1] : "";
  if (verb != "read" && verb != "write") {
    std::cerr << "tfjob-hdf5 is a part of tfjob-trainer, which runs it\n";
    return 2;
  }
  Limit(RLIMIT_CORE, 0);
  LimitMemory(std::strtoul(argv[2], nullptr, 10));
  Limit(RLIMIT_CPU, std::strtoul(argv[3], nullptr, 10));
  Limit(RLIMIT_FSIZE, std::strtoul(argv[4], nullptr, 10) << 20);
  const Status status = verb == "read" ? Read() : Write();
  if (status.ok()) return 0;
  std::cerr << Message(status);
  return 1;
}

}  // namespace
}  // namespace tfjob

int main(int argc, char** argv) {
  const int code = tfjob::Main(argc, argv);
  // Skip the exit handlers, because the library would free its memory there, and a damaged file may
  // have corrupted this memory.
  std::cerr.flush();
  _exit(code);
}
