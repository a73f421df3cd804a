// Checks properties of arbitrary bytes that the trainer reads: training files, Keras JSON, IDX and
// CSV data.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

// Each function reads the bytes and aborts the process (ENFORCE) if a property is violated. Reading
// must never crash. Further properties:

// A config prints as a file that reads as the same config. The layers of a valid config are read
// without a crash.
void CheckTrainingFileProperties(std::string_view text);
// A model that was read is written as one that reads as the same model. Its shapes and variables
// are inferred or refused.
void CheckKerasJsonProperties(std::string_view text);
// Data that loads has as many labels as examples, at least one, and an epoch yields all examples.
void CheckIdxProperties(std::string_view bytes);
void CheckCsvProperties(std::string_view bytes);

}  // namespace tfjob::fuzz
