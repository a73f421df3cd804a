// Checks properties that must hold for arbitrary input to the readers of kubeconfigs and of
// credential plugins' output.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

// Reads the text as a kubeconfig and aborts the process (ENFORCE) if a property is violated:
//   - reading and resolving never crash;
//   - every error names the file;
//   - merging a file with itself changes nothing;
//   - a resolved kubeconfig has credentials, a server that parses as a URL, and headers without
//     control characters.
// The text is also read as an ExecCredential, a URL and a NO_PROXY list. No file is opened and no
// program is run, whatever the text contains.
void CheckKubeconfigProperties(std::string_view text);

}  // namespace tfjob::fuzz
