// Defines the verbs' interface to a cluster: the operator's own interface (client::Client), the
// logs of pods, and the cluster's names for messages.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/view/console.h"
#include "runtime/base/clock.h"
#include "runtime/base/stop.h"

namespace tfjob::client {
class Client;
}  // namespace tfjob::client

namespace tfjob::cli {

// Contains the flags that select the cluster and the user to act as. A flag that is not given is
// empty or nullopt.
struct ClusterFlags {
  std::string kubeconfig;
  std::string context;
  std::string name_space;
  std::string as;                           // the user to act as
  std::vector<std::string> as_groups;       // the groups of that user
  std::optional<Duration> request_timeout;  // 0 for no limit
};

// Requests the log of one container. The fields follow the API server's subresource pods/log.
struct LogRequest {
  std::string name_space;
  std::string pod;
  std::string container;
  bool follow = false;    // until the container ends
  bool previous = false;  // from before the container's last restart
  bool timestamps = false;
  std::optional<int64_t> tail_lines;
  std::optional<Duration> since;   // only lines at most this old
  std::optional<Time> since_time;  // only lines from this second or later; overrides `since`
};

// Reads the logs of containers. Thread-safe.
class LogReader {
 public:
  virtual ~LogReader() = default;
  // Passes the bytes of the log to `take` as they arrive, until the log ends, `stop` is requested,
  // or `take` returns false. Returns NotFound if there is no such pod, InvalidArgument (with the
  // server's message) if the container has no log yet, and FailedPrecondition if the pod has no
  // node yet.
  virtual Status Read(const LogRequest& request, const StopSource& stop,
                      const std::function<bool(std::string_view)>& take) = 0;
};

class Cluster {
 public:
  virtual ~Cluster() = default;
  virtual client::Client& client() = 0;
  virtual LogReader& logs() = 0;
  // Returns the name of the server for messages: "https://10.0.0.1:6443 (context dev)".
  virtual std::string server() const = 0;
  // Returns the namespace in which the verb works: the value of -n, or else the context's
  // namespace, or else "default".
  virtual std::string name_space() const = 0;
};

// Creates the cluster without contacting the server. Returns InvalidArgument if the kubeconfig or
// the flags are wrong.
using Connect = std::function<StatusOr<std::unique_ptr<Cluster>>(const ClusterFlags&)>;

// How often a waiting verb checks whether to stop.
inline constexpr Duration kPollInterval = std::chrono::milliseconds(200);

// Contains everything that a verb needs. The referenced objects must outlive the verb.
struct VerbContext {
  Cluster& cluster;
  view::Console& console;
  const StopSource& stop;
  Clock& clock = RealClock();
};

}  // namespace tfjob::cli
