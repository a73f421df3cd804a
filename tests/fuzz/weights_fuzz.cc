// libFuzzer's entry point for model and weight files. The first byte of an input selects how the
// remaining bytes are read: as safetensors (s), as a .keras file (k), or as safetensors with
// weights for a small model (w). Checks that nothing crashes, that reading needs at most a small
// multiple of the file's size in memory, that pieces of tensors equal those of the whole tensors,
// and that writing values and reading them again preserves them.
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/io/safetensors.h"
#include "runtime/model/keras/model_file.h"
#include "runtime/model/keras/weights.h"

namespace tfjob::fuzz {
namespace {

// A file that is removed at the end of the process.
class TemporaryFile {
 public:
  TemporaryFile() {
    const int fd = mkstemp(path_);
    ENFORCE(fd >= 0, "mkstemp");
    close(fd);
  }
  ~TemporaryFile() { unlink(path_); }
  std::string path() const { return path_; }
  void Write(std::string_view bytes) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << bytes;
  }

 private:
  char path_[40] = "/tmp/tfjob_weights_fuzz_XXXXXX";
};

const TemporaryFile& TheFile() {
  static const TemporaryFile file;
  return file;
}

// Checks that the second half of a tensor, read alone, is that of the whole tensor.
void CheckPiece(const io::SafetensorsReader& reader, const std::string& name, const Tensor& whole) {
  const size_t begin = static_cast<size_t>(whole.num_elements() / 2) * SizeOf(whole.dtype());
  std::vector<std::byte> piece(whole.num_bytes() - begin);
  ENFORCE(reader.ReadPiece(name, static_cast<int64_t>(begin), piece).ok(), "pieces are readable");
  ENFORCE(std::ranges::equal(piece, whole.bytes().subspan(begin)), "equal bytes of a piece");
}

void CheckSafetensors(std::string_view bytes) {
  const auto reader = io::SafetensorsReader::Open(TheFile().path());
  if (!reader.ok()) return;
  io::NamedTensors tensors;
  for (const auto& [name, entry] : (*reader)->entries()) {
    StatusOr<Tensor> tensor = (*reader)->Read(name);
    ENFORCE(tensor.ok() == entry.dtype.has_value(), "a type is read or refused");
    if (!tensor.ok()) continue;
    ENFORCE(tensor->num_bytes() <= 2 * bytes.size(), "no more bytes than the file has");
    CheckPiece(**reader, name, *tensor);
    tensors.emplace_back(name, *std::move(tensor));
  }
  const std::string path = TheFile().path() + ".again";
  if (!io::WriteSafetensors(path, tensors, (*reader)->metadata()).ok()) return;
  const auto again = io::SafetensorsReader::Open(path);
  ENFORCE(again.ok(), "what is written is readable");
  for (const auto& [name, tensor] : tensors) {
    const StatusOr<Tensor> same = (*again)->Read(name);
    ENFORCE(same.ok() && std::ranges::equal(same->bytes(), tensor.bytes()), "equal bytes");
  }
  unlink(path.c_str());
}

void CheckWeights() {
  const std::vector<model::VariableSpec> variables = {{.name = "dense/kernel", .shape = {2, 1}},
                                                      {.name = "dense/bias", .shape = {1}}};
  const auto weights = keras::OpenWeights(TheFile().path(), model::Model(), variables);
  if (!weights.ok()) return;
  const std::vector<std::string> skip = {"*"};
  ENFORCE(keras::ReadValues(*weights, variables, skip).ok(), "everything can be skipped");
  const auto values = keras::ReadValues(*weights, variables, {});
  for (size_t i = 0; values.ok() && i < variables.size(); ++i)
    ENFORCE((*values)[i]->shape() == variables[i].shape, "values have the variables' shapes");
}

}  // namespace

void CheckFile(char kind, std::string_view bytes) {
  TheFile().Write(bytes);
  if (kind == 's') CheckSafetensors(bytes);
  if (kind == 'w' && io::LooksLikeSafetensors(bytes)) CheckWeights();
  if (kind == 'k' && bytes.starts_with("PK")) (void)keras::ReadModelFile(TheFile().path());
}

}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  tfjob::fuzz::CheckFile(static_cast<char>(data[0]),
                         {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
