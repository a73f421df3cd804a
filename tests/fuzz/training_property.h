// What must hold of any bytes that the trainer reads: training files, Keras JSON, IDX and CSV data.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

// Each reads the bytes and ends the process (ENFORCE) when a property is broken. Reading never crashes, and:

// a config prints as a file that reads as the same config; a valid one's layers are read without a crash.
void CheckTrainingFileProperties(std::string_view text);
// a model that reads is written as one that reads as the same; shapes and variables are found or refused.
void CheckKerasJsonProperties(std::string_view text);
// data that loads has as many labels as examples, at least one, and gives every one of them in an epoch.
void CheckIdxProperties(std::string_view bytes);
void CheckCsvProperties(std::string_view bytes);

}  // namespace tfjob::fuzz
