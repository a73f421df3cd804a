// Answers of /healthz and /readyz, made from named checks as Kubernetes' own components do.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operator/serve/server.h"
#include "runtime/base/status.h"

namespace tfjob::serve {

struct Check {
  std::string name;
  std::function<Status()> run;  // quick, on the server's thread
};

// 200 "ok" when all pass (with the query "verbose" one line a check), else 503 with one line a check:
// "[+]ping ok", "[-]caches failed: waiting for Pod".
Handler AllPass(std::vector<Check> checks);

}  // namespace tfjob::serve
