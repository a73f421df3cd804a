// Checks the readers of NumPy's files with arbitrary bytes. The first byte of an input selects how
// the remaining bytes are read: as an array (n) or as an archive of arrays (z).
//   - Reading never crashes.
//   - An array that was read takes at most a fixed multiple of the file's size in memory.
//   - Arrays that are read and then written read back as the same arrays.
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/file.h"
#include "runtime/io/npy.h"
#include "runtime/io/npz.h"

namespace tfjob::fuzz {
namespace {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// int8 becomes int32.
constexpr uint64_t kMostWidening = 4;
// A compressed array may need kFreeBytes of memory or, if that is more, kMostExpansion times its
// compressed size.
constexpr uint64_t kFreeBytes = 256 << 20;
constexpr uint64_t kMostExpansion = 100;

// A folder that is removed at the end of the process.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/tfjob_arrays_fuzz_XXXXXX";
    ENFORCE(mkdtemp(name) != nullptr, "mkdtemp");
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

const Folder& TheFolder() {
  static const Folder folder;
  return folder;
}

std::string Stored(std::string_view bytes) {
  const std::string path = TheFolder().path("input");
  std::ofstream(path, std::ios::binary) << bytes;
  return path;
}

bool Equal(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() && a.num_bytes() == b.num_bytes() &&
         (a.num_bytes() == 0 ||
          std::memcmp(a.bytes().data(), b.bytes().data(), a.num_bytes()) == 0);
}

void CheckArray(std::string_view bytes) {
  const StatusOr<Tensor> array = io::ReadNpy(Stored(bytes));
  if (!array.ok()) return;
  ENFORCE(array->num_bytes() <= kMostWidening * bytes.size(), "more bytes than the file has");
  const std::string copy = TheFolder().path("copy.npy");
  ENFORCE(io::WriteNpy(copy, *array).ok(), "what was read can be written");
  const StatusOr<Tensor> again = io::ReadNpy(copy);
  ENFORCE(again.ok() && Equal(*again, *array), "a written array must read as the same array");
}

void CheckArchive(std::string_view bytes) {
  const StatusOr<io::NpzReader> archive = io::NpzReader::Open(Stored(bytes));
  if (!archive.ok()) return;
  NamedTensors arrays;
  for (const std::string& name : archive->names()) {
    StatusOr<Tensor> array = archive->Read(name);
    if (!array.ok()) continue;
    ENFORCE(array->num_bytes() <= std::max(kFreeBytes, (kMostExpansion + 1) * bytes.size()),
            "more bytes than the file can unpack to");
    arrays.emplace_back(name, *std::move(array));
  }
  const std::string copy = TheFolder().path("copy.npz");
  if (!io::WriteNpz(copy, arrays).ok()) return;  // a ZIP cannot contain some names
  const StatusOr<io::NpzReader> again = io::NpzReader::Open(copy);
  ENFORCE(again.ok(), "a written archive must open");
  for (const auto& [name, array] : arrays) {
    const StatusOr<Tensor> read = again->Read(name);
    ENFORCE(read.ok() && Equal(*read, array), "a written array must read as the same array");
  }
}

}  // namespace
}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'n') tfjob::fuzz::CheckArray(rest);
  if (data[0] == 'z') tfjob::fuzz::CheckArchive(rest);
  return 0;
}
