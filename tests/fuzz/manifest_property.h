// Checks properties of the manifest reader that must hold for arbitrary input.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

// Reads the text as a manifest and aborts the process (ENFORCE) if a property is violated:
//   - reading never crashes;
//   - a text that ParseManifest rejects is never reported as valid, and no printed report is empty;
//   - every job can be printed as JSON that reads back as the same job;
//   - defaults are idempotent and do not change the result of validation.
void CheckManifestProperties(std::string_view text);

}  // namespace tfjob::fuzz
