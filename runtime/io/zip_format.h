// Defines the signatures and sizes of the records of a ZIP archive, for its reader and its writer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

namespace tfjob::io {

inline constexpr uint32_t kZipLocalHeader = 0x04034b50;
inline constexpr uint32_t kZipDirectoryEntry = 0x02014b50;
inline constexpr uint32_t kZipEnd = 0x06054b50;
inline constexpr uint32_t kZip64End = 0x06064b50;
inline constexpr uint32_t kZip64Locator = 0x07064b50;

// The sizes of the records, without their parts of variable length.
inline constexpr size_t kZipLocalHeaderBytes = 30;
inline constexpr size_t kZipDirectoryEntryBytes = 46;
inline constexpr size_t kZipEndBytes = 22;
inline constexpr size_t kZip64EndBytes = 56;
inline constexpr size_t kZip64LocatorBytes = 20;

// The type of the extra field with 64-bit values. It contains one value per field that is set to
// one of the markers below.
inline constexpr uint16_t kZip64Extra = 1;
inline constexpr uint32_t kZip64Mark = std::numeric_limits<uint32_t>::max();
inline constexpr uint16_t kZip64CountMark = std::numeric_limits<uint16_t>::max();

inline constexpr uint16_t kZipVersion64 = 45;  // the version of the format that added 64-bit sizes
inline constexpr uint16_t kZipUtf8 = 1 << 11;  // flag: the name is UTF-8
inline constexpr uint16_t kZipEncrypted = 1;   // flag
inline constexpr uint16_t kZipStored = 0, kZipDeflated = 8;

}  // namespace tfjob::io
