#!/usr/bin/env python3
"""operator-restart: restarts the operator while jobs are running. Measures the times from SIGTERM
to exit, from start to ready, and from start until the operator is quiet. Also measures the CPU time
and the number of writes until the operator is quiet."""
import time

from cluster_case import arguments, environment, run_jobs, wait_quiet, writes
from harness.process import cpu_seconds, memory_mb
from report import print_report


def main():
    options = arguments()
    with environment(options) as (_, api, operator):
        run_jobs(api, operator, options)
        wait_quiet(operator.pid)
        time.sleep(5)
        before = writes(api)
        exit_status, exit_s = operator.stop()
        started = time.monotonic()
        operator.start()
        ready_s = operator.wait_ready()
        quiet_s = time.monotonic() - started + wait_quiet(operator.pid)
        # The CPU time includes the second in which wait_quiet saw almost no activity.
        print_report("operator-restart", quiet_s, cpu_seconds(operator.pid), memory_mb(operator.pid), jobs=options.jobs,
                     exit_s=exit_s, exit_status=exit_status, ready_s=ready_s, writes=writes(api) - before)


if __name__ == "__main__":
    main()
