"""Prints the JSON line that tests/bench/report.h describes, for cases written in Python."""
import json
import os


def print_report(case, wall_s, cpu_s, peak_rss_mb, **figures):
    """Prints the line. The times and the memory are those of the measured program, not of this
    program."""
    fields = {"case": case, **figures, "wall_s": wall_s, "cpu_s": cpu_s, "peak_rss_mb": peak_rss_mb,
              "load1": os.getloadavg()[0]}
    print(json.dumps({name: float(f"{value:.6g}") if isinstance(value, float) else value
                      for name, value in fields.items()}, separators=(",", ":")), flush=True)
