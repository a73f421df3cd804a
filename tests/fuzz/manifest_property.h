// What must hold of any bytes that are read as a manifest.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

// Reads the text as a manifest and ends the process (ENFORCE) when a property is broken: reading never crashes; errors
// exist exactly when ParseManifest fails or validation speaks; every job prints to JSON that reads as the same job;
// defaults are idempotent and do not make a valid job invalid; the status prints.
void CheckManifestProperties(std::string_view text);

}  // namespace tfjob::fuzz
