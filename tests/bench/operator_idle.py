#!/usr/bin/env python3
"""operator-idle: measures how much CPU time the operator uses, and how many writes it makes, in a
minute in which nothing happens to the running jobs. Without jobs (--jobs 0), also measures the time
from start to ready."""
import time

from cluster_case import Usage, arguments, environment, run_jobs, wait_quiet, writes
from report import print_report


def main():
    options = arguments()
    with environment(options) as (cluster, api, operator):
        operator.stop()
        ready_s = operator.start().wait_ready()  # the program is in memory by now
        run_jobs(api, operator, options)
        wait_quiet(operator.pid)
        time.sleep(5)
        before, usage = writes(api), Usage(cluster, operator)
        time.sleep(options.seconds)
        print_report("operator-idle", usage.wall(), usage.cpu(), usage.memory(), jobs=options.jobs,
                     start_to_ready_s=ready_s, writes=writes(api) - before)


if __name__ == "__main__":
    main()
