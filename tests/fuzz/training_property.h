// Checks properties of arbitrary bytes, read as what the trainer reads: training files, Keras JSON,
// and IDX and CSV data.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

// Each function reads the bytes and aborts the process (ENFORCE) if a property is violated. Reading
// must never crash. The further properties are:

// The printed form of a valid config reads as the same config. The layers of any config are read
// without a crash.
void CheckTrainingFileProperties(std::string_view text);
// The written form of a model reads as the same model. Inferring its shapes and variables succeeds
// or returns an error.
void CheckKerasJsonProperties(std::string_view text);
// Data that loads has at least one example and as many labels as examples. An epoch yields every
// example once.
void CheckIdxProperties(std::string_view bytes);
void CheckCsvProperties(std::string_view bytes);

}  // namespace tfjob::fuzz
