// Checks that a model's folder from an untrusted source is read safely: nothing crashes, nothing
// outside of the folder changes, and reading needs no more memory than the size of the files.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

void CheckIndexProperties(std::string_view bytes);
// Reads a partitioned variable whose entry consists of these bytes. Its slices have entries that
// fit, and correct checksums.
void CheckSliceProperties(std::string_view bytes);
void CheckListProperties(std::string_view text);
void CheckMarkProperties(std::string_view text);
// Reads the records of a file and writes them again. Checks that the result equals the beginning of
// the file.
void CheckRecordProperties(std::string_view bytes);

}  // namespace tfjob::fuzz
