#include "tests/faults/faulty_files.h"

#include <cerrno>
#include <utility>

namespace tfjob::faults {

class FaultyFile : public OutputFile {
 public:
  FaultyFile(std::string path, FaultyFiles& files, std::unique_ptr<OutputFile> file)
      : path_(std::move(path)), files_(files), file_(std::move(file)) {}

  Status Append(std::string_view bytes) override {
    RETURN_IF_ERROR(files_.Fault(path_));
    return file_->Append(bytes);
  }
  Status Sync() override { return file_->Sync(); }

 private:
  const std::string path_;
  FaultyFiles& files_;
  const std::unique_ptr<OutputFile> file_;
};

void FaultyFiles::Hang(bool hangs) {
  MutexLock lock(mutex_);
  hangs_ = hangs;
  changed_.NotifyAll();
}

bool FaultyFiles::AwaitHangingWrite() {
  const auto deadline = std::chrono::steady_clock::now() + 60s;
  MutexLock lock(mutex_);
  while (hanging_ == 0 && changed_.WaitUntil(mutex_, deadline)) {
  }
  return hanging_ > 0;
}

Status FaultyFiles::Fault(const std::string& path) {
  {
    MutexLock lock(mutex_);
    while (hangs_) {
      ++hanging_;
      changed_.NotifyAll();
      changed_.Wait(mutex_);
      --hanging_;
    }
  }
  return full_ ? ErrnoStatus(ENOSPC, StrCat("write ", path)) : OkStatus();
}

StatusOr<std::unique_ptr<OutputFile>> FaultyFiles::Create(const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<OutputFile> file, RealFileSystem().Create(path));
  return std::unique_ptr<OutputFile>(std::make_unique<FaultyFile>(path, *this, std::move(file)));
}

}  // namespace tfjob::faults
