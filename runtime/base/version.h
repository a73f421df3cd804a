// The version that every program of this workspace bears.
#pragma once

namespace tfjob {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace tfjob
