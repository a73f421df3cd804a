// Checks properties that must hold for arbitrary input to the trainer's readers: those of training
// files, Keras JSON, and IDX and CSV data.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

// Each function reads the bytes and aborts the process (ENFORCE) if a property is violated. Reading
// must never crash. The other properties are listed for each function.

// Checks that a valid config that is printed reads back as the same config, and that reading the
// layers of any config does not crash.
void CheckTrainingFileProperties(std::string_view text);
// Checks that a model that is written reads back as the same model, and that inferring its shapes
// and variables succeeds or returns an error.
void CheckKerasJsonProperties(std::string_view text);
// If a dataset can be loaded, checks that it has at least one example and as many labels as
// examples, and that an epoch yields every example once.
void CheckIdxProperties(std::string_view bytes);
void CheckCsvProperties(std::string_view bytes);

}  // namespace tfjob::fuzz
