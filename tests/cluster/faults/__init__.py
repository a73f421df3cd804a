"""The cases of faults_test.py, grouped by what is disturbed."""
