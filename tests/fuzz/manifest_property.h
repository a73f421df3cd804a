// Checks properties of arbitrary bytes that are read as a manifest.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

// Reads the text as a manifest and aborts the process (ENFORCE) if a property is violated:
//   - reading never crashes;
//   - there are errors exactly if ParseManifest fails or validation reports any;
//   - every job prints to JSON that reads as the same job;
//   - defaults are idempotent and do not make a valid job invalid;
//   - the status prints.
void CheckManifestProperties(std::string_view text);

}  // namespace tfjob::fuzz
