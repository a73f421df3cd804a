// What the verbs see of a cluster: the operator's own view of it (client::Client), the logs of pods,
// and the words by which messages call it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/client/client.h"
#include "operator/view/console.h"
#include "runtime/base/clock.h"
#include "runtime/base/stop.h"

namespace tfjob::cli {

// Which cluster, and as whom: as the flags say it, "" and nothing where they do not.
struct ClusterFlags {
  std::string kubeconfig;
  std::string context;
  std::string name_space;
  std::string as;                           // the user to act as
  std::vector<std::string> as_groups;       // and its groups
  std::optional<Duration> request_timeout;  // 0: no limit
};

// The log of one container, as the API server's subresource pods/log gives it.
struct LogRequest {
  std::string name_space;
  std::string pod;
  std::string container;
  bool follow = false;    // until the container ends
  bool previous = false;  // of the container before its last restart
  bool timestamps = false;
  std::optional<int64_t> tail_lines;
  std::optional<Duration> since;   // at most this old
  std::optional<Time> since_time;  // not older than this second; instead of `since`
};

// Thread-safe.
class LogReader {
 public:
  virtual ~LogReader() = default;
  // Gives the bytes of the log to `take` as they come, until its end, until `stop` is requested, or
  // until `take` returns false. NotFound when there is no such pod, InvalidArgument (the server's
  // message) when the container has no log yet, FailedPrecondition when the pod has no node yet.
  virtual Status Read(const LogRequest& request, const StopSource& stop,
                      const std::function<bool(std::string_view)>& take) = 0;
};

class Cluster {
 public:
  virtual ~Cluster() = default;
  virtual client::Client& client() = 0;
  virtual LogReader& logs() = 0;
  // How messages call the server: "https://10.0.0.1:6443 (context dev)".
  virtual std::string server() const = 0;
  // Of verbs without -n: the context's, or "default".
  virtual std::string name_space() const = 0;
};

// InvalidArgument when the kubeconfig or the flags are wrong. Does not ask the server yet.
using Connect = std::function<StatusOr<std::unique_ptr<Cluster>>(const ClusterFlags&)>;

// How often a verb that waits checks whether it is to stop.
inline constexpr Duration kPollInterval = std::chrono::milliseconds(200);

// What a verb works with; all of it outlives the verb.
struct Surroundings {
  Cluster& cluster;
  view::Console& console;
  const StopSource& stop;
  Clock& clock = RealClock();
};

}  // namespace tfjob::cli
