// Defines the version of every program in this workspace.
#pragma once

namespace tfjob {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace tfjob
