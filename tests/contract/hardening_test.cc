// Reads the released programs, and checks that they are built as .bazelrc promises:
// position-independent, with relocations that are read-only at run time, without memory that is
// both writable and executable, and with the compiler's checks of the stack, buffers and indirect
// branches.
#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/file.h"

namespace tfjob {
namespace {

// A 64-bit ELF file. Its sections may have been stripped, but the dynamic symbols are always
// present.
class Program {
 public:
  explicit Program(const std::string& path) : bytes_(ReadFile(path).value_or("")) {
    EXPECT_GT(bytes_.size(), sizeof(Elf64_Ehdr)) << path;
    if (bytes_.size() <= sizeof(Elf64_Ehdr)) return;
    header_ = At<Elf64_Ehdr>(0);
    EXPECT_EQ(bytes_.substr(0, SELFMAG), ELFMAG) << path;
    segments_ = Array<Elf64_Phdr>(header_.e_phoff, header_.e_phnum);
    sections_ = Array<Elf64_Shdr>(header_.e_shoff, header_.e_shnum);
    if (const Elf64_Phdr* dynamic = Segment(PT_DYNAMIC)) {
      dynamic_ = Array<Elf64_Dyn>(dynamic->p_offset, dynamic->p_filesz / sizeof(Elf64_Dyn));
    }
  }

  uint16_t type() const { return header_.e_type; }
  const std::vector<Elf64_Phdr>& segments() const { return segments_; }

  const Elf64_Phdr* Segment(uint32_t type) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == type) return &segment;
    }
    return nullptr;
  }

  // Returns the value of the first entry with this tag, or 0 if there is none.
  uint64_t Dynamic(int64_t tag) const {
    for (const Elf64_Dyn& entry : dynamic_) {
      if (entry.d_tag == tag) return entry.d_un.d_val;
    }
    return 0;
  }

  // Returns the names of the dynamic symbols.
  std::set<std::string> Symbols() const {
    std::set<std::string> names;
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != SHT_DYNSYM) continue;
      const uint64_t strings = sections_.at(section.sh_link).sh_offset;
      for (const auto& symbol :
           Array<Elf64_Sym>(section.sh_offset, section.sh_size / sizeof(Elf64_Sym))) {
        names.insert(bytes_.c_str() + strings + symbol.st_name);
      }
    }
    return names;
  }

  // Counts the permitted targets of indirect branches (ENDBR64) in executable segments.
  size_t BranchTargets() const {
    size_t count = 0;
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
      const std::string_view code =
          std::string_view(bytes_).substr(segment.p_offset, segment.p_filesz);
      for (size_t at = 0; (at = code.find("\xf3\x0f\x1e\xfa", at)) != std::string_view::npos; ++at)
        ++count;
    }
    return count;
  }

 private:
  template <typename T>
  T At(size_t offset) const {
    T value{};
    EXPECT_LE(offset + sizeof(T), bytes_.size());
    if (offset + sizeof(T) <= bytes_.size()) std::memcpy(&value, &bytes_[offset], sizeof(T));
    return value;
  }
  template <typename T>
  std::vector<T> Array(size_t offset, size_t count) const {
    std::vector<T> values;
    for (size_t i = 0; i < count; ++i) values.push_back(At<T>(offset + i * sizeof(T)));
    return values;
  }

  const std::string bytes_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Phdr> segments_;
  std::vector<Elf64_Shdr> sections_;
  std::vector<Elf64_Dyn> dynamic_;
};

class HardeningTest : public ::testing::TestWithParam<const char*> {
 protected:
  const Program program_{GetParam()};
};

TEST_P(HardeningTest, ItsPlaceInMemoryIsChosenAtRandom) {
  EXPECT_EQ(program_.type(), ET_DYN);
  EXPECT_NE(program_.Segment(PT_INTERP), nullptr);
  EXPECT_NE(program_.Dynamic(DT_FLAGS_1) & DF_1_PIE, 0u);
  EXPECT_EQ(program_.Dynamic(DT_TEXTREL), 0u);
}

TEST_P(HardeningTest, RelocationsAreResolvedAtOnceAndThenReadOnly) {
  EXPECT_NE(program_.Segment(PT_GNU_RELRO), nullptr);
  EXPECT_NE(program_.Dynamic(DT_FLAGS_1) & DF_1_NOW, 0u);
}

TEST_P(HardeningTest, NoMemoryIsWritableAndExecutable) {
  const Elf64_Phdr* stack = program_.Segment(PT_GNU_STACK);
  ASSERT_NE(stack, nullptr);
  EXPECT_EQ(stack->p_flags & PF_X, 0u);
  for (const Elf64_Phdr& segment : program_.segments()) {
    const bool both = (segment.p_flags & PF_W) != 0 && (segment.p_flags & PF_X) != 0;
    EXPECT_FALSE(segment.p_type == PT_LOAD && both);
  }
}

TEST_P(HardeningTest, TheCompilerChecksStackBuffersAndBranches) {
  const std::set<std::string> symbols = program_.Symbols();
  EXPECT_TRUE(symbols.contains("__stack_chk_fail"));
  // With a _FORTIFY_SOURCE level below 2, the compiler would call the unchecked snprintf where the
  // output is known to fit.
  EXPECT_TRUE(symbols.contains("__snprintf_chk"));
  EXPECT_FALSE(symbols.contains("snprintf"));
  EXPECT_GT(program_.BranchTargets(), 1000u);
}

INSTANTIATE_TEST_SUITE_P(Programs, HardeningTest,
                         ::testing::Values("operator/cli/tfjob", "operator/service/tfjob-operator",
                                           "runtime/cmd/tfjob-trainer"),
                         [](const auto& info) {
                           std::string name = info.param;
                           name = name.substr(name.rfind('/') + 1);
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

}  // namespace
}  // namespace tfjob
