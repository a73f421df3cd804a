#!/usr/bin/env bash
# Rewrites the golden files with the program's current output. Review the changes before you commit
# them: git diff tests/scenarios.
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 1
bazel build //tests/scenarios:scenarios_test || exit 1
TFJOB_UPDATE_GOLDEN=1 bazel-bin/tests/scenarios/scenarios_test --gtest_brief=1
git status --short tests/scenarios
