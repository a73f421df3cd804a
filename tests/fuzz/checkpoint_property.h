// Checks that a model's folder written by someone else is read safely: nothing crashes, nothing
// outside the folder changes, and reading takes no more memory than the size of the files.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

void CheckIndexProperties(std::string_view bytes);
void CheckListProperties(std::string_view text);
void CheckMarkProperties(std::string_view text);
// Checks that the records that were read, when written again, equal the beginning of the file.
void CheckRecordProperties(std::string_view bytes);

}  // namespace tfjob::fuzz
