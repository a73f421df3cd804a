#include "tests/fuzz/records_property.h"

#include <sys/mman.h>
#include <unistd.h>

#include "runtime/base/check.h"
#include "runtime/base/stop.h"
#include "runtime/data/inspect/file_format.h"
#include "runtime/data/pipeline.h"

namespace tfjob::fuzz {
namespace {

// Reads all examples. Returns their number, or the error.
StatusOr<int64_t> ReadAll(const std::shared_ptr<const data::Source>& source) {
  data::PipelineOptions options{.batch_size = 3, .epochs = 1, .prefetch = 0, .most_listed = 2};
  for (const data::Field& field : source->fields())
    options.columns.push_back(
        {.name = field.name, .array = field.name, .dtype = field.dtype, .shape = field.shape});
  ASSIGN_OR_RETURN(const auto pipeline, data::Pipeline::Create(source, options));
  int64_t count = 0;
  while (const data::Batch* batch = pipeline->Next()) count += batch->size();
  RETURN_IF_ERROR(pipeline->status());
  return count;
}

void CheckSummary(const MemoryFile& file, const std::string& format,
                  const StatusOr<std::shared_ptr<const data::Source>>& lenient) {
  const StopSource stop;
  const StatusOr<data::FileSummary> summary = data::Summarise(file.path(), format, {}, stop);
  if (!summary.ok()) {
    ENFORCE(!lenient.ok(), "a file that can be opened can be summarised");
    return;
  }
  ENFORCE(summary->examples == (lenient.ok() ? (*lenient)->size() : 0), "the intact records");
  if (lenient.ok())
    ENFORCE((summary->damaged() == 0) == (*lenient)->LeftOut().empty(), "the same damage");
  ENFORCE(!summary->Describe().empty() && !summary->DescribeDamage().empty(), "a heading");
}

}  // namespace

MemoryFile::MemoryFile(std::string_view bytes) : file_(memfd_create("fuzz", 0)) {
  ENFORCE(file_ >= 0, "memfd_create");
  const ssize_t written = write(file_, bytes.data(), bytes.size());
  ENFORCE(written == static_cast<ssize_t>(bytes.size()), "write");
}

MemoryFile::~MemoryFile() {
  close(file_);
}

std::string MemoryFile::path() const {
  return StrCat("/proc/self/fd/", file_);
}

void CheckRecordFile(std::string_view bytes, const data::RecordOptions& options, OpenFunction open,
                     const std::string& format) {
  const MemoryFile file(bytes);
  data::RecordOptions opening = options;
  opening.files = {file.path()};
  opening.most_indexed_in_memory = 2;
  const auto strict = open(opening);
  opening.skip_damaged = true;
  const auto lenient = open(opening);
  CheckSummary(file, format, lenient);
  if (!lenient.ok()) {
    ENFORCE(!strict.ok() || !ReadAll(*strict).ok(), "a file without intact records is damaged");
    return;
  }
  const StatusOr<int64_t> left = ReadAll(*lenient);
  ENFORCE(left.ok() ? *left == (*lenient)->size() : !absl::IsDataLoss(left.status()),
          "what is left is not damaged");
  if (!(*lenient)->LeftOut().empty()) return;
  ENFORCE(strict.ok() && (*strict)->size() == (*lenient)->size(), "nothing is damaged");
  const StatusOr<int64_t> all = ReadAll(*strict);
  ENFORCE(all.ok() == left.ok(), "nothing is damaged");
}

}  // namespace tfjob::fuzz
